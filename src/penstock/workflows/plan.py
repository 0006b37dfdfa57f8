"""Prepare a definition for running: everything that can be looked up beforehand, once a version.

    definition ── Plan ──▶ for each step: its compiled input, who waits for it, its retry policy

Keep one `Plan` for each version of a workflow; it never changes and may be shared by threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from penstock.base.errors import Fault
from penstock.envelope.codec import encode
from penstock.envelope.envelope import PAYLOAD_BYTES_MAX, JsonObject, JsonValue
from penstock.registry.schema import PayloadCheck
from penstock.workflows.definition import WorkflowDefinition
from penstock.workflows.errors import ParametersInvalid
from penstock.workflows.params import Get, Scope, Unresolved, compile_template, holes
from penstock.workflows.run import Reason
from penstock.workflows.steps import (
    FANOUT_CONCURRENCY_DEFAULT,
    FANOUT_ITEMS_DEFAULT,
    FanoutStep,
    Kind,
    RetryPolicy,
    Step,
    WorkStep,
)

INPUT_BYTES_MAX = PAYLOAD_BYTES_MAX
FANOUT_BYTES_MAX = 16 * 1024 * 1024  # the inputs of all children together


class InputRefused(Exception):
    """An input that cannot be made, or is too large to be stored and sent."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """A step that an executor runs, ready to be given its input."""

    kind: Kind
    slug: str
    timeout_ms: int
    retry: RetryPolicy
    about: JsonObject  # `step` in templates
    is_fixed: bool  # the input has no templates: the same in every run
    render: Get

    def input(self, scope: Scope) -> tuple[JsonObject, int]:
        """The input and its size in bytes, 0 if it is fixed; InputRefused when there is none."""
        given = cast("JsonObject", _filled(self.render, scope))
        if self.is_fixed:
            return given, 0
        size = len(encode(given))
        if size > INPUT_BYTES_MAX:
            detail = f"expected an input up to {INPUT_BYTES_MAX} bytes, found {size}"
            raise InputRefused(Reason.INPUT_TOO_LARGE, detail)
        return given, size


@dataclass(frozen=True, slots=True)
class FanPlan:
    """A fan-out: where its items come from, and what is done with each."""

    collection: Get
    items_max: int
    concurrency: int
    child: WorkPlan

    def items(self, scope: Scope) -> list[JsonValue]:
        """The items; InputRefused when there is no list, or too long a one."""
        found = _filled(self.collection, scope)
        if not isinstance(found, list):
            detail = "expected a list of items, found something else"
            raise InputRefused(Reason.FANOUT_NOT_A_LIST, detail)
        if len(found) > self.items_max:
            detail = f"expected at most {self.items_max} items, found {len(found)}"
            raise InputRefused(Reason.FANOUT_TOO_LARGE, detail)
        return found

    def inputs(self, scope: Scope, step_id: str, items: list[JsonValue]) -> list[JsonObject]:
        """The input of every child; InputRefused names the item for which there is none."""
        inputs, bytes_total = [], 0
        for index, item in enumerate(items):
            place: JsonObject = {"index": index, "count": len(items), "parentStepId": step_id}
            try:
                given, size = self.child.input(
                    scope._replace(step=self.child.about, item=item, fanout=place)
                )
            except InputRefused as error:
                raise InputRefused(error.reason, f"item {index}: {error.detail}") from None
            inputs.append(given)
            bytes_total += size
            if bytes_total > FANOUT_BYTES_MAX:
                detail = f"expected inputs up to {FANOUT_BYTES_MAX} bytes together, found more"
                raise InputRefused(Reason.INPUT_TOO_LARGE, detail)
        return inputs


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step of the definition and its place among the others."""

    id: str
    work: WorkPlan | None  # None: a fan-out
    fan: FanPlan | None
    before: tuple[str, ...]
    after: tuple[str, ...]
    stores_as: str | None


@dataclass(frozen=True, slots=True)
class Caps:
    """What an installation allows a fan-out, whatever its definition says."""

    fanout_items: int = FANOUT_ITEMS_DEFAULT
    fanout_concurrency: int = FANOUT_CONCURRENCY_DEFAULT


_Check: TypeAlias = Callable[[JsonValue], tuple[Fault, ...]]


class Plan:
    """A definition made ready to run."""

    def __init__(self, definition: WorkflowDefinition, caps: Caps | None = None) -> None:
        self.definition = definition
        self.slug = definition.slug
        self.dag = definition.dag
        self.sinks = definition.dag.sinks
        self.steps = {
            step.id: _step_plan(step, definition, caps or Caps()) for step in definition.steps
        }
        self.output_faults = _check(definition.output_schema)
        self._parameter_faults = _check(definition.parameters_schema)

    def parameters(self, given: JsonObject) -> JsonObject:
        """The parameters of a run, defaults filled in; ParametersInvalid when they do not fit."""
        whole = {**self.definition.default_parameters, **given}
        found = self._parameter_faults(whole)
        if found:
            raise ParametersInvalid(found)
        return whole

    def work_at(self, address: str) -> WorkPlan:
        """How the step at an address is run: its kind, handler or service, and time limit."""
        plan = self.steps[address.partition("[")[0]]
        if plan.work is not None:
            return plan.work
        return cast("FanPlan", plan.fan).child


def _filled(render: Get, scope: Scope) -> JsonValue:
    try:
        return render(scope)
    except Unresolved as error:
        raise InputRefused(Reason.UNRESOLVED_INPUT, str(error)) from None


def _check(schema: JsonObject | None) -> _Check:
    if schema is None:
        return lambda _value: ()
    return PayloadCheck(schema).faults


def _step_plan(step: Step, definition: WorkflowDefinition, caps: Caps) -> StepPlan:
    return StepPlan(
        id=step.id,
        work=None if isinstance(step, FanoutStep) else _work_plan(step),
        fan=_fan_plan(step, caps) if isinstance(step, FanoutStep) else None,
        before=definition.dag.before[step.id],
        after=definition.dag.after[step.id],
        stores_as=next((name for _, name in step.stores()), None),
    )


def _fan_plan(step: FanoutStep, caps: Caps) -> FanPlan:
    return FanPlan(
        collection=compile_template(step.collection),
        items_max=min(step.max_items, caps.fanout_items),
        concurrency=min(step.max_concurrency, caps.fanout_concurrency),
        child=_work_plan(step.template),
    )


def _work_plan(step: WorkStep) -> WorkPlan:
    template = step.input_template()
    return WorkPlan(
        kind=Kind(step.type),
        slug=step.slug,
        timeout_ms=step.timeout_ms,
        retry=step.retry_policy,
        about={"id": step.id, "name": step.name or step.id},
        is_fixed=next(holes(template), None) is None,
        render=compile_template(template),
    )
