"""Say which steps of workflows read a field of the event that launched them.

    {{ run.trigger.event.payload.customer.id }}    reads /customer/id

The part of `registry.readers.Readers` that triggers do not know: a step reads what its run was
launched with, so it counts for the types that a trigger of its workflow listens to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeAlias

from penstock.base.pointers import pointer as pointer_of
from penstock.envelope.names import matches_glob
from penstock.registry.readers import Reader
from penstock.triggers.readers import Read, Use, is_at_or_below
from penstock.triggers.trigger import Trigger, TriggerStatus
from penstock.workflows.definition import Workflow, WorkflowDefinition
from penstock.workflows.params import Path, holes
from penstock.workflows.steps import FanoutStep, Step

_EVENT: Path = ("run", "trigger", "event", "payload")
_EVENTS: Path = ("run", "trigger", "events", "*", "payload")
WorkflowsOf: TypeAlias = Callable[[str], Iterable[Workflow]]


class StepReaders:
    """The steps of the workflows that some triggers launch, looked up anew each time."""

    def __init__(
        self, triggers: Callable[[], Iterable[Trigger]], workflows_of: WorkflowsOf
    ) -> None:
        self._triggers = triggers
        self._workflows_of = workflows_of

    def reading(self, event_type: str, pointers: Collection[str]) -> list[Reader]:
        """Every step that reads one of these places of the type's payload, or below it."""
        launched: dict[str, set[str]] = {}
        for trigger in self._triggers():
            spec = trigger.spec
            if spec.status is not TriggerStatus.DISABLED and matches_glob(
                spec.event_type, event_type
            ):
                launched.setdefault(trigger.tenant_id, set()).add(trigger.workflow_slug)
        wanted = [_places(pointer) for pointer in pointers]
        return [
            reader
            for tenant_id, slugs in launched.items()
            for workflow in self._workflows_of(tenant_id)
            if workflow.definition.slug in slugs
            for reader in _readers(workflow, wanted)
        ]


def step_reads(definition: WorkflowDefinition) -> Iterator[Read]:
    """Every place of the event's payload that the steps of a workflow look at."""
    for step in definition.steps:
        for trail in dict.fromkeys(_trails(step)):
            yield Read(f"step {step.id} of the workflow", "", trail, Use.PASSED)


def _readers(workflow: Workflow, wanted: list[Path]) -> Iterator[Reader]:
    definition = workflow.definition
    for step in definition.steps:
        for trail in dict.fromkeys(_trails(step)):
            if any(is_at_or_below(trail, place) for place in wanted):
                yield Reader("step", f"{definition.slug}/{step.id}", pointer_of(trail))


def _trails(step: Step) -> Iterator[Path]:
    """Every place of the event's payload that a step looks at."""
    found = (
        [step.collection, step.template.input_template()]
        if isinstance(step, FanoutStep)
        else [step.input_template()]
    )
    for template in found:
        for hole in holes(template):
            path = tuple("*" if name.isdecimal() else name for name in hole.path or ())
            for root in (_EVENT, _EVENTS):
                if path[: len(root)] == root and len(path) > len(root):
                    yield path[len(root) :]


def _places(pointer: str) -> Path:
    parts = pointer.split("/")[1:]
    return tuple(
        "*" if part.isdecimal() else part.replace("~1", "/").replace("~0", "~") for part in parts
    )
