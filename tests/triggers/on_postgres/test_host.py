"""A pass judges what there is, once, and commits every consequence together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import psycopg
import pytest
from tests.triggers.on_postgres.support import (
    TableLauncher,
    act,
    await_that,
    end_run,
    host_of,
    runs,
    settle,
    spec,
    store,
)

from penstock.store.walk.on_postgres import Connection
from penstock.triggers.book.deliveries.on_postgres import DeliveryBook
from penstock.triggers.book.figures.on_postgres import FigureBook
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.delivery import Delivery, Launch, LaunchOutcome
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.limits import Breaker, Limits, RetryBackoff, SourceLimit
from penstock.triggers.words import ActKind, Reason, RetryState, Role, Status, Target

EVEN = {"type": "jsonPath", "path": "$.payload.mod", "operator": "in", "values": [0, 2, 4, 6, 8]}
QUICK = Limits(breaker=Breaker(threshold=100), backoff=RetryBackoff(base_ms=30, max_ms=60))


def ids(numbers: Sequence[int]) -> list[str]:
    return [f"evt-{n}" for n in numbers]


def started(dsn: str) -> list[str]:
    """The events that runs were started for, in order."""
    return [event_id for _, _, event_ids in runs(dsn) for event_id in event_ids]


def all_of(deliveries: DeliveryBook, trigger_id: str) -> list[Delivery]:
    """The deliveries of a trigger, oldest event first."""
    return deliveries.deliveries("default", trigger_id, limit=200)[::-1]


def test_every_matching_event_starts_one_run(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(spec(predicates=[EVEN]), workflow_slug="sync", by="ann")
    store(dsn, 20)
    store(dsn, 5, event_type="metastore.record.deleted")

    settle(host)

    assert started(dsn) == ids(range(2, 21, 2))
    kept = all_of(deliveries, made.id)
    assert [(d.event_id, d.status, d.role) for d in kept] == [
        (each, Status.LAUNCHED, Role.TRIGGERED) for each in ids(range(2, 21, 2))
    ]
    assert {d.run_id for d in kept} == {run_id for run_id, _, _ in runs(dsn)}


def test_a_pass_without_work_records_nothing(dsn: str, host: TriggerHost) -> None:
    store(dsn, 3)
    settle(host)

    assert host.run_pass().number is None
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM trigger_passes").fetchone() == (1,)


def test_what_was_stored_before_a_trigger_was_made_is_not_judged_by_it(
    dsn: str, host: TriggerHost, book: TriggerBook
) -> None:
    store(dsn, 3)
    settle(host)
    book.create(spec(), workflow_slug="sync", by="ann")

    store(dsn, 2)
    settle(host)

    assert started(dsn) == ids([4, 5])


def test_a_backlog_is_worked_off_in_passes_of_five_hundred(
    dsn: str, host: TriggerHost, book: TriggerBook
) -> None:
    book.create(spec(), workflow_slug="sync", by="ann")
    store(dsn, 1_200)

    first = host.run_pass()

    assert (first.events, first.has_more) == (500, True)
    assert settle(host) == 2
    assert started(dsn) == ids(range(1, 1_201))


def test_a_pass_that_fails_leaves_nothing_behind_and_is_run_again(
    dsn: str, launcher: TableLauncher, book: TriggerBook
) -> None:
    class Stumbling(TableLauncher):
        stumbles = True

        def __call__(
            self, connection: Connection, launches: Sequence[Launch]
        ) -> list[LaunchOutcome]:
            outcomes = super().__call__(connection, launches)
            if self.stumbles:
                self.stumbles = False
                raise ZeroDivisionError
            return outcomes

    host = host_of(dsn, Stumbling())
    made = book.create(spec(), workflow_slug="sync", by="ann")
    store(dsn, 3)

    with pytest.raises(ZeroDivisionError):
        host.run_pass()
    assert runs(dsn) == []
    settle(host)

    assert started(dsn) == ids([1, 2, 3])
    assert len(book.versions("default", made.id)) == 1
    host.close()


def test_two_hosts_that_take_turns_judge_every_event_once(
    dsn: str, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    one, two = host_of(dsn, TableLauncher()), host_of(dsn, TableLauncher())
    made = book.create(spec(maxConcurrency=2), workflow_slug="sync", by="ann")

    for host in (one, two, one, one, two):
        store(dsn, 2)
        host.run_pass()
        for run_id, _, _ in runs(dsn)[-1:]:
            end_run(dsn, run_id)
    await_that(lambda: _end_and_pass(dsn, two, one) == 10)

    assert started(dsn) == ids(range(1, 11))
    assert {d.status for d in all_of(deliveries, made.id)} == {Status.LAUNCHED}
    one.close()
    two.close()


def _end_and_pass(dsn: str, *hosts: TriggerHost) -> int:
    for host in hosts:
        host.run_pass()
        for run_id, _, _ in runs(dsn):
            end_run(dsn, run_id)
    return len(runs(dsn))


def test_the_third_fourth_and_tenth_duplicate_of_a_key_are_skipped(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(spec(idempotencyKeyExpression="one"), workflow_slug="sync", by="ann")

    for count in (1, 2, 7):
        store(dsn, count)
        settle(host)

    first, *rest = all_of(deliveries, made.id)
    assert started(dsn) == ids([1])
    assert len(rest) == 9
    assert {(d.status, d.reason, d.run_id) for d in rest} == {
        (Status.SKIPPED, Reason.DUPLICATE_KEY, first.run_id)
    }


def test_a_refused_launch_is_retried_and_the_others_are_not_held_up(
    dsn: str, launcher: TableLauncher, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    host = host_of(dsn, launcher, QUICK)
    good = book.create(spec(), workflow_slug="sync", by="ann")
    bad = book.create(spec(maxAttempts=3), workflow_slug="broken", by="ann")
    store(dsn, 2)

    host.run_pass()
    waiting = all_of(deliveries, bad.id)
    await_that(
        lambda: (
            host.run_pass() is not None
            and {d.status for d in all_of(deliveries, bad.id)} == {Status.DEAD}
        )
    )

    assert {d.status for d in all_of(deliveries, good.id)} == {Status.LAUNCHED}
    assert {(d.status, d.reason, d.attempts) for d in waiting} == {
        (Status.FAILED, Reason.LAUNCH_REFUSED, 1)
    }
    dead, history = deliveries.delivery("default", waiting[0].id)
    assert (dead.attempts, dead.retry_state) == (3, RetryState.COMPLETED)
    assert [entry.status for entry in history] == [Status.FAILED, Status.FAILED, Status.DEAD]
    assert "broken one" in (dead.last_error or "")
    host.close()


def test_a_run_key_in_use_attaches_the_delivery_to_the_active_run(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(spec(runKeyTemplate="nightly"), workflow_slug="sync", by="ann")
    store(dsn, 3)

    settle(host)

    ((run_id, _, _),) = runs(dsn)
    kept = all_of(deliveries, made.id)
    assert [d.role for d in kept] == [Role.TRIGGERED, Role.ATTACHED, Role.ATTACHED]
    assert {(d.status, d.run_id) for d in kept} == {(Status.LAUNCHED, run_id)}


def test_no_more_runs_are_active_than_allowed_and_none_is_lost(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(spec(maxConcurrency=2), workflow_slug="sync", by="ann")
    store(dsn, 6)

    settle(host)
    assert started(dsn) == ids([1, 2])
    assert {(d.status, d.reason) for d in all_of(deliveries, made.id)[2:]} == {
        (Status.THROTTLED, Reason.MAX_CONCURRENCY)
    }
    for run_id, _, _ in runs(dsn)[:1]:
        end_run(dsn, run_id)
    settle(host)
    assert started(dsn) == ids([1, 2, 3])
    await_that(lambda: _end_and_pass(dsn, host) == 6)

    assert started(dsn) == ids(range(1, 7))


def test_events_that_arrive_while_a_trigger_is_paused_are_all_judged_after_resume(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook, figures: FigureBook
) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")
    assert host.act(act(ActKind.PAUSE, Target.TRIGGER, made.id)).is_done
    store(dsn, 5)
    settle(host)

    assert runs(dsn) == []
    assert [d.reason for d in all_of(deliveries, made.id)] == [Reason.PAUSED] * 5
    assert [p.trigger_id for p in figures.paused_triggers("default")] == [made.id]
    assert host.act(act(ActKind.RESUME, Target.TRIGGER, made.id)).is_done
    store(dsn, 2)
    settle(host)

    assert started(dsn) == ids(range(1, 8))
    assert figures.paused_triggers() == []


def test_an_operator_may_skip_what_waited_on_resume(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")
    host.act(act(ActKind.PAUSE, Target.TRIGGER, made.id))
    store(dsn, 3)
    settle(host)

    host.act(act(ActKind.RESUME, Target.TRIGGER, made.id, skip=True))
    store(dsn, 1)
    settle(host)

    assert started(dsn) == ids([4])
    assert {(d.status, d.reason) for d in all_of(deliveries, made.id)[:3]} == {
        (Status.SKIPPED, Reason.SKIPPED_BY_OPERATOR)
    }


def test_events_that_arrive_while_a_source_is_paused_are_all_judged_after_resume(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook, figures: FigureBook
) -> None:
    book.create(spec(), workflow_slug="sync", by="ann")
    assert host.act(act(ActKind.PAUSE, Target.SOURCE, "metastore.api")).is_done
    store(dsn, 4)
    store(dsn, 1, source="metastore.worker")
    settle(host)

    backlog, held = deliveries.held("default")
    assert started(dsn) == ids([5])
    assert (backlog.total, [h.event_id for h in held]) == (4, ids([1, 2, 3, 4]))
    assert [p.source for p in figures.paused_sources("default")] == ["metastore.api"]
    assert host.act(act(ActKind.RESUME, Target.SOURCE, "metastore.api")).is_done
    settle(host)

    assert started(dsn) == ids([1, 2, 3, 4, 5])
    assert deliveries.held("default")[0].total == 0


def test_a_source_over_its_limit_waits_and_catches_up_in_order(
    dsn: str, launcher: TableLauncher, book: TriggerBook, figures: FigureBook
) -> None:
    limit = SourceLimit("*", limit=3, interval_ms=150, pause_ms=150)
    host = host_of(dsn, launcher, Limits(sources=(limit,)))
    book.create(spec(), workflow_slug="sync", by="ann")
    store(dsn, 8)

    host.run_pass()
    assert started(dsn) == ids([1, 2, 3])
    assert [p.reason for p in figures.paused_sources()] == ["rate_limit"]
    await_that(lambda: host.run_pass() is not None and len(runs(dsn)) == 8)

    assert started(dsn) == ids(range(1, 9))
    (counted,) = figures.sources("default")
    assert (counted.total, counted.dropped) == (8, 0)
    assert counted.throttled >= 5
    host.close()


def test_a_failing_trigger_is_paused_and_probed_when_the_pause_ends(
    dsn: str, launcher: TableLauncher, book: TriggerBook, figures: FigureBook
) -> None:
    limits = Limits(breaker=Breaker(2, 60_000, 100), backoff=QUICK.backoff)
    host = host_of(dsn, launcher, limits)
    made = book.create(spec(maxAttempts=20), workflow_slug="sync", by="ann")
    launcher.is_broken = True
    store(dsn, 4)
    host.run_pass()

    (pause,) = figures.paused_triggers()
    assert (pause.trigger_id, pause.by, pause.failures) == (made.id, None, 2)
    launcher.is_broken = False
    await_that(lambda: host.run_pass() is not None and len(runs(dsn)) == 4)

    assert sorted(started(dsn)) == ids([1, 2, 3, 4])
    assert figures.paused_triggers() == []
    host.close()


def test_a_waiting_delivery_can_be_cancelled_and_another_forced(
    dsn: str, launcher: TableLauncher, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    host = host_of(dsn, launcher)
    made = book.create(spec(), workflow_slug="sync", by="ann")
    launcher.is_broken = True
    store(dsn, 2)
    settle(host)
    first, second = all_of(deliveries, made.id)

    launcher.is_broken = False
    assert host.act(act(ActKind.CANCEL, Target.DELIVERY, first.id)).is_done
    assert host.act(act(ActKind.FORCE, Target.DELIVERY, second.id)).is_done
    settle(host)

    assert [(d.status, d.retry_state) for d in all_of(deliveries, made.id)] == [
        (Status.SKIPPED, RetryState.CANCELLED),
        (Status.LAUNCHED, RetryState.PENDING),
    ]
    assert not host.act(act(ActKind.CANCEL, Target.DELIVERY, first.id)).is_done
    assert not host.act(act(ActKind.FORCE, Target.DELIVERY, "nobody")).is_done
    host.close()


def test_a_batch_starts_one_run_for_its_events(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(
        spec(per="batch", batchMaxEvents=3, batchTimeoutMs=100), workflow_slug="sync", by="ann"
    )
    store(dsn, 4)

    settle(host)
    assert [event_ids for _, _, event_ids in runs(dsn)][:1] == [ids([1, 2, 3])]
    await_that(lambda: host.run_pass() is not None and len(runs(dsn)) == 2)

    assert [event_ids for _, _, event_ids in runs(dsn)] == [ids([1, 2, 3]), ids([4])]
    assert [d.role for d in all_of(deliveries, made.id)] == [
        Role.INCLUDED, Role.INCLUDED, Role.TRIGGERED, Role.TRIGGERED,
    ]  # fmt: skip


def test_only_the_newest_event_starts_a_run_while_one_is_active(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(spec(per="latest"), workflow_slug="sync", by="ann")
    store(dsn, 1)
    settle(host)
    store(dsn, 3)
    settle(host)

    end_run(dsn, runs(dsn)[0][0])
    settle(host)

    assert started(dsn) == ids([1, 4])
    assert [d.reason for d in all_of(deliveries, made.id)[1:3]] == [Reason.SUPERSEDED] * 2


def test_a_shadow_trigger_does_everything_but_launch(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(
        spec(status="shadow", idempotencyKeyExpression="one"), workflow_slug="sync", by="ann"
    )
    store(dsn, 2)
    settle(host)

    assert runs(dsn) == []
    assert [(d.status, d.reason) for d in all_of(deliveries, made.id)] == [
        (Status.MATCHED, Reason.SHADOW),
        (Status.SKIPPED, Reason.DUPLICATE_KEY),
    ]
    book.change("default", made.id, spec(idempotencyKeyExpression="one"), by="ann")
    store(dsn, 2)
    settle(host)

    assert started(dsn) == ids([3])


def test_a_disabled_trigger_ends_what_waits_without_waiting_for_an_event(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(spec(maxConcurrency=1), workflow_slug="sync", by="ann")
    store(dsn, 2)
    settle(host)

    book.delete("default", made.id, by="ann")
    settle(host)

    assert [(d.status, d.reason) for d in all_of(deliveries, made.id)] == [
        (Status.LAUNCHED, None),
        (Status.SKIPPED, Reason.TRIGGER_INACTIVE),
    ]


def test_an_expired_event_starts_nothing(
    dsn: str, host: TriggerHost, book: TriggerBook, deliveries: DeliveryBook
) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")
    store(dsn, 1, ttl_ms=1, age=timedelta(seconds=1))
    store(dsn, 1, ttl_ms=600_000)
    settle(host)

    assert started(dsn) == ids([2])
    assert all_of(deliveries, made.id)[0].reason is Reason.EXPIRED
