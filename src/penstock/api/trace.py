"""Join what one correlation left behind into a tree: what happened, and what it led to.

    event ──▶ delivery (what a trigger made of it) ──▶ run ──▶ step ──▶ event ──▶ …

Pure: lists in, one tree out. Children are in order of time. Every node is there exactly once, also
when events name each other as their cause: a circle is cut at its oldest event. A node whose cause
is not among the lists is a root and names it as `missing`. tests/api/test_trace.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from penstock.base.clock import format_instant
from penstock.envelope.context import METADATA_KEY
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.triggers.delivery import Delivery, Role
from penstock.workflows.book.views import RunView, StepView
from penstock.workflows.queue.job import step_name

Kind: TypeAlias = Literal["event", "delivery", "run", "step"]
Key: TypeAlias = tuple[Kind, str]
LEVELS_MAX = 40  # of nesting in the answer; what is deeper hangs at the last level
_ORDER: dict[str, int] = {"event": 0, "delivery": 1, "run": 2, "step": 3}


@dataclass(slots=True)
class Node:
    """One thing that happened."""

    kind: Kind
    id: str
    at: datetime
    status: str | None
    about: JsonObject
    cause: Key | None = None  # where it belongs, if that is there
    missing: str | None = None  # the id of a cause that is not there
    children: list[Node] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return self.kind, self.id

    @property
    def place(self) -> tuple[datetime, int, str]:
        """Its place among its siblings: by time, and causes before what they cause."""
        return self.at, _ORDER[self.kind], self.id

    def wire(self) -> JsonObject:
        """The node and what it led to."""
        return {
            **self.line(),
            "children": [child.wire() for child in self.children],
        }

    def line(self) -> JsonObject:
        """The node alone."""
        found: JsonObject = {
            "kind": self.kind,
            "id": self.id,
            "at": format_instant(self.at),
            "status": self.status,
            **self.about,
        }
        if self.cause is not None:
            found["parent"] = {"kind": self.cause[0], "id": self.cause[1]}
        if self.missing is not None:
            found["missing"] = self.missing
        return found


def build_trace(
    events: Iterable[Stored],
    deliveries: Iterable[Delivery] = (),
    runs: Iterable[RunView] = (),
    steps: Iterable[StepView] = (),
) -> list[Node]:
    """The roots of the tree, oldest first."""
    stored, made, begun, done = [*events], [*deliveries], [*runs], [*steps]
    nodes: dict[Key, Node] = {}
    for node in (
        *(_event(each) for each in stored), *(_delivery(each) for each in made),
        *(_run(each) for each in begun), *(_step(each) for each in done),
    ):  # fmt: skip
        nodes.setdefault(node.key, node)
    launched = _launched_by(made)
    wanted: dict[Key, list[Key]] = {("event", each.envelope.id): _above(each) for each in stored}
    wanted |= {("delivery", each.id): [("event", each.event_id)] for each in made}
    wanted |= {("run", each.id): _above_run(each, launched) for each in begun}
    wanted |= {("step", each.id): _above_step(each) for each in done}
    for key, node in nodes.items():
        _join(node, wanted[key], nodes)
    _cut_circles(nodes)
    return _grow(nodes)


def walk(roots: Sequence[Node]) -> Iterator[tuple[int, Node]]:
    """Every node with its depth, causes before what they led to."""
    waiting = [(0, root) for root in reversed(roots)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        waiting += [(depth + 1, child) for child in reversed(node.children)]


def _event(stored: Stored) -> Node:
    envelope = stored.envelope
    about: JsonObject = {
        "type": envelope.type,
        "source": envelope.source,
        "severity": stored.severity.value,
        "position": str(stored.position),
        "correlationId": envelope.correlation_id,
    }
    return Node("event", envelope.id, envelope.occurred_at, None, about)


def _delivery(delivery: Delivery) -> Node:
    about: JsonObject = {
        "triggerId": delivery.trigger_id,
        "triggerVersion": delivery.trigger_version,
        "workflowSlug": delivery.workflow_slug,
        "stage": str(delivery.stage),
        "reason": delivery.reason and str(delivery.reason),
        "role": delivery.role and str(delivery.role),
        "workflowRunId": delivery.run_id,
        "errorMessage": delivery.last_error,
    }
    return Node("delivery", delivery.id, delivery.created_at, str(delivery.status), about)


def _run(run: RunView) -> Node:
    shown = run.wire()
    names = (
        "workflowSlug", "workflowVersion", "runKey", "triggeredBy", "failureReason",
        "errorMessage", "replayOf", "startedAt", "completedAt", "durationMs",
    )  # fmt: skip
    return Node("run", run.id, run.created_at, run.status, {name: shown[name] for name in names})


def _step(step: StepView) -> Node:
    shown = step.wire()
    names = (
        "stepId", "attempt", "failureReason", "errorMessage", "startedAt", "completedAt",
        "durationMs",
    )  # fmt: skip
    return Node(
        "step", step.id, step.created_at, step.status, {name: shown[name] for name in names}
    )


def _launched_by(deliveries: Iterable[Delivery]) -> dict[str, str]:
    """For each run the delivery that started it, not those that found it running."""
    found: dict[str, str] = {}
    for each in deliveries:
        if each.run_id is not None and each.role is Role.TRIGGERED:
            found[each.run_id] = each.id
    return found


def _above(stored: Stored) -> list[Key]:
    """What published an event, nearest first: a step, a run, the event that caused it."""
    envelope, found = stored.envelope, list[Key]()
    context = envelope.metadata.get(METADATA_KEY)
    for place, said in (("step", context), ("run", context), ("run", envelope.payload)):
        name = "workflowRunStepId" if place == "step" else "workflowRunId"
        key = _text(said, name)
        # What others say about a run in their payload does not make it the run's own event.
        if key is not None and (said is context or envelope.source == "core.workflows"):
            found.append(("step", key) if place == "step" else ("run", key))
    if envelope.causation_id is not None:
        found.append(("event", envelope.causation_id))
    return found


def _above_run(run: RunView, launched: dict[str, str]) -> list[Key]:
    found: list[Key] = []
    if run.replay_of is not None:
        found.append(("run", run.replay_of))
    elif run.id in launched:
        found.append(("delivery", launched[run.id]))
    if run.causation_id is not None:
        found.append(("event", run.causation_id))
    return found


def _above_step(step: StepView) -> list[Key]:
    if step.fanout_index is None:
        return [("run", step.run_id)]
    return [("step", step_name(step.run_id, step.step_id)), ("run", step.run_id)]


def _join(node: Node, wanted: Sequence[Key], nodes: dict[Key, Node]) -> None:
    """Hang a node below the nearest cause that is there."""
    node.cause = next((key for key in wanted if key in nodes and key != node.key), None)
    if node.cause is None and wanted and wanted[-1] != node.key:
        node.missing = wanted[-1][1]


def _cut_circles(nodes: dict[Key, Node]) -> None:
    """Make a root of the oldest node of every circle; whoever publishes can name any cause."""
    settled: set[Key] = set()
    for start in nodes:
        path: dict[Key, None] = {}
        key: Key | None = start
        while key is not None and key not in settled and key not in path:
            path[key] = None
            key = nodes[key].cause
        if key is not None and key in path:
            passed = [*path]
            circle = passed[passed.index(key) :]
            first = min((nodes[each] for each in circle), key=lambda each: each.place)
            first.missing, first.cause = first.cause and first.cause[1], None
        settled |= path.keys()


def _grow(nodes: dict[Key, Node]) -> list[Node]:
    """Put every node below its cause, oldest first, level by level, and no deeper than bearable."""
    led_to: dict[Key | None, list[Node]] = {}
    for node in sorted(nodes.values(), key=lambda each: each.place):
        led_to.setdefault(node.cause, []).append(node)
    roots = led_to.get(None, [])
    waiting = [(1, root, root) for root in roots]
    while waiting:
        level, node, above = waiting.pop()
        holder = node if level < LEVELS_MAX else above
        for child in led_to.get(node.key, []):
            holder.children.append(child)
            waiting.append((min(level + 1, LEVELS_MAX), child, holder))
    for node in nodes.values():
        node.children.sort(key=lambda each: each.place)
    return roots


def _text(value: JsonValue, name: str) -> str | None:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None
