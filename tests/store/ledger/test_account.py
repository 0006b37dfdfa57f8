"""The account balances, and shows what vanished."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.store.ledger.account import Books, account
from penstock.transport.backlog import Pending
from penstock.transport.segment import SegmentName

WRITER = "0123456789ab"


def segment(start: int, lines: int) -> SegmentName:
    return SegmentName(ms=1_772_000_000_000 + start, writer=WRITER, start=start, lines=lines)


def disk(*segments: SegmentName, opened: tuple[int, int] | None = None) -> Pending:
    return Pending(
        messages=0,
        bytes=0,
        segments=list(segments),
        oldest_ms=None,
        writers={},
        open={} if opened is None else {WRITER: opened},
    )


def books(
    head: int, *, accepted: int, appended: int = 0, dead: int = 0, settled: tuple[str, ...] = ()
) -> Books:
    writers = {WRITER: accepted} if accepted else {}
    return Books(head, appended, 0, dead, 0, writers, frozenset(settled), ())


def test_what_was_appended_is_accepted_and_stored_at_once() -> None:
    report = account(disk(), books(17, accepted=10, appended=7))

    assert (report.accepted, report.stored, report.unexplained) == (17, 17, 0)


def test_what_is_on_disk_is_in_flight() -> None:
    report = account(disk(segment(0, 10), opened=(10, 3)), books(0, accepted=0))

    assert (report.accepted, report.in_flight, report.unexplained) == (13, 13, 0)


def test_a_settled_segment_that_is_not_deleted_yet_is_not_in_flight() -> None:
    name = segment(0, 10)
    report = account(disk(name), books(9, accepted=10, dead=1, settled=(name.text,)))

    assert (report.accepted, report.in_flight, report.unexplained) == (10, 0, 0)


def test_a_segment_that_vanished_is_unexplained() -> None:
    report = account(disk(segment(20, 5)), books(10, accepted=10))

    assert report.unexplained == 10


def test_a_row_that_vanished_is_unexplained() -> None:
    report = account(disk(), books(9, accepted=10))

    assert report.unexplained == 1


def test_an_open_segment_that_was_settled_since_we_looked_counts_once() -> None:
    report = account(disk(opened=(10, 3)), books(15, accepted=15))

    assert (report.accepted, report.in_flight, report.unexplained) == (15, 0, 0)


@given(st.lists(st.integers(1, 50), max_size=12), st.data())
def test_accepted_is_always_stored_plus_dead_plus_in_flight(
    sizes: list[int], data: st.DataObject
) -> None:
    segments, start = [], 0
    for size in sizes:
        segments.append(segment(start, size))
        start += size
    settled = [s for s in segments if data.draw(st.booleans())]
    waiting = [s for s in segments if s not in settled]
    lines = sum(s.lines for s in settled)
    dead = data.draw(st.integers(0, lines))
    kept = [s for s in settled if data.draw(st.booleans())]
    ledger = books(
        lines - dead,
        accepted=max((s.start + s.lines for s in settled), default=0),
        dead=dead,
        settled=tuple(s.text for s in settled),
    )

    report = account(disk(*waiting, *kept), ledger)

    assert report.unexplained == 0
    assert report.accepted == start
    assert report.in_flight == sum(s.lines for s in waiting)
