"""Write the two pages that operators read: how events do, and how every queue does.

event_health   queues, sources with their lag, triggers with their counters, what is paused, what
               is limited, what waits for another try, the scheduler
queue_health   every queue with its depth and latency
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.health.activity.seen import Activity, instant
from penstock.health.queues import every_queue, ingress_queue, trigger_queue
from penstock.health.snapshot import (
    INGRESS,
    INGRESS_SILENT_S,
    WORKER_SILENT_S,
    Facts,
    scheduler_figure,
)
from penstock.store.ledger.account import SourceLine
from penstock.triggers.book.backlog import Backlog
from penstock.triggers.book.figure import SourceFigures, TriggerFigures
from penstock.triggers.delivery import Pause, SourcePause

_NOTHING = Backlog(0, 0, None)


def event_health(facts: Facts, sources: Sequence[SourceLine], *, whole: bool) -> JsonObject:
    """The answer of /admin/event-health; `whole` shows figures that are about every tenant."""
    activity = facts.activity
    judged = {(f.tenant_id, f.source): f for f in (activity.sources if activity else ())}
    return {
        "generatedAt": format_instant(facts.at),
        "queues": {
            "ingress": ingress_queue(facts).wire(counts=whole),
            "triggers": trigger_queue(facts).wire(counts=whole),
        },
        "metrics": {
            "generatedAt": format_instant(facts.at),
            "sources": [
                _source(line, judged.get((line.tenant_id, line.source))) for line in sources
            ],
            "triggers": [_trigger(each, activity) for each in activity.triggers]
            if activity
            else [],
        },
        "ingress": _ingress(facts) if whole else None,
        "pausedSources": _paused_sources(activity),
        "pausedTriggers": _paused_triggers(activity),
        "rateLimits": [limit.wire() for limit in facts.limits],
        "retries": _retries(activity),
        "workflowScheduler": _scheduler(facts, whole=whole),
    }


def queue_health(facts: Facts, queue_name: str) -> JsonObject:
    """The answer of /admin/queue-health."""
    return {
        "generatedAt": format_instant(facts.at),
        "inlineMode": facts.mode == "inline",
        "queues": [queue.named_wire() for queue in every_queue(facts, queue_name)],
    }


def _source(line: SourceLine, judged: SourceFigures | None) -> JsonObject:
    """A source: how it came into the log, and since it was judged, how that went.

    Nothing is ever dropped by itself; the figure counts events that operators took out of the line.
    """
    return {
        "source": line.source,
        "total": line.stored + line.duplicates + line.dead,
        "throttled": judged.throttled if judged else 0,
        "dropped": judged.dropped if judged else 0,
        "failures": line.dead,
        "averageLagMs": line.lag_average_ms,
        "lastLagMs": line.lag_last_ms,
        "maxLagMs": line.lag_max_ms,
        "lastEventAt": instant(line.last_event_at),
        "evaluation": _evaluation(judged) if judged else None,
    }


def _evaluation(judged: SourceFigures) -> JsonObject:
    return {
        "total": judged.total,
        "failures": judged.failures,
        "averageLagMs": judged.average_lag_ms,
        "lastLagMs": judged.last_lag_ms,
        "maxLagMs": judged.max_lag_ms,
    }


def _trigger(each: TriggerFigures, activity: Activity) -> JsonObject:
    waiting = activity.waiting.get(each.trigger_id)
    return {
        "triggerId": each.trigger_id,
        "name": each.name,
        "workflowDefinitionId": activity.definitions.get((each.tenant_id, each.workflow_slug)),
        "workflowSlug": each.workflow_slug,
        "counts": {
            "filtered": each.filtered,
            "matched": each.matched,
            "launched": each.launched,
            "throttled": each.throttled,
            "skipped": each.skipped,
            "failed": each.failed,
            "paused": each.paused,
            "dead": each.dead,
        },
        "waiting": waiting.total if waiting else 0,
        "lastStatus": each.last_status,
        "lastUpdatedAt": instant(each.last_updated_at),
        "lastError": each.last_error,
    }


def _ingress(facts: Facts) -> JsonObject | None:
    part = facts.parts.get(INGRESS)
    if part is None:
        return None
    alive = part.age_s <= INGRESS_SILENT_S
    return {**part.report, "alive": alive, "reportedAt": format_instant(part.reported_at)}


def _paused_sources(activity: Activity | None) -> list[JsonValue]:
    if activity is None:
        return []
    return [_paused_source(p) for p in activity.paused_sources if p.is_open(activity.at)]


def _paused_source(pause: SourcePause) -> JsonObject:
    return {
        "source": pause.source,
        "until": instant(pause.until),
        "reason": pause.reason,
        "details": dict(pause.details),
        "pausedAt": format_instant(pause.paused_at),
        "by": pause.by,
    }


def _paused_triggers(activity: Activity | None) -> list[JsonValue]:
    """Pauses, and those whose time is up and that wait for a launch to prove them healed."""
    if activity is None:
        return []
    names = {each.trigger_id: each.name for each in activity.triggers}
    return [_paused_trigger(each, names, activity) for each in activity.paused_triggers]


def _paused_trigger(pause: Pause, names: dict[str, str], activity: Activity) -> JsonObject:
    return {
        "triggerId": pause.trigger_id,
        "name": names.get(pause.trigger_id),
        "until": instant(pause.until),
        "reason": pause.reason,
        "failures": pause.failures,
        "pausedAt": format_instant(pause.paused_at),
        "by": pause.by,
        "halfOpen": not pause.is_open(activity.at),
    }


def _retries(activity: Activity | None) -> JsonObject:
    if activity is None:
        nothing: JsonObject = {"summary": _summary(_NOTHING), "entries": []}
        return {"events": nothing, "triggers": nothing, "workflowSteps": nothing}
    events, held = activity.events
    triggers, deliveries = activity.deliveries
    return {
        "events": {"summary": _summary(events), "entries": [each.wire() for each in held]},
        "triggers": {
            "summary": _summary(triggers),
            "entries": [each.wire() for each in deliveries],
        },
        "workflowSteps": activity.steps.wire(),
    }


def _summary(backlog: Backlog) -> JsonObject:
    return {
        "total": backlog.total,
        "overdue": backlog.overdue,
        "nextAttemptAt": instant(backlog.next_attempt_at),
    }


def _scheduler(facts: Facts, *, whole: bool) -> JsonObject | None:
    """The scheduler, in the words of one that elects a leader.

    Ours has none: every worker fires schedules and passes over what another has locked. So nothing
    is ever acquired or contended, and it is active as long as any worker lives.
    """
    activity = facts.activity
    if activity is None:
        return None
    heard = [w for w in activity.workers if activity.age_s(w.heartbeat_at) <= WORKER_SILENT_S]
    never = ("attempts", "acquired", "released", "contention", "keepaliveFailures", "errors")
    nobody = ("ownerId", "acquiredAt", "releasedAt")
    schedules = activity.schedules
    counted = ("processed", "skipped", "errors", "runsCreated") if whole else ()
    return {
        "leader": {**dict.fromkeys(never, 0), "active": bool(heard), **dict.fromkeys(nobody)},
        "schedules": {
            **dict.fromkeys(("lockAcquired", "lockContention", "optimisticConflicts"), 0),
            **{key: int(scheduler_figure(facts, key)) for key in counted},
            "due": schedules.due,
            "ahead": schedules.ahead,
            "off": schedules.off,
            "failing": schedules.failing,
            "nextRunAt": instant(schedules.next_run_at),
        },
        "workers": [each.wire() for each in activity.workers] if whole else None,
        "recent": [each.wire() for each in schedules.recent],
        "updatedAt": format_instant(activity.at),
    }
