"""Reducers come from packages by entry point, and a broken one spoils nothing else."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest
from tests.store.timetravel.support import ISSUE

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.timetravel import roster
from penstock.store.timetravel.boundary import boundary
from penstock.store.timetravel.reducer import LAST_WRITE_WINS, Reducer
from penstock.store.timetravel.roster import GROUP, Roster, gather, installed


def keep(state: JsonObject, event: Stored) -> JsonObject:
    return state


OURS = Reducer("issue", keep, 2, tags=("issueId",))


class Offered:
    def __init__(self, name: str, what: object) -> None:
        self.name = name
        self._what = what

    def load(self) -> object:
        if isinstance(self._what, Exception):
            raise self._what
        return self._what


def test_without_a_name_the_last_write_wins() -> None:
    assert Roster().find(None, ISSUE) is LAST_WRITE_WINS


def test_a_package_s_reducer_is_found_by_its_name() -> None:
    found = gather([Offered("any", OURS)])

    assert found.find("issue", ISSUE) is OURS
    assert found.names == ["issue", "last-write-wins", "last-write-wins-per-type"]


def test_an_unknown_reducer_is_refused_with_the_names_there_are_and_the_nearest() -> None:
    with pytest.raises(QueryInvalid) as refused:
        gather([Offered("issue", OURS)]).find("isue", ISSUE)

    assert refused.value.parameter == "reducer"
    assert "last-write-wins" in refused.value.detail
    assert "did you mean issue?" in refused.value.detail


def test_a_reducer_is_refused_for_a_history_it_is_not_meant_for() -> None:
    with pytest.raises(QueryInvalid, match="one of the tags issueId for the reducer issue"):
        gather([Offered("issue", OURS)]).find("issue", boundary("default", [("prId", "7")]))


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (ImportError("no module named x"), "ImportError: no module named x"),
        (RuntimeError("at import"), "RuntimeError: at import"),
        (keep, "expected a Reducer, found function"),
        (Reducer("last-write-wins", keep), "found last-write-wins taken"),
    ],
)
def test_a_broken_reducer_says_why_when_asked_for_and_leaves_the_others_alone(
    what: object, why: str
) -> None:
    found = gather([Offered("broken", what), Offered("issue", OURS)])

    assert found.find("issue", ISSUE) is OURS
    assert found.find(None, ISSUE) is LAST_WRITE_WINS
    with pytest.raises(QueryInvalid) as refused:
        found.find("broken", ISSUE)
    assert why in refused.value.detail


def test_a_reference_finds_only_the_very_version() -> None:
    found = gather([Offered("issue", OURS)])

    assert found.by_reference("issue@2") is OURS
    assert found.by_reference("issue@1") is None
    assert found.by_reference("other@1") is None


def test_entry_points_of_the_group_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(*, group: str) -> Any:
        assert group == GROUP == "penstock.reducers"
        return EntryPoints(
            [EntryPoint("issue", f"{__name__}:OURS", GROUP), EntryPoint("gone", "no.such:x", GROUP)]
        )

    monkeypatch.setattr(roster, "entry_points", listed)
    monkeypatch.setattr("sys.modules", {**__import__("sys").modules, __name__: _module()})

    found = installed()

    assert found.find("issue", ISSUE).reference == "issue@2"
    assert "ModuleNotFoundError" in found.broken["gone"]


def _module() -> Any:
    import types

    made = types.ModuleType(__name__)
    made.__dict__["OURS"] = OURS
    return made
