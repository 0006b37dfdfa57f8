"""Add what is known about an event beside what its publisher said.

    envelope ── each step that applies to its type ──▶ + tags, metadata, correlation, cause, trace
             ── severity ──▶ Accepted

What the publisher said always wins. Which steps apply is worked out once per schema version, so an
event that no step concerns pays for one look-up. A step that fails harms no event: it is left out,
and `metadata.__penstock.skipped` names it. Severity is decided last, by what is known by then;
links are worked out on reading, by the same declarations (`registry.insight`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from penstock.envelope.check import content_hash
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import Envelope, JsonObject, JsonValue, Severity
from penstock.envelope.fields import RULES
from penstock.ingress.steps import Found, Step, installed
from penstock.ingress.verdict import Accepted
from penstock.registry.insight import severity_of
from penstock.registry.schema import SchemaVersion

NOTES_KEY: Final = "__penstock"
_FOUND_BYTES_MAX: Final = 16 * 1024
_PLANS_MAX: Final = 4096
_new = tuple.__new__  # made for every event, and its own way of making is slower


class _Plan(NamedTuple):
    """What is to be done with the events of one schema version."""

    schema: SchemaVersion | None  # held, so that its id is not given to another one
    steps: tuple[Step, ...]
    bare: tuple[Step, ...]  # …for an event without metadata
    severity: tuple[Severity, str] | None  # None: each event decides


class Enrichment:
    """Steps in their order. The same event always comes out the same; pickles to executors."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps = tuple(sorted(steps, key=lambda step: (step.order, step.name)))
        self._plans: dict[int | str, _Plan] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Enrichment, (self.steps,)

    def enrich(
        self,
        envelope: Envelope,
        claimed: JsonObject,
        payload_form: bytes,
        schema: SchemaVersion | None,
    ) -> Accepted:
        """The event as it will be stored."""
        plan = self._plans.get(envelope.type if schema is None else id(schema))
        if plan is None:
            plan = self._plan(envelope.type, schema)
        for step in plan.steps if envelope.metadata else plan.bare:
            envelope = _taken(step, envelope, schema)
        if schema is not None and envelope.schema_version is None:
            envelope = envelope._replace(schema_version=schema.version)
        # A type that declares none leaves it to the event.
        severity, rule = plan.severity or severity_of(
            None, envelope.type, envelope.payload, envelope.metadata
        )
        content = content_hash(claimed, payload_form)
        schema_hash = None if schema is None else schema.schema_hash
        return _new(
            Accepted, (envelope, severity, rule, schema_hash, content, payload_form, claimed)
        )

    def _plan(self, event_type: str, schema: SchemaVersion | None) -> _Plan:
        steps = tuple(step for step in self.steps if step.applies(event_type, schema))
        pair = severity_of(schema, event_type, None, {})
        bare = tuple(step for step in steps if not step.on_metadata)
        plan = _Plan(schema, steps, bare, pair if pair[1] == "declared" else None)
        if len(self._plans) >= _PLANS_MAX:
            self._plans.clear()
        self._plans[event_type if schema is None else id(schema)] = plan
        return plan


@cache
def enrichment() -> Enrichment:
    """The enrichment of this process: the built-in steps and those of installed packages."""
    return Enrichment(installed())


def _taken(step: Step, envelope: Envelope, schema: SchemaVersion | None) -> Envelope:
    """The event with what one step found."""
    try:
        found = step.find(envelope, schema)
        if found is None:
            return envelope
        if step.is_ours:
            return _with(envelope, found)
        return _checked(_with(envelope, _plain(found)))
    except Exception:  # noqa: BLE001  a stranger's step may raise anything; the event says it did
        return _noting(envelope, step.name)


def _with(event: Envelope, found: Found) -> Envelope:
    e = event
    return Envelope(
        e.id,
        e.type,
        e.source,
        e.occurred_at,
        e.payload,
        {**found.tags, **e.tags} if found.tags else e.tags,
        e.correlation_id or found.correlation_id,
        e.causation_id or found.causation_id,
        e.traceparent or found.traceparent,
        e.ttl_ms,
        {**found.metadata, **e.metadata} if found.metadata else e.metadata,
        e.schema_version,
        e.tenant_id,
    )


def _plain(found: Found) -> Found:
    """What a stranger's step found, in values that JSON has; raises when it is not all JSON."""
    said: JsonObject = {"tags": dict(found.tags), "metadata": dict(found.metadata)}
    tree: Any = decode(encode(said), bytes_max=_FOUND_BYTES_MAX)
    return found._replace(tags=tree["tags"], metadata=tree["metadata"])


def _checked(event: Envelope) -> Envelope:
    """The event, when every field that a step may fill in keeps its rule; else ValueError."""
    filled = (
        ("tags", event.tags),
        ("metadata", event.metadata),
        ("correlationId", event.correlation_id),
        ("causationId", event.causation_id),
        ("traceparent", event.traceparent),
    )
    for name, value in filled:
        if value is not None and RULES[name](dict(value) if isinstance(value, Mapping) else value):
            raise ValueError(f"expected a good {name}, found one that breaks its rule")
    return event


def _noting(event: Envelope, skipped: str) -> Envelope:
    notes = event.metadata.get(NOTES_KEY)
    before = notes.get("skipped") if isinstance(notes, dict) else None
    names: list[JsonValue] = [*before, skipped] if isinstance(before, list) else [skipped]
    return event._replace(metadata={**event.metadata, NOTES_KEY: {"skipped": names}})
