"""Folding is pure, and a reducer that misbehaves is named with the event it misbehaved on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.store.timetravel.support import said, told

from penstock.base.errors import ReducerFailed
from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.timetravel import state as module
from penstock.store.timetravel.reducer import LAST_WRITE_WINS, Reducer
from penstock.store.timetravel.state import State, fold, steps


def reducing(result: Any) -> Reducer:
    def reduce(state: JsonObject, event: Stored) -> JsonObject:
        if isinstance(result, Exception):
            raise result
        return result(state, event) if callable(result) else result  # type: ignore[no-any-return]

    return Reducer("strange", reduce)


def count_in_place(state: JsonObject, event: Stored) -> JsonObject:
    state["n"] = int(str(state.get("n", 0))) + 1
    state.setdefault("seen", []).append(event.envelope.id)  # type: ignore[union-attr]
    return state


def folded_whole(reducer: Reducer, events: list[Stored]) -> State:
    return fold(reducer, State(), events, upto=events[-1].position)


def stepped_through(reducer: Reducer, events: list[Stored]) -> State:
    return [*steps(reducer, State(), events)][-1].state


Walk = Callable[[Reducer, list[Stored]], State]
both = pytest.mark.parametrize("walk", [folded_whole, stepped_through])


def test_folding_goes_on_from_any_state() -> None:
    events = told({"a": 1}, {"b": 2}, {"a": 3})
    begun = fold(LAST_WRITE_WINS, State(), events[:2], upto=2)

    whole = fold(LAST_WRITE_WINS, begun, events[2:], upto=3)

    assert whole == fold(LAST_WRITE_WINS, State(), events, upto=3) == State({"a": 3, "b": 2}, 3, 3)


def test_events_of_other_types_pass_by_uncounted() -> None:
    only = Reducer("only", LAST_WRITE_WINS.reduce, types=("metastore.record.*",))
    events = [said(1, {"a": 1}), said(2, {"a": 2}, type="asset.produced")]

    assert fold(only, State(), events, upto=2) == State({"a": 1}, 1, 2)
    assert [bool(step.changes) for step in steps(only, State(), events)] == [True, False]


def test_each_step_has_what_its_event_changed_and_the_state_after_it() -> None:
    found = list(steps(LAST_WRITE_WINS, State(), told({"a": 1}, {"a": 2, "b": 1}, {"b": None})))

    assert [[c.pointer for c in step.changes] for step in found] == [["/a"], ["/a", "/b"], ["/b"]]
    assert [step.state.value for step in found] == [{"a": 1}, {"a": 2, "b": 1}, {"a": 2}]
    assert [step.state.events for step in found] == [1, 2, 3]


def test_a_reducer_that_writes_into_its_state_does_not_spoil_the_steps_before() -> None:
    found = list(steps(reducing(count_in_place), State(), told({}, {}, {})))

    assert [step.state.value["n"] for step in found] == [1, 2, 3]
    assert found[0].state.value["seen"] == ["evt-1"]
    assert all(step.changes for step in found)


def test_a_reducer_that_writes_into_its_state_folds_to_the_same_as_step_by_step() -> None:
    events = told({}, {}, {})

    folded = folded_whole(reducing(count_in_place), events)

    assert folded == stepped_through(reducing(count_in_place), events)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (ZeroDivisionError("by nothing"), "ZeroDivisionError: by nothing"),
        (KeyError("k"), "KeyError"),
        (RecursionError("deep"), "RecursionError"),
        (ValueError("\ud800\0"), "ValueError"),
        (None, "NoneType"),
        ([], "list"),
        ({"at": datetime.now(UTC)}, "not JSON"),
        ({"n": float("nan")}, "not JSON"),
        ({"n": {1, 2}}, "not JSON"),
        ({1: "a"}, "not JSON"),
        ({"n": 2**70}, "not JSON"),
        ({"n": "\ud800"}, "not JSON"),
        ({"n": "\0"}, "not JSON"),
        ({"n": 2**63}, "not JSON"),
    ],
)
@both
def test_a_reducer_that_gives_no_state_is_an_error_naming_the_event(
    result: Any, why: str, walk: Walk
) -> None:
    strange, events = reducing(result), [said(7, {}, id="evt-culprit")]

    with pytest.raises(ReducerFailed) as failed:
        walk(strange, events)

    assert failed.value.code == "reducer_failed"
    assert "event evt-culprit (metastore.record.updated) at position 7" in failed.value.detail
    assert "strange@1" in failed.value.detail
    assert why in failed.value.detail
    failed.value.detail.encode()


@both
def test_a_state_nested_too_deep_to_be_json_is_refused(walk: Walk) -> None:
    def deeper(state: JsonObject, event: Stored) -> JsonObject:
        return {"in": state}

    with pytest.raises(ReducerFailed, match="not JSON"):
        walk(reducing(deeper), told(*({} for _ in range(400))))


@both
def test_a_state_that_grows_without_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, walk: Walk
) -> None:
    monkeypatch.setattr(module, "STATE_BYTES_MAX", 1_000)
    events = told(*({f"k{n}": "x" * 90} for n in range(20)))

    with pytest.raises(ReducerFailed, match="at most 1000 bytes from last-write-wins@1") as failed:
        walk(LAST_WRITE_WINS, events)
    assert "Narrow the boundary" in failed.value.remedy
