"""Launch what may launch: render, hand over, and write down what came of it.

    parameters ──▶ run key ──▶ start ──▶ launched · attached
        └────────────┴───────────┴─────▶ failed (again later) · dead

A shadow trigger does all of it but start. A batch launches with all of its events; what happens to
the triggering one happens to all.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from penstock.base.ids import derived_id
from penstock.envelope.envelope import JsonValue
from penstock.triggers import breaker
from penstock.triggers.compiled import CompiledTrigger, Scope
from penstock.triggers.delivery import Launch, Launched, LaunchOutcome, Refused
from penstock.triggers.loops import depth_of
from penstock.triggers.ongoing import Case, Ongoing
from penstock.triggers.template import TemplateFailed
from penstock.triggers.throttle import note_launch
from penstock.triggers.words import Reason, RetryState, Role, Stage, Status

_DETAIL_CHARS_MAX = 2_000


def attempt(p: Ongoing, case: Case, others: list[Case]) -> None:
    """Try to launch a run for a case, and for the `others` of its batch (before it, in order)."""
    documents = tuple(c.sight.document for c in (*others, case)) if case.group_id else ()
    scope = Scope(case.sight.document, p.at, documents)
    try:
        parameters = case.compiled.parameters(scope)
    except TemplateFailed as error:
        fail(p, case, Stage.LAUNCH, Reason.PARAMETERS_FAILED, error.detail, others)
        return
    try:
        run_key = run_key_of(case.compiled, scope, parameters, case.delivery_id)
    except TemplateFailed as error:
        fail(p, case, Stage.RUN_KEY, Reason.RUN_KEY_FAILED, error.detail, others)
        return
    attempts = (case.prior.attempts if case.prior else 0) + 1
    if case.shadow:
        said = {"run_key": run_key, "parameters": parameters, "attempts": attempts}
        _succeed(p, case, others, Role.TRIGGERED, None, said)
        return
    launch = _launch(p, case, others, parameters, run_key, attempts)
    outcome: LaunchOutcome = p.start(launch)
    if isinstance(outcome, Refused):
        p.refusals[case.delivery_id] = outcome.detail
        fail(p, case, Stage.LAUNCH, Reason.LAUNCH_REFUSED, outcome.detail, others)
        return
    _launched(p, case, others, launch, outcome, attempts)


def run_key_of(
    compiled: CompiledTrigger, scope: Scope, parameters: JsonValue, delivery_id: str
) -> str:
    """The run key that the template gives, or an automatic one that no other delivery has."""
    given = None
    if compiled.spec.run_key_template is not None:
        given = compiled.run_key(scope, parameters)
    return given or f"trigger-{compiled.trigger.id}-{delivery_id}"


def fail(
    p: Ongoing,
    case: Case,
    stage: Stage,
    reason: Reason,
    detail: str,
    others: list[Case] | None = None,
) -> None:
    """Note a failed attempt: another one follows after a while, or the delivery is dead."""
    attempts = (case.prior.attempts if case.prior else 0) + 1
    detail = detail[:_DETAIL_CHARS_MAX]
    said: dict[str, Any] = {"attempts": attempts, "last_error": detail}
    if attempts >= case.compiled.spec.max_attempts:
        for each in (*(others or ()), case):
            p.settle(each, Status.DEAD, stage, reason, **said, retry_state=RetryState.COMPLETED)
    else:
        again_at = p.at + p.limits.backoff.delay(case.delivery_id, attempts)
        p.settle(case, Status.FAILED, stage, reason, **said, next_attempt_at=again_at)
    envelope = case.sight.stored.envelope
    p.source_tally((envelope.tenant_id, envelope.source)).failures += 1
    breaker.failed(p, case.state, detail)


def _launch(
    p: Ongoing,
    case: Case,
    others: list[Case],
    parameters: JsonValue,
    run_key: str,
    attempts: int,
) -> Launch:
    trigger, stored, delivery_id = case.compiled.trigger, case.sight.stored, case.delivery_id
    return Launch(
        run_id=derived_id(_ms(p.at), "run", delivery_id, str(attempts)),
        tenant_id=trigger.tenant_id,
        workflow_slug=trigger.workflow_slug,
        trigger=trigger,
        delivery_id=delivery_id,
        delivery_ids=(*(c.delivery_id for c in others), delivery_id),
        events=(*(c.sight.stored for c in others), stored),
        parameters=parameters,
        run_key=run_key,
        dedupe_key=case.dedupe_key,
        correlation_id=stored.envelope.correlation_id,
        causation_id=stored.envelope.id,
        depth=depth_of(p, case),
        launched_at=p.at,
    )


def _launched(
    p: Ongoing, case: Case, others: list[Case], launch: Launch, outcome: Launched, attempts: int
) -> None:
    said = {"run_key": launch.run_key, "parameters": launch.parameters, "attempts": attempts}
    role = Role.ATTACHED if outcome.attached else Role.TRIGGERED
    _succeed(p, case, others, role, outcome.run_id, said)
    p.launches.append(launch)
    if not outcome.attached:
        case.state.run_started(outcome.run_id, case.group_key)


def _succeed(
    p: Ongoing, case: Case, others: list[Case], role: Role, run_id: str | None, said: dict[str, Any]
) -> None:
    status = Status.MATCHED if case.shadow else Status.LAUNCHED
    reason = Reason.SHADOW if case.shadow else None
    for other in others:
        p.settle(other, status, Stage.LAUNCH, reason, role=Role.INCLUDED, run_id=run_id)
    p.settle(case, status, Stage.LAUNCH, reason, role=role, run_id=run_id, **said)
    note_launch(p, case)
    breaker.succeeded(p, case.state)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
