"""Every stage says what it should, in order, and once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.triggers.evaluating import NOON, World, trigger

from penstock.triggers.delivery import Launch, LaunchOutcome, Refused
from penstock.triggers.limits import Breaker, Limits, LoopGuard
from penstock.triggers.words import RetryState, Role, Stage, Status

KEY = "{{ event.payload.key }}"
WANTS_A = [{"type": "jsonPath", "path": "$.payload.key", "operator": "equals", "value": "a"}]


def test_a_matching_event_launches_once_with_what_its_templates_say() -> None:
    world = World(
        trigger(
            parameterTemplate={"key": KEY, "n": "{{ event.payload.n }}"},
            runKeyTemplate="sync-{{ parameters.key }}",
        )
    )

    world.judge({"key": "a", "n": 7})
    world.twin.catch_up()

    (launch,) = world.twin.runs
    (delivery,) = world.all()
    assert (launch.parameters, launch.run_key) == ({"key": "a", "n": 7}, "sync-a")
    assert (launch.causation_id, launch.delivery_ids) == ("e1", (delivery.id,))
    assert (delivery.status, delivery.role) == (Status.LAUNCHED, Role.TRIGGERED)
    assert (delivery.run_id, delivery.attempts) == (launch.run_id, 1)


def test_an_event_of_another_type_source_or_tenant_is_not_even_looked_at() -> None:
    world = World(trigger(eventSource="metastore.api"))

    world.judge({}, type="metastore.record.created")
    world.judge({}, source="metastore.worker")
    world.judge({}, tenant_id="other")

    assert world.all() == []


def test_an_event_that_the_predicates_refuse_is_counted_and_leaves_no_delivery() -> None:
    world = World(trigger(predicates=WANTS_A))
    world.event({"key": "b"})
    world.event({"key": "a"})

    result = world.twin.run_pass()

    assert result.verdicts == 2
    tally = result.triggers["t"]
    assert (tally.filtered, tally.matched, tally.launched) == (1, 1, 1)
    assert world.said() == ["launched"]


def test_an_expired_event_launches_nothing_and_says_so() -> None:
    world = World(trigger())
    world.event({}, ttl_ms=1000)
    world.clock.move(timedelta(seconds=2))

    world.twin.catch_up()

    assert world.said() == ["skipped expired"]
    assert world.all()[0].stage is Stage.EXPIRED


def test_an_event_that_expires_while_it_waits_launches_nothing() -> None:
    world = World(trigger(maxConcurrency=1))
    world.judge({})
    world.judge({}, ttl_ms=5000)
    world.wait(10)

    world.end(world.all()[0].run_id)

    assert world.said() == ["launched", "skipped expired"]


def test_every_later_duplicate_of_a_key_is_skipped_and_carries_the_run() -> None:
    world = World(trigger(idempotencyKeyExpression=KEY))

    for _ in range(10):
        world.judge({"key": "a"})

    first, *rest = world.all()
    assert first.status is Status.LAUNCHED
    assert [world.said()[n] for n in (2, 3, 9)] == ["skipped duplicate_key"] * 3
    assert {each.run_id for each in rest} == {first.run_id}
    assert len(world.twin.runs) == 1


def test_duplicates_of_one_pass_are_skipped_too() -> None:
    world = World(trigger(idempotencyKeyExpression=KEY))

    world.judge({"key": "a"}, {"key": "b"}, {"key": "a"}, {"key": "a"})

    assert world.said() == ["launched", "launched", *["skipped duplicate_key"] * 2]


def test_a_blank_key_is_no_key() -> None:
    world = World(trigger(idempotencyKeyExpression=KEY))

    world.judge({}, {"key": " "})

    assert world.said() == ["launched", "launched"]


def test_a_key_is_free_again_when_its_holder_is_dead() -> None:
    outcomes: list[LaunchOutcome] = [Refused("no")]
    world = World(
        trigger(idempotencyKeyExpression=KEY, maxAttempts=1),
        start=lambda launch: outcomes.pop() if outcomes else _ok(launch),
    )

    world.judge({"key": "a"}, {"key": "a"}, {"key": "a"})

    assert world.said() == ["dead launch_refused", "launched", "skipped duplicate_key"]


def test_a_failed_delivery_whose_key_was_taken_meanwhile_is_a_duplicate() -> None:
    outcomes: list[LaunchOutcome] = [Refused("no")]
    world = World(
        trigger(idempotencyKeyExpression=KEY),
        start=lambda launch: outcomes.pop() if outcomes else _ok(launch),
    )

    world.judge({"key": "a"}, {"key": "a"})
    world.wait(60)

    assert world.said() == ["skipped duplicate_key", "launched"]
    assert world.all()[0].run_id == world.all()[1].run_id


def test_a_key_that_cannot_be_rendered_is_a_failure() -> None:
    world = World(trigger(idempotencyKeyExpression="{{ event.payload.n | divided_by: 0 }}"))

    world.judge({"n": 1})

    (delivery,) = world.all()
    assert world.said() == ["failed key_failed"]
    assert (delivery.stage, delivery.attempts) == (Stage.IDEMPOTENCY, 1)
    assert delivery.last_error


def test_a_shadow_trigger_does_everything_but_launch() -> None:
    world = World(
        trigger(status="shadow", idempotencyKeyExpression=KEY, parameterTemplate={"key": KEY}),
        start=_never,
    )

    world.judge({"key": "a"}, {"key": "a"}, {"key": "b"})

    assert world.said() == ["matched shadow", "skipped duplicate_key", "matched shadow"]
    assert all(each.shadow for each in world.all())
    assert world.all()[0].parameters == {"key": "a"}
    assert world.all()[0].run_id is None


def test_a_shadow_trigger_keeps_a_throttle_of_its_own_and_counts_no_run_as_active() -> None:
    world = World(
        trigger("a", status="shadow", throttleWindowMs=60_000, throttleCount=1, maxConcurrency=1)
    )

    world.judge({}, {})
    world.wait(61)

    assert world.said() == ["matched shadow", "matched shadow"]
    assert [d.updated_at - NOON for d in world.all()] == [timedelta(0), timedelta(minutes=1)]


def test_going_live_forgets_what_a_shadow_trigger_held() -> None:
    world = World(trigger(status="shadow", idempotencyKeyExpression=KEY))
    world.judge({"key": "a"})

    world.twin.define(trigger(version=2, idempotencyKeyExpression=KEY))
    world.judge({"key": "a"}, {"key": "a"})

    assert world.said() == ["matched shadow", "launched", "skipped duplicate_key"]


def test_a_run_key_that_an_active_run_has_attaches_the_delivery() -> None:
    def start(launch: Launch) -> LaunchOutcome:
        first = world.twin.runs[0].run_id if world.twin.runs else launch.run_id
        return _ok(launch, run_id=first, attached=first != launch.run_id)

    world = World(trigger(runKeyTemplate="the-one", maxConcurrency=2), start=start)
    for _ in range(4):
        world.judge({})

    assert world.said() == ["launched"] * 4
    assert [d.role for d in world.all()] == [Role.TRIGGERED, *[Role.ATTACHED] * 3]
    assert len({d.run_id for d in world.all()}) == 1


def test_disabling_a_trigger_ends_what_waits_there() -> None:
    world = World(trigger(maxConcurrency=1))
    world.judge({}, {})

    world.twin.define(trigger(version=2, status="disabled"))
    world.twin.catch_up()

    assert world.said() == ["launched", "skipped trigger_inactive"]
    assert world.all()[1].retry_state is RetryState.CANCELLED


def test_what_waits_is_judged_by_the_version_in_force() -> None:
    world = World(trigger(maxConcurrency=1))
    world.judge({"key": "a"}, {"key": "b"}, {"key": "a"})

    world.twin.define(trigger(version=2, maxConcurrency=2, predicates=WANTS_A))
    world.twin.catch_up()

    assert world.said() == ["launched", "skipped filtered", "launched"]
    assert [d.trigger_version for d in world.all()] == [1, 2, 2]


def test_causes_one_behind_the_other_end_at_the_guard_with_one_incident() -> None:
    world = World(trigger(), limits=Limits(loops=LoopGuard(depth_max=3)))
    cause = None
    for _ in range(8):
        cause = world.event({}, causation_id=cause, correlation_id="c").envelope.id
    world.twin.catch_up()

    assert world.said() == [*["launched"] * 4, *["skipped loop"] * 4]
    (incident,) = world.twin.incidents
    assert (incident.limit, incident.stopped_event_id) == ("depth", "e5")
    assert [launch.depth for launch in world.twin.runs] == [0, 1, 2, 3]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_correlation_has_a_budget_of_launches_with_one_incident(at_once: bool) -> None:
    world = World(trigger(), limits=Limits(loops=LoopGuard(launches_max=3)))
    for _ in range(6):
        world.event({}, correlation_id="c")
        if not at_once:
            world.twin.catch_up()
    world.judge({}, correlation_id="d")

    assert world.said() == [*["launched"] * 3, *["skipped loop"] * 3, "launched"]
    assert [i.correlation_id for i in world.twin.incidents] == ["c"]


def test_a_failing_template_fails_only_its_own_trigger() -> None:
    world = World(
        trigger("bad", parameterTemplate={"n": "{{ event.payload.n | divided_by: 0 }}"}),
        trigger("good"),
        limits=Limits(breaker=Breaker(threshold=100)),
    )

    world.judge({"n": 1})

    assert world.said("bad") == ["failed parameters_failed"]
    assert world.said("good") == ["launched"]


def _ok(launch: Launch, run_id: str | None = None, *, attached: bool = False) -> LaunchOutcome:
    from penstock.triggers.delivery import Launched

    return Launched(run_id or launch.run_id, attached)


def _never(launch: Launch) -> LaunchOutcome:
    raise AssertionError(f"expected no launch, found {launch.run_id}")
