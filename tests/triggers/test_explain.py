"""Why an event did or did not start something, in JSON and in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.triggers.definitions import NOON, document, predicates

from penstock.triggers.delivery import HistoryEntry, Reason, Stage, Status
from penstock.triggers.explain import Explanation

CLAUSES: tuple[dict[str, Any], ...] = (
    {"path": "$.payload.tier", "operator": "equals", "value": "gold"},
    {"any": [{"path": "$.payload.n", "operator": "gt", "value": 3}]},
)


def filtered(payload: Any) -> Explanation:
    trace = predicates(*CLAUSES).trace(document(payload))
    return Explanation("t-1", 3, "evt-7", 7, Stage.PREDICATES, "filtered", None, NOON, trace)


def test_the_first_comparison_that_did_not_hold_is_the_answer() -> None:
    assert filtered({"tier": "tin", "n": 9}).sentence() == (
        'not started: $.payload.tier equals "gold", found "tin"'
    )
    assert filtered({"tier": "gold"}).sentence() == ("not started: $.payload.n gt 3, found nothing")


def test_what_is_asked_and_what_is_found_is_said_as_json() -> None:
    def said(clause: dict[str, Any], payload: Any) -> str:
        trace = predicates(clause).trace(document(payload))
        filtered = Explanation("t", 1, "e", 1, Stage.PREDICATES, "filtered", None, NOON, trace)
        return filtered.sentence().removeprefix("not started: $.payload.x ")

    path = {"path": "$.payload.x"}
    assert said({**path, "operator": "exists"}, {}) == "exists, found nothing"
    assert said({**path, "operator": "in", "values": [True, None]}, {"x": {"a": None}}) == (
        'in [true,null], found {"a":null}'
    )
    inner = {**path, "operator": "equals", "value": "test"}
    assert said({"not": inner}, {"x": "test"}) == (
        'not started: not $.payload.x equals "test", found "test"'
    )


def test_other_verdicts_say_stage_reason_and_run() -> None:
    skipped = replace(
        filtered({}), stage=Stage.IDEMPOTENCY, verdict="skipped", reason=Reason.DUPLICATE_KEY,
        run_id="run-1",
    )  # fmt: skip
    unwanted = replace(filtered({}), stage=None, verdict="unwanted", predicates=None)

    assert skipped.sentence() == "skipped at idempotency (duplicate_key), run run-1"
    assert unwanted.sentence() == "unwanted"


def test_an_explanation_shows_everything_it_knows() -> None:
    entry = HistoryEntry(
        "d-1", 12, NOON, 3, 1, Status.LAUNCHED, Stage.LAUNCH, None, {"runId": "run-1"}
    )
    shown = replace(
        filtered({"tier": "gold", "n": 4}), verdict="launched", stage=Stage.LAUNCH,
        delivery_id="d-1", run_id="run-1", history=(entry,),
    ).wire()  # fmt: skip

    assert shown["triggerVersion"] == 3
    assert shown["position"] == "7"
    assert shown["judgedAt"] == "2026-03-01T12:00:00.000Z"
    assert shown["history"] == [
        {
            "pass": 12,
            "judgedAt": "2026-03-01T12:00:00.000Z",
            "triggerVersion": 3,
            "attempt": 1,
            "status": "launched",
            "stage": "launch",
            "reason": None,
            "detail": {"runId": "run-1"},
        }
    ]
    assert isinstance(shown["predicates"], dict)
    assert shown["predicates"]["outcome"] is True


def test_a_recomputed_answer_equals_the_kept_one() -> None:
    kept = filtered({"tier": "tin"})

    assert replace(kept, recomputed=True) == kept
