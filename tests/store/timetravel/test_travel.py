"""Going back in time, held to small histories in memory whose every state is known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.store.support import NOON, stored
from tests.store.timetravel.support import ISSUE, LATER, said, ticking, told, travel_over, value

from penstock.base.errors import NotFound, QueryInvalid, QueryTooSlow, ReducerFailed
from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.timetravel.boundary import boundary
from penstock.store.timetravel.diff import apply
from penstock.store.timetravel.in_memory import SnapshotsInMemory
from penstock.store.timetravel.lens import Lens
from penstock.store.timetravel.moment import START, Moment
from penstock.store.timetravel.reducer import reducer

STORY = told(
    {"title": "Slow", "status": "open"},
    {"assignee": {"id": "u1", "name": "Ada"}},
    {"status": "closed", "assignee": {"name": None}},
)


def received(position: int) -> Any:
    return STORY[position - 1].received_at


def test_the_state_is_that_of_the_newest_event_unless_a_moment_is_named() -> None:
    found = travel_over(STORY).state(ISSUE)

    assert found.state.value == {"title": "Slow", "status": "closed", "assignee": {"id": "u1"}}
    assert found.state.events == 3
    assert found.moment == Moment(3, received(3))


def test_the_state_as_of_a_position_knows_nothing_of_later_events() -> None:
    found = travel_over(STORY).state(ISSUE, as_of=2)

    assert found.state.value["status"] == "open"
    assert found.moment == Moment(2, received(2))
    assert found.state.events == 2


def test_the_state_as_of_an_instant_is_that_of_the_last_position_received_by_then() -> None:
    travel = travel_over(STORY)

    between = travel.state(ISSUE, as_of=received(2) + timedelta(milliseconds=1))

    assert between.moment == Moment(2, received(2))
    assert travel.state(ISSUE, as_of=received(2)) == between
    assert travel.state(ISSUE, as_of=received(2) - timedelta(milliseconds=1)).moment.position == 1


def test_before_the_first_event_the_state_is_empty() -> None:
    for moment in (0, NOON - timedelta(days=1)):
        found = travel_over(STORY).state(ISSUE, as_of=moment)

        assert (found.state.value, found.state.events) == ({}, 0)
        assert found.moment == START


def test_of_something_unheard_of_the_state_is_empty() -> None:
    found = travel_over(STORY).state(boundary("default", [("issueId", "43")]))

    assert (found.state.value, found.state.events, found.moment.position) == ({}, 0, 3)


def test_of_an_empty_log_the_state_is_empty() -> None:
    assert travel_over([]).state(ISSUE).moment == START


@pytest.mark.parametrize("moment", [4, LATER + timedelta(milliseconds=1)])
def test_the_future_is_refused_by_every_question(moment: Any) -> None:
    travel = travel_over(STORY)

    with pytest.raises(QueryInvalid, match="expected") as refused:
        travel.state(ISSUE, as_of=moment)
    assert refused.value.parameter == "asOf"
    with pytest.raises(QueryInvalid) as refused:
        travel.diff(ISSUE, begins=1, ends=moment)
    assert refused.value.parameter == "to"
    with pytest.raises(QueryInvalid) as refused:
        travel.replay(ISSUE, begins=moment)
    assert refused.value.parameter == "from"


def test_another_tenant_s_events_are_no_part_of_the_history() -> None:
    events = [*STORY, said(4, {"status": "stolen"}, tenant_id="other")]

    assert value(travel_over(events))["status"] == "closed"


def test_types_narrow_the_history() -> None:
    events = [*STORY, said(4, {"status": "reopened"}, type="asset.produced")]
    narrow = boundary("default", [("issueId", "42")], ["asset.*"])

    assert value(travel_over(events), narrow) == {"status": "reopened"}


def test_a_late_event_counts_where_the_log_has_it_and_not_where_it_occurred() -> None:
    late = said(4, {"status": "late"}, occurred_at=NOON - timedelta(days=9))

    travel = travel_over([*STORY, late])

    assert value(travel)["status"] == "late"
    assert value(travel, as_of=3)["status"] == "closed"


def test_a_diff_lists_what_changed_each_with_the_event_behind_it() -> None:
    found = travel_over(STORY).diff(ISSUE, begins=1, ends=3)

    assert [
        (c.change.pointer, c.change.before, c.change.after, c.event.position) for c in found.changes
    ] == [("/assignee", None, {"id": "u1"}, 3), ("/status", "open", "closed", 3)]
    assert (found.begins.position, found.ends.position) == (1, 3)


def test_a_diff_from_the_start_to_now_is_the_whole_state() -> None:
    found = travel_over(STORY).diff(ISSUE)

    assert [(c.change.kind, c.change.pointer, c.event.position) for c in found.changes] == [
        ("added", "/assignee", 3), ("added", "/status", 3), ("added", "/title", 1),
    ]  # fmt: skip


def test_what_changed_and_changed_back_is_no_difference() -> None:
    events = told({"a": 1, "b": 1}, {"a": 2}, {"a": 1, "b": 2})

    found = travel_over(events).diff(ISSUE, begins=1)

    assert [c.change.pointer for c in found.changes] == ["/b"]


def test_a_diff_of_a_moment_with_itself_is_empty_and_one_backwards_is_refused() -> None:
    travel = travel_over(STORY)

    assert travel.diff(ISSUE, begins=2, ends=2).changes == []
    with pytest.raises(QueryInvalid, match="no later than to"):
        travel.diff(ISSUE, begins=3, ends=1)


def test_a_replay_gives_every_event_with_what_it_changed() -> None:
    found = travel_over(STORY).replay(ISSUE)

    assert [step.event.position for step in found.steps] == [1, 2, 3]
    assert found.base.value == {}
    assert found.next_cursor is None
    state: JsonObject = found.base.value
    for step in found.steps:
        state = apply(state, step.changes)
        assert state == value(travel_over(STORY), as_of=step.event.position)


def test_a_replay_goes_on_page_by_page_from_the_state_it_reached() -> None:
    events = told(*({"n": n} for n in range(1, 12)))
    travel = travel_over(events)

    seen: list[int] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        page = travel.replay(ISSUE, cursor=cursor, limit=4)
        assert page.base.value == ({"n": len(seen)} if seen else {})
        assert page.base.events == len(seen)
        seen += [step.event.position for step in page.steps]
        cursor = page.next_cursor

    assert seen == list(range(1, 12))


def test_a_cursor_of_another_tenant_boundary_or_reducer_is_refused() -> None:
    foreign = boundary("acme", [("issueId", "42")])
    narrow = boundary("default", [("issueId", "42")], ["metastore.**"])
    travel = travel_over(STORY)
    cursor = travel.replay(ISSUE, limit=1).next_cursor

    assert cursor is not None
    asked: list[tuple[Any, Any]] = [
        (foreign, None), (narrow, None), (ISSUE, "last-write-wins-per-type"),
    ]  # fmt: skip
    for where, named in asked:
        with pytest.raises(QueryInvalid) as refused:
            travel.replay(where, reducer=named, cursor=cursor)
        assert refused.value.parameter == "cursor"


def test_a_replay_between_two_moments_starts_from_the_state_at_the_first() -> None:
    found = travel_over(STORY).replay(ISSUE, begins=1, ends=2)

    assert found.base.value == {"title": "Slow", "status": "open"}
    assert [step.event.position for step in found.steps] == [2]


def test_an_event_is_found_by_its_id_or_said_to_be_missing() -> None:
    travel = travel_over(STORY)

    assert travel.find("default", "evt-2") is STORY[1]
    with pytest.raises(NotFound):
        travel.find("other", "evt-2")


def test_a_reducer_of_one_s_own_decides_the_state() -> None:
    @reducer("count", tags=["issueId"])
    def count(state: JsonObject, event: Stored) -> JsonObject:
        return {"n": int(str(state.get("n", 0))) + 1}

    travel = travel_over(STORY, reducers=[count])

    assert value(travel, reducer="count") == {"n": 3}
    assert value(travel, reducer="count", as_of=2) == {"n": 2}


def test_a_reducer_that_raises_fails_only_where_history_reaches_the_event() -> None:
    @reducer("picky")
    def picky(state: JsonObject, event: Stored) -> JsonObject:
        if event.position == 3:
            raise ValueError("not this one")
        return {"seen": event.position}

    travel = travel_over(STORY, reducers=[picky])

    assert value(travel, reducer="picky", as_of=2) == {"seen": 2}
    for ask in (travel.state, travel.diff, travel.replay):
        with pytest.raises(ReducerFailed, match=r"event evt-3 .* at position 3"):
            ask(ISSUE, reducer="picky")


def test_a_fold_that_takes_too_long_is_stopped_and_goes_on_from_its_snapshots() -> None:
    events = told(*({"n": n} for n in range(1, 4_001)))
    snapshots = SnapshotsInMemory()
    hasty = travel_over(
        events, snapshots=snapshots, patience_s=5, timer=ticking(2).__next__, every=500
    )

    with pytest.raises(QueryTooSlow, match="expected to reach position 4000") as stopped:
        hasty.state(ISSUE)

    assert "Ask again" in stopped.value.remedy
    for _ in range(10):
        try:
            assert value(hasty) == {"n": 4_000}
            break
        except QueryTooSlow:
            continue
    else:
        pytest.fail("it never got there")


def test_a_lens_is_what_the_reducer_sees_through() -> None:
    def shout(seen: Stored) -> Stored:
        return said(seen.position, {"loud": str(seen.envelope.payload).upper()})

    travel = travel_over(STORY[:1], lens=lambda: Lens(shout, "shouting"))

    assert value(travel) == {"loud": "{'TITLE': 'SLOW', 'STATUS': 'OPEN'}"}
    assert travel.replay(ISSUE).steps[0].event is STORY[0]


def test_a_correlation_is_a_history_too() -> None:
    events = [
        stored(1, correlation_id="req", payload={"a": 1}),
        stored(2, correlation_id="other", payload={"a": 2}),
        stored(3, correlation_id="req", payload={"b": 3}),
    ]

    assert value(travel_over(events), boundary("default", correlation_id="req")) == {"a": 1, "b": 3}
