"""Figures of triggers and workflows have names, never ids, and stay bounded."""

from __future__ import annotations

from datetime import timedelta

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.health.figures import LATER, NOW, activity, facts, source, trigger

from penstock.health.activity.seen import Activity, Waiting
from penstock.health.prometheus import Metrics, write
from penstock.health.series import NAMED_MAX
from penstock.triggers.delivery import Pause, SourcePause


def families(seen: Activity) -> dict[str, Metric]:
    text = write(Metrics(), facts(seen), []).decode()
    return {each.name: each for each in text_string_to_metric_families(text)}


def values(family: Metric) -> dict[tuple[str, ...], float]:
    """By the values of the labels, in the order of their names."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_two_triggers_of_one_name_are_one_series() -> None:
    twins = [trigger("t-1", launched=3), trigger("t-2", launched=4)]

    found = families(activity(triggers=twins, waiting={"t-2": Waiting(2, 0, 0)}))

    assert values(found["penstock_trigger_verdicts"])["on update", "launched", "sync"] == 7
    assert values(found["penstock_trigger_backlog_events"]) == {("on update", "sync"): 2}
    assert values(found["penstock_trigger_paused"]) == {("on update", "sync"): 1}


def test_only_the_busiest_triggers_and_sources_are_named() -> None:
    many = activity(
        triggers=[trigger(f"t-{n}", f"n-{n}", launched=n) for n in range(NAMED_MAX * 2)],
        sources=[source(f"s.{n}", total=n) for n in range(NAMED_MAX * 2)],
        paused_sources=[],
    )

    found = families(many)

    named = values(found["penstock_trigger_backlog_events"])
    assert len(named) == NAMED_MAX
    assert (f"n-{NAMED_MAX * 2 - 1}", "sync") in named
    assert len(values(found["penstock_trigger_lag_seconds"])) == NAMED_MAX


def test_a_source_of_two_tenants_adds_up_and_shows_its_largest_lag() -> None:
    both = [source(last_lag_ms=100), source(tenant="acme", last_lag_ms=900)]

    found = families(activity(sources=both))

    assert values(found["penstock_source_events"])["judged", "metastore.api"] == 18
    assert values(found["penstock_trigger_lag_seconds"]) == {("metastore.api",): 0.9}


def test_a_pause_whose_time_is_up_is_none() -> None:
    over = NOW - timedelta(seconds=1)
    found = families(
        activity(
            paused_triggers=[Pause("t-1", over, over, "failures", 5)],
            paused_sources=[SourcePause("default", "metastore.api", over, over, "rate_limit")],
        )
    )

    assert set(values(found["penstock_trigger_paused"]).values()) == {0}
    assert set(values(found["penstock_source_paused"]).values()) == {0}


def test_a_paused_source_that_was_never_judged_shows_too() -> None:
    pause = SourcePause("default", "new.api", NOW, None, "maintenance")

    found = families(activity(paused_sources=[pause]))

    assert values(found["penstock_source_paused"]) == {("metastore.api",): 0, ("new.api",): 1}


def test_durations_are_histograms_in_seconds() -> None:
    runs = families(activity())["penstock_workflow_run_duration_seconds"]

    buckets = {
        s.labels["le"]: s.value for s in runs.samples if s.name.endswith("_bucket")
    }  # fmt: skip
    assert (buckets["0.05"], buckets["86400.0"], buckets["+Inf"]) == (3, 3, 4)
    (total,) = (s.value for s in runs.samples if s.name.endswith("_sum"))
    assert total == 90_000.06


def test_retries_are_told_by_kind_with_the_next_attempt() -> None:
    found = families(activity())

    assert values(found["penstock_retry_backlog"]) == {
        ("event",): 3, ("trigger",): 5, ("workflow_step",): 2,
    }  # fmt: skip
    assert values(found["penstock_retry_overdue"])[("event",)] == 1
    due = values(found["penstock_retry_next_attempt_timestamp_seconds"])
    assert due[("trigger",)] == LATER.timestamp()


def test_queues_show_every_state_and_latency_in_seconds() -> None:
    found = families(activity())

    assert values(found["penstock_queue_jobs"])["eventTrigger", "waiting"] == 10
    assert values(found["penstock_queue_jobs"])["eventTrigger", "paused"] == 4
    assert values(found["penstock_queue_latency_seconds"]) == {
        ("event", "processing"): 0, ("event", "waiting"): 0.25, ("eventTrigger", "waiting"): 0.012,
        ("workflow", "processing"): 0.02, ("workflow", "waiting"): 0.005,
        ("schedule", "waiting"): 0.8, ("outbox", "waiting"): 0.25,
    }  # fmt: skip
    assert values(found["penstock_workflow_jobs"]) == {
        ("workflow", "waiting"): 4, ("workflow", "active"): 2, ("workflow", "delayed"): 1,
    }  # fmt: skip


def test_runs_are_counted_before_the_first_one_ends() -> None:
    found = families(activity())

    assert values(found["penstock_workflow_runs"]) == {
        ("succeeded",): 4, ("failed",): 0, ("canceled",): 0,
    }  # fmt: skip
    assert values(found["penstock_workflow_runs_active"]) == {("pending",): 0, ("running",): 2}
