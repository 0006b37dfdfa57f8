"""A trace is one tree: every node once, below what led to it, in order of time."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.api.trace import LEVELS_MAX, Node, build_trace, walk
from penstock.envelope.codec import encode
from penstock.envelope.envelope import Envelope, Severity, Stored
from penstock.triggers.delivery import Delivery, Role, Stage, Status
from penstock.workflows.book.views import RunView, StepView

START = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def event(
    event_id: str, second: int, cause: str | None = None, *, step: str | None = None, **said: Any
) -> Stored:
    metadata: dict[str, Any] = {}
    if step is not None:
        run_id = step.rpartition(".")[0]
        metadata = {"__apphubWorkflow": {"workflowRunStepId": step, "workflowRunId": run_id}}
    fields: dict[str, Any] = {"type": "orders.order.placed", "source": "orders.api", "payload": {}}
    envelope = Envelope(
        **(fields | said), id=event_id, occurred_at=at(second), causation_id=cause,
        correlation_id="c-1", metadata=metadata,
    )  # fmt: skip
    return Stored(
        position=second + 1, envelope=envelope, received_at=at(second), severity=Severity.INFO,
        severity_rule="default", schema_hash=None, content_hash=b"",
    )  # fmt: skip


def delivery(
    delivery_id: str, event_id: str, second: int, run_id: str | None = None, **said: Any
) -> Delivery:
    fields: dict[str, Any] = {
        "status": Status.LAUNCHED if run_id else Status.SKIPPED, "reason": None,
        "role": Role.TRIGGERED if run_id else None, "run_id": run_id,
    }  # fmt: skip
    return Delivery(
        id=delivery_id, tenant_id="default", trigger_id="t-1", trigger_version=1,
        workflow_slug="ship", event_id=event_id, event_position=1, event_type="x", event_source="y",
        correlation_id="c-1", stage=Stage.LAUNCH, created_at=at(second), updated_at=at(second),
        first_pass=1, last_pass=1, ticket=1, **(fields | said),
    )  # fmt: skip


def run(
    run_id: str, second: int, cause: str | None = None, replay_of: str | None = None
) -> RunView:
    return RunView(
        run_id, "default", "d-1", 1, "ship", "succeeded", None, {}, {}, None, None, None, None,
        "event-trigger", None, "t-1", None, "c-1", cause, replay_of, at(second), at(second),
        at(second + 1), at(second + 1),
    )  # fmt: skip


def step(run_id: str, address: str, second: int, index: int | None = None) -> StepView:
    step_id = address.partition("[")[0]
    return StepView(
        run_id, address, step_id, index, "succeeded", 1, {}, {}, None, None, False, None, None,
        "pending", 0, {}, at(second), at(second), at(second), at(second), None, None, None,
    )  # fmt: skip


def shape(nodes: list[Node]) -> list[Any]:
    return [node.id if not node.children else (node.id, shape(node.children)) for node in nodes]


def test_event_delivery_run_step_and_event_are_one_chain() -> None:
    roots = build_trace(
        [event("e1", 0), event("e2", 4, "e1", step="r1.a")],
        [delivery("d1", "e1", 1, "r1"), delivery("d2", "e2", 5)],
        [run("r1", 2, "e1")],
        [step("r1", "a", 3)],
    )

    assert shape(roots) == [("e1", [("d1", [("r1", [("r1.a", [("e2", ["d2"])])])])])]


def test_the_states_of_a_run_hang_below_the_run_and_not_below_what_started_it() -> None:
    told = event(
        "run-r1-succeeded", 5, "e1", type="workflow.run.succeeded", source="core.workflows",
        payload={"workflowRunId": "r1"},
    )  # fmt: skip

    roots = build_trace([event("e1", 0), told], (), [run("r1", 2, "e1")])

    assert shape(roots) == [("e1", [("r1", ["run-r1-succeeded"])])]


def test_what_somebody_else_says_about_a_run_stays_below_its_own_cause() -> None:
    told = event("e2", 5, "e1", payload={"workflowRunId": "r1"})

    roots = build_trace([event("e1", 0), told], (), [run("r1", 2, "e1")])

    assert shape(roots) == [("e1", ["r1", "e2"])]


def test_a_run_hangs_below_the_delivery_that_started_it_not_below_one_that_joined_it() -> None:
    joined = delivery("d2", "e2", 3, "r1", role=Role.ATTACHED)

    roots = build_trace(
        [event("e1", 0), event("e2", 2)], [joined, delivery("d1", "e1", 1, "r1")], [run("r1", 2)]
    )

    assert shape(roots) == [("e1", [("d1", ["r1"])]), ("e2", ["d2"])]


def test_a_replay_hangs_below_the_run_that_it_repeats() -> None:
    roots = build_trace(
        [event("e1", 0)], (), [run("r1", 1, "e1"), run("r2", 9, "e1", replay_of="r1")]
    )

    assert shape(roots) == [("e1", [("r1", ["r2"])])]


def test_children_of_a_fan_out_hang_below_it() -> None:
    steps = [step("r1", "f", 1), step("r1", "f[0]", 2, 0), step("r1", "f[1]", 2, 1)]

    assert shape(build_trace([], (), [run("r1", 0)], steps)) == [
        ("r1", [("r1.f", ["r1.f[0]", "r1.f[1]"])])
    ]


def test_siblings_are_in_order_of_time_whatever_the_order_of_the_lists() -> None:
    roots = build_trace([event("e3", 3, "e1"), event("e2", 2, "e1"), event("e1", 0)])

    assert shape(roots) == [("e1", ["e2", "e3"])]


def test_a_cause_that_is_not_there_is_named() -> None:
    (root,) = build_trace([event("e2", 1, "gone")])

    assert root.missing == "gone"
    assert root.wire()["missing"] == "gone"


def test_events_that_cause_each_other_are_cut_at_the_oldest() -> None:
    roots = build_trace([event("e1", 0, "e3"), event("e2", 1, "e1"), event("e3", 2, "e2")])

    assert shape(roots) == [("e1", [("e2", ["e3"])])]
    assert roots[0].missing == "e3"


def test_an_event_that_names_itself_as_its_cause_is_a_root() -> None:
    assert shape(build_trace([event("e1", 0, "e1")])) == ["e1"]


def test_a_chain_of_thousands_can_be_written_as_json() -> None:
    events = [event(f"e{n}", n, f"e{n - 1}" if n else None) for n in range(5_000)]

    roots = build_trace(events)
    written = encode([root.wire() for root in roots])

    assert written.count(b'"children":') == 5_000
    assert max(depth for depth, _ in walk(roots)) == LEVELS_MAX - 1


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), max_size=40))
def test_every_node_is_in_the_tree_exactly_once(said: list[tuple[int, int]]) -> None:
    events = [event(f"e{n}", second, f"e{cause}") for n, (second, cause) in enumerate(said)]

    found = Counter(node.id for _, node in walk(build_trace(events)))

    assert found == Counter(f"e{n}" for n in range(len(said)))
