"""A lot is sorted into new events, duplicates and dead letters, and every line is counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.ingress.lot import Row, Written
from penstock.ingress.verdict import Reason, Rejected
from penstock.store.intake.settle import keys_of, settle

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def accepted(event_id: str, content: bytes = b"a", *, source: str = "s.x") -> Written:
    at = NOW - timedelta(seconds=2)
    raw = b"raw:" + event_id.encode() + content
    return Row(raw, "default", event_id, "t.x", source, at, content, b"", ())


def rejected(raw: bytes) -> Written:
    return Rejected(raw, Reason.MALFORMED_JSON, "no")


def test_a_new_event_is_fresh() -> None:
    result = settle([accepted("1")], {}, now=NOW)

    assert [row.id for row in result.fresh] == ["1"]
    assert (result.lines, result.duplicates, result.dead) == (1, 0, 0)


def test_the_same_id_with_the_same_content_is_a_duplicate() -> None:
    result = settle(
        [accepted("1"), accepted("1"), accepted("2")], {("default", "2"): b"a"}, now=NOW
    )

    assert [row.id for row in result.fresh] == ["1"]
    assert result.duplicates == 2


def test_the_same_id_with_other_content_is_a_dead_letter_and_never_overwrites() -> None:
    result = settle([accepted("1"), accepted("1", b"b")], {}, now=NOW)

    assert [row.content_hash for row in result.fresh] == [b"a"]
    (letter,) = result.letters.values()
    assert letter.rejected.reason == Reason.ID_CONFLICT
    assert letter.rejected.raw == b"raw:1b"


def test_the_same_id_in_another_tenant_is_another_event() -> None:
    result = settle([accepted("1")], {("other", "1"): b"z"}, now=NOW)

    assert len(result.fresh) == 1


def test_the_same_bad_message_twice_is_one_letter_counted_twice() -> None:
    result = settle([rejected(b"x"), rejected(b"x"), rejected(b"y")], {}, now=NOW)

    assert sorted(t.count for t in result.letters.values()) == [1, 2]
    assert result.dead == 3


def test_lag_is_counted_per_source() -> None:
    result = settle([accepted("1"), accepted("2"), accepted("3", source="s.y")], {}, now=NOW)

    tally = result.sources["default", "s.x"]
    assert (tally.stored, tally.lag_total_ms, tally.lag_max_ms) == (2, 4000, 2000)


items = st.lists(
    st.one_of(
        st.builds(accepted, st.sampled_from("123"), st.sampled_from([b"a", b"b"])),
        st.builds(rejected, st.sampled_from([b"x", b"y"])),
    ),
    max_size=30,
)


@given(
    items,
    st.dictionaries(
        st.tuples(st.just("default"), st.sampled_from("123")), st.sampled_from([b"a", b"b"])
    ),
)
def test_every_line_is_stored_or_a_duplicate_or_dead(
    lot: list[Written], known: dict[tuple[str, str], bytes]
) -> None:
    result = settle(lot, known, now=NOW)

    assert result.lines == len(lot) == len(result.fresh) + result.duplicates + result.dead
    fresh = [(a.tenant_id, a.id) for a in result.fresh]
    assert len(fresh) == len(set(fresh))
    assert not set(fresh) & known.keys()
    assert set(fresh) <= set(keys_of(lot))
    assert sum(t.count for t in result.letters.values()) == result.dead
    by_source = [(t.stored, t.duplicates, t.dead) for t in result.sources.values()]
    assert [sum(c) for c in zip(*by_source, strict=True)] == (
        [len(fresh), result.duplicates, result.dead] if lot else []
    )
