"""Appends share a commit only if none of them could see another."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.store.append.support import TYPES, criterion, event, prepare, unless

from penstock.envelope.envelope import JsonObject
from penstock.store.append.batch import Footprint, take
from penstock.store.append.condition import Condition, Criterion, match_any
from penstock.store.append.judging import Calling, Said
from penstock.store.append.request import Request


@dataclass(eq=False)
class Ticket:
    request: Request


def request(
    events: list[JsonObject], condition: Condition | None = None, tenant: str = "acme"
) -> Request:
    return prepare(Said(Calling(tenant), events, condition))


def shared(*requests: Request, events_max: int = 1_000) -> list[list[int]]:
    """Which requests share a commit, by their numbers."""
    tickets = [Ticket(each) for each in requests]
    waiting, batches = deque(tickets), []
    while waiting:
        batches.append([tickets.index(t) for t in take(waiting, events_max=events_max)])
    return batches


def test_appends_that_do_not_meet_share_a_commit() -> None:
    apart = [request([event(tags={"show": str(n)})], unless(show=str(n))) for n in range(9)]

    assert shared(*apart) == [list(range(9))]


def test_an_append_that_could_see_another_waits_for_the_next_commit() -> None:
    racers = [request([event(tags={"show": "42"})], unless(show="42")) for _ in range(3)]
    other = request([event(tags={"show": "7"})], unless(show="7"))

    assert shared(racers[0], racers[1], other, racers[2]) == [[0, 2], [1], [3]]


def test_an_append_without_a_condition_sees_nobody() -> None:
    first = request([event(tags={"show": "42"})], unless(show="42"))
    anyway = request([event(tags={"show": "42"})])

    assert shared(first, anyway) == [[0, 1]]
    assert shared(anyway, first) == [[0], [1]]


def test_a_criterion_is_met_only_by_its_type_with_all_its_tags_in_its_tenant() -> None:
    first = request([event(event_type="seat.booked", tags={"show": "42", "seat": "A1"})])
    apart = [
        request([event()], unless("seat.released", show="42")),
        request([event()], unless(show="42", seat="A2")),
        request([event()], unless(show="42"), tenant="other"),
    ]
    meeting = [
        request([event()], unless("seat.booked")),
        request([event()], unless("seat.released", "seat.booked", seat="A1")),
        request([event()], Condition(fail_if_exists=(criterion(show="42", seat="A1"),))),
    ]

    assert shared(first, *apart) == [[0, 1, 2, 3]]
    assert all(shared(first, each) == [[0], [1]] for each in meeting)


def test_the_same_id_again_waits_until_the_first_is_in_the_log() -> None:
    once, again = request([event("a")]), request([event("a")])

    assert shared(once, again, request([event("a")], tenant="other")) == [[0, 2], [1]]


def test_a_batch_has_room_for_so_many_events_but_never_stays_empty() -> None:
    sizes = [request([event() for _ in range(size)]) for size in (4, 3, 1, 6)]

    assert shared(*sizes, events_max=5) == [[0, 2], [1], [3]]


tags = st.dictionaries(st.sampled_from(("show", "seat")), st.sampled_from("12"), max_size=2)
types = st.lists(st.sampled_from(TYPES[:2]), max_size=2, unique=True)


@given(
    st.lists(st.tuples(st.sampled_from(TYPES[:2]), tags), min_size=1, max_size=3),
    types, tags,
)  # fmt: skip
def test_what_would_match_always_overlaps(
    carried: list[tuple[str, dict[str, str]]], wanted: list[str], pairs: dict[str, str]
) -> None:
    first = request([event(event_type=kind, tags=tags) for kind, tags in carried])
    meant = (Criterion(tuple(wanted), tuple(pairs.items())),)
    footprint = Footprint()
    footprint.add(first)
    later = request([event()], None)
    asked: Any = Request(later.tenant_id, later.entries, later.places, Condition(meant))

    if any(match_any(meant, entry.accepted.envelope) for entry in first.entries):
        assert footprint.overlaps(asked)
