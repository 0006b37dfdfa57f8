"""An append is made when nothing that it depends on has happened since, and else refused."""

from __future__ import annotations

import pytest
from tests.store.append.support import criterion, event, unless

from penstock.base.errors import AppendConflict, ConditionInvalid, EventRefused
from penstock.store.append.appends import Appends, EventStore
from penstock.store.append.condition import Condition
from penstock.store.append.judging import Calling


def test_events_get_the_next_positions_in_their_order(store: EventStore) -> None:
    first = store.append([event("a"), event("b")])
    second = store.append([event("c")])

    assert (first.positions, first.after) == ((1, 2), 2)
    assert second.positions == (3,)


def test_without_after_nothing_like_this_may_exist_at_all(store: EventStore) -> None:
    store.append([event("a", tags={"show": "42"})], unless(show="42"))

    with pytest.raises(AppendConflict) as refused:
        store.append([event("b", tags={"show": "42"})], unless(show="42"))

    assert refused.value.positions == (1,)
    assert store.read((criterion(show="42"),)).after == 1


def test_what_stands_up_to_after_was_seen_and_does_not_conflict(store: EventStore) -> None:
    store.append([event("a", tags={"show": "42"}), event("b", tags={"show": "43"})])

    assert store.append([event("c")], unless(show="42", after=1)).positions == (3,)
    with pytest.raises(AppendConflict, match="after position 0"):
        store.append([event("d")], unless(show="42", after=0))


def test_no_condition_means_append_anyway(store: EventStore) -> None:
    store.append([event("a", tags={"show": "42"})])

    assert store.append([event("b", tags={"show": "42"})]).positions == (2,)


def test_types_are_alternatives_tags_must_all_be_there_and_items_are_alternatives(
    store: EventStore,
) -> None:
    store.append([event("a", "seat.released", tags={"show": "42", "seat": "A1"})])
    both = criterion("seat.booked", "seat.released", show="42", seat="A1")
    other_tag = criterion("seat.released", show="42", seat="A2")
    other_type = criterion("seat.booked", show="42")

    with pytest.raises(AppendConflict):
        store.append([event("b")], Condition((both,)))
    with pytest.raises(AppendConflict):
        store.append([event("b")], Condition((other_tag, both)))
    assert store.append([event("b")], Condition((other_tag, other_type))).positions == (2,)


def test_a_type_alone_is_a_criterion(store: EventStore) -> None:
    store.append([event("a", "show.opened")])

    with pytest.raises(AppendConflict):
        store.append([event("b")], unless("SHOW.CLOSED", "show.opened"))
    assert store.append([event("b")], unless("SHOW.CLOSED")).positions == (2,)


def test_events_of_another_tenant_never_conflict(appends: Appends) -> None:
    appends.of("other").append([event("a", tags={"show": "42"})])

    assert appends.of("acme").append([event("a")], unless(show="42")).positions == (2,)
    assert appends.of("acme").append([event("b")], unless("SHOW.CLOSED")).positions == (3,)


def test_the_same_append_again_is_answered_as_it_was(store: EventStore) -> None:
    events = [event("a", tags={"show": "42"}), event("b", tags={"show": "42"})]
    first = store.append(events, unless(show="42"))
    store.append([event("c", tags={"show": "42"})])

    assert store.append(events, unless(show="42")) == first
    assert store.append([events[1]], unless(show="42")).positions == (2,)
    assert len(store.read((criterion(show="42"),)).events) == 3


def test_an_append_that_is_stored_in_part_stores_the_rest_on_its_condition(
    store: EventStore,
) -> None:
    store.append([event("a", tags={"show": "42"})])

    assert store.append([event("a", tags={"show": "42"}), event("b")]).positions == (1, 2)
    with pytest.raises(AppendConflict):
        store.append([event("a", tags={"show": "42"}), event("c")], unless(show="42"))


def test_an_event_named_twice_in_one_append_is_stored_once(store: EventStore) -> None:
    assert store.append([event("a"), event("b"), event("a")]).positions == (1, 2, 1)


def test_an_id_with_another_content_refuses_the_whole_append(store: EventStore) -> None:
    store.append([event("a", payload={"n": 1})])

    with pytest.raises(EventRefused) as refused:
        store.append([event("b"), event("a", payload={"n": 2})])
    with pytest.raises(EventRefused) as twice:
        store.append([event("c", payload={"n": 1}), event("c", payload={"n": 2})])

    assert (refused.value.reason, refused.value.faults[0].pointer) == (
        "id_conflict",
        "/events/1/id",
    )
    assert twice.value.faults[0].pointer == "/events/1/id"
    assert store.append([event("d")]).positions == (2,)


def test_fail_if_exists_looks_everywhere_whatever_after_says(store: EventStore) -> None:
    store.append([event("a", tags={"command": "c1"})])
    once = Condition((criterion(show="42"),), after=1, fail_if_exists=(criterion(command="c1"),))

    with pytest.raises(AppendConflict, match="anywhere") as refused:
        store.append([event("b")], once)

    assert (refused.value.exists, refused.value.positions) == (True, (1,))
    only = Condition(fail_if_exists=(criterion(command="c2"),))
    assert store.append([event("b", tags={"command": "c2"})], only).positions == (2,)
    with pytest.raises(AppendConflict, match="anywhere"):
        store.append([event("c", tags={"command": "c2"})], only)


def test_the_first_conflicting_positions_are_named_in_order(store: EventStore) -> None:
    store.append([event(f"e{n}", tags={"show": "42"}) for n in range(15)])

    with pytest.raises(AppendConflict) as refused:
        store.append(
            [event("late")], Condition((criterion(show="42"), criterion("seat.booked")), 2)
        )

    assert refused.value.positions == tuple(range(3, 13))


def test_a_position_that_the_log_has_not_reached_is_refused(store: EventStore) -> None:
    store.append([event("a")])

    with pytest.raises(ConditionInvalid, match="up to 1, found 2") as refused:
        store.append([event("b")], unless(show="42", after=2))

    assert refused.value.pointer == "/condition/after"
    assert store.append([event("b")], unless(show="42", after=1)).positions == (2,)


def test_a_bad_event_refuses_the_whole_append_and_names_every_fault(store: EventStore) -> None:
    bad = [
        event("a"),
        event("b", "no.such"),
        event("c", payload={"n": "one"}),
        {"type": "seat.booked"},
    ]

    with pytest.raises(EventRefused) as refused:
        store.append(bad)

    assert refused.value.reason == "type_unknown"
    assert [fault.pointer for fault in refused.value.faults] == [
        "/events/1/type", "/events/2/payload/n", "/events/3/source",
    ]  # fmt: skip
    assert refused.value.remedy
    assert store.append([event("d")]).positions == (1,)


def test_a_misspelt_type_in_a_condition_is_refused_because_it_would_check_nothing(
    store: EventStore,
) -> None:
    with pytest.raises(ConditionInvalid, match=r"nearest known type is seat\.booked") as refused:
        store.append([event("a")], unless("seat.bookd"))
    with pytest.raises(ConditionInvalid, match=r"seat\.bookd"):
        store.read((criterion("seat.bookd"),))

    assert refused.value.pointer == "/condition/query/items/0/types/0"


def test_what_was_appended_is_read_back_in_order_with_what_to_append_after(
    store: EventStore,
) -> None:
    store.append([event("a", tags={"show": "42"}), event("b"), event("c", tags={"show": "42"})])
    store.append([event("d")])

    found = store.read((criterion(show="42"),))

    assert [(e.position, e.envelope.id) for e in found.events] == [(1, "a"), (3, "c")]
    assert found.after == 4
    assert store.read((criterion(show="42"),), after=1).events == found.events[1:]


def test_a_read_that_was_cut_short_cannot_be_taken_for_everything(store: EventStore) -> None:
    store.append([event(f"e{n}", tags={"show": "42"}) for n in range(3)])

    cut = store.read((criterion(show="42"),), limit=2)
    whole = store.read((criterion(show="42"),), limit=3)

    assert (len(cut.events), cut.after) == (2, 2)
    assert (len(whole.events), whole.after) == (3, 3)
    with pytest.raises(AppendConflict):
        store.append([event("x")], unless(show="42", after=cut.after))


def test_an_event_that_matches_several_items_is_read_once(store: EventStore) -> None:
    store.append([event("a", tags={"show": "42", "seat": "A1"})])

    found = store.read((criterion(show="42"), criterion(seat="A1"), criterion("seat.booked")))

    assert [e.position for e in found.events] == [1]


@pytest.mark.parametrize(
    "value", ['"', "\\", "a,b", "{}", "\t\n", "日本", "NULL", "'; --", "%s $1"]
)
def test_any_tag_value_can_be_a_boundary(store: EventStore, value: str) -> None:
    store.append([event("a", tags={"show": value, "x": "y"})], unless(show=value))

    assert store.append([event("b")], unless(show=value + "x")).positions == (2,)
    with pytest.raises(AppendConflict):
        store.append([event("c")], unless(show=value))
    with pytest.raises(AppendConflict):
        store.append([event("c"), event("d")], unless(show=value, x="y"))
    assert store.read((criterion(show=value),)).events[0].envelope.tags["show"] == value


def test_ids_left_out_are_derived_from_an_idempotency_key(appends: Appends) -> None:
    calling = Calling("acme", key="order-7")
    first = appends.calling(calling).append([event(), event(payload={"n": 1})], unless(show="1"))

    assert appends.calling(calling).append([event(), event(payload={"n": 1})]) == first
    assert appends.calling(Calling("acme", key="order-8")).append([event()]).positions == (3,)


async def _awaited(store: EventStore) -> None:
    appended = await store.aappend([event("a", tags={"show": "42"})], unless(show="42"))
    found = await store.aread((criterion(show="42"),))

    assert appended.positions == (1,)
    assert [e.envelope.id for e in found.events] == ["a"]
    with pytest.raises(AppendConflict):
        await store.aappend([event("b")], unless(show="42"))


def test_everything_can_be_awaited(store: EventStore) -> None:
    import asyncio

    asyncio.run(_awaited(store))


def test_a_closed_store_takes_no_more(appends: Appends, store: EventStore) -> None:
    from penstock.base.errors import StoreUnavailable

    store.append([event("a")])
    appends.close()

    with pytest.raises(StoreUnavailable):
        store.append([event("b")])
