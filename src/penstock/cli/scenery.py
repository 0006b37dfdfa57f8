"""Make up a small data platform at work, so that a first look is alive.

    story (run pending ▸ running ▸ … ▸ succeeded) ── cast ──▶ acts ── stage ──▶ events

The events of one story share a correlation id, a run and a dataset, as real ones do; most stories
end well, some do not, and now and then a publisher makes a mistake. Pure: randomness and time are
arguments. Every event but the mistakes fits its schema, because a value is exchanged only for
another of the same meaning.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.declare import EventType

OPENING_EVENTS = 40
OPENING_SPAN_S = 600.0
_MISTAKE_EVERY = 45

_RUN = ("workflow.run.pending", "workflow.run.running", "job.run.pending", "job.run.running")
_DRIFT = ("filestore.drift.detected", "filestore.reconciliation.job.queued")
# How often a story is told, and the types of its events in order.
STORIES: tuple[tuple[int, tuple[str, ...]], ...] = (
    (6, (*_RUN, "timestore.partition.created", "asset.produced", "job.run.succeeded",
         "workflow.run.succeeded")),
    (2, (*_RUN, "job.run.failed", "workflow.run.failed")),
    (1, (*_RUN, "job.run.expired", "workflow.run.canceled")),
    (6, ("metastore.record.updated",)),
    (3, ("metastore.record.created", "metastore.record.updated")),
    (4, ("filestore.node.uploaded", "filestore.node.updated", "filestore.node.downloaded")),
    (2, (*_DRIFT, "filestore.reconciliation.job.started",
         "filestore.reconciliation.job.completed", "filestore.node.reconciled")),
    (1, (*_DRIFT, "filestore.node.missing", "filestore.reconciliation.job.failed")),
    (1, ("timestore.schema.evolved", "timestore.schema.backfill.requested")),
    (1, ("asset.expired",)),
)  # fmt: skip
# What acts on the play: a record that changes is looked at, and that is a run to look at.
REACTION: JsonObject = {
    "slug": "demo-review",
    "name": "Demo: look at what changed",
    "steps": [
        {"id": "look", "type": "function", "handler": "penstock.echo",
         "parameters": {"record": "{{ parameters.record }}"}},
    ],
}  # fmt: skip
REACTION_TRIGGER: JsonObject = {
    "name": "records that change",
    "eventType": "metastore.record.updated",
    "parameterTemplate": {"record": "{{ event.payload.namespace }}/{{ event.payload.key }}"},
    "throttleWindowMs": 60_000,
    "throttleCount": 10,
}
_NAMES: dict[str, tuple[str, ...]] = {
    "namespace": ("feature-flags", "catalog", "billing", "ml-features"),
    "key": ("frontend-search", "checkout", "churn-model", "daily-revenue"),
    "datasetSlug": ("weather", "orders", "clickstream", "inventory"),
    "assetId": ("orders.daily", "weather.hourly", "revenue.monthly", "churn.scores"),
    "workflowSlug": ("weather-daily", "orders-hourly", "churn-weekly"),
    "jobSlug": ("load-weather", "load-orders", "score-churn"),
    "path": ("raw/orders.parquet", "raw/weather.csv", "models/churn.bin", "reports/march.csv"),
    "actor": ("ana", "ben", "cleo", "dev"),
    "principal": ("ana", "ben", "cleo", "dev"),
}
_RUN_IDS = {"workflowRunId": "run", "jobRunId": "job"}
_AMOUNTS = {"version": 40, "rowCount": 900_000, "sizeBytes": 60_000_000}


@dataclass(frozen=True, slots=True)
class Act:
    """One event to come, without its time."""

    kind: EventType
    cast: Mapping[str, str]
    correlation_id: str
    is_mistake: bool = False


def acts(types: Iterable[EventType], rng: random.Random) -> Iterator[Act]:
    """Story after story without end; nothing when none of their types is declared."""
    known = {kind.name: kind for kind in types if kind.example is not None}
    told = [(weight, names) for weight, names in STORIES if all(n in known for n in names)]
    number = 0
    while told:
        (_, names), cast = rng.choices(told, [weight for weight, _ in told])[0], _cast(rng)
        correlation_id = f"req-{rng.randrange(16**8):08x}"
        for name in names:
            number += 1
            yield Act(known[name], cast, correlation_id, is_mistake=number % _MISTAKE_EVERY == 0)


def stage(act: Act, rng: random.Random, at: datetime) -> JsonObject:
    """The event of one act at its time."""
    kind = act.kind
    event: JsonObject = {
        "type": kind.name,
        "source": rng.choice(kind.sources) if kind.sources else "penstock.demo",
        "occurredAt": format_instant(at),
        "payload": _varied(kind.example or {}, act.cast, rng, at),
        "correlationId": act.correlation_id,
        "tags": {"userId": act.cast["actor"], "platform": "demo"},
    }
    return _mistaken(event, rng) if act.is_mistake else event


def opening(
    play: Iterator[Act], rng: random.Random, now: datetime, count: int = OPENING_EVENTS
) -> list[JsonObject]:
    """The last minutes as they might have been, oldest first."""
    ages = sorted((rng.uniform(1.0, OPENING_SPAN_S) for _ in range(count)), reverse=True)
    staged = zip(islice(play, count), ages, strict=False)
    return [stage(act, rng, now - timedelta(seconds=age)) for act, age in staged]


def _cast(rng: random.Random) -> dict[str, str]:
    cast = {name: rng.choice(choices) for name, choices in _NAMES.items()}
    cast |= {name: f"{word}-{rng.randrange(10**6):06d}" for name, word in _RUN_IDS.items()}
    return cast | {"principal": cast["actor"]}


def _varied(
    example: dict[str, Any], cast: Mapping[str, str], rng: random.Random, at: datetime
) -> JsonObject:
    """The same shape with the names of this story, other amounts, and the time of now."""
    varied: JsonObject = {}
    for name, found in example.items():
        new: JsonValue = found
        if isinstance(found, dict):
            new = _varied(found, cast, rng, at)
        elif isinstance(found, str) and name.endswith("At"):
            new = format_instant(at)
        elif isinstance(found, str):
            new = cast.get(name, found)
        elif isinstance(found, int) and not isinstance(found, bool) and name in _AMOUNTS:
            new = rng.randint(1, _AMOUNTS[name])
        varied[name] = new
    return varied


def _mistaken(event: JsonObject, rng: random.Random) -> JsonObject:
    """What a publisher gets wrong on a bad day: a misspelt type, or a payload of another shape."""
    if rng.random() < 0.5:
        return {**event, "type": f"{event['type']}d"}
    return {**event, "payload": {"note": "sent by an old client"}}
