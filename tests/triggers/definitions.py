"""Make triggers and events for tests of definitions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from penstock.envelope.envelope import Envelope, JsonObject, Severity, Stored
from penstock.triggers.check import check_spec
from penstock.triggers.compiled import CompiledTrigger, Scope, compile_trigger
from penstock.triggers.predicate import Predicates, compile_predicates, document_of
from penstock.triggers.trigger import Trigger

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAIN: JsonObject = {"name": "gold orders", "eventType": "shop.order.placed"}


def trigger(**said: Any) -> Trigger:
    """A trigger that says this beside a name and a type."""
    return Trigger("t-1", "default", "ship", 3, check_spec(PLAIN | said), NOON, "ann", NOON, "ann")


def compiled(**said: Any) -> CompiledTrigger:
    return compile_trigger(trigger(**said))


def event(payload: Any, **said: Any) -> Stored:
    envelope = Envelope("evt-7", "shop.order.placed", "shop.api", NOON, payload, **said)
    return Stored(7, envelope, NOON, Severity.INFO, "default", None, bytes(32))


def document(payload: Any, **said: Any) -> JsonObject:
    return document_of(event(payload, **said))


def scope(payload: Any, **said: Any) -> Scope:
    return Scope(document(payload, **said), NOON)


def predicates(*clauses: JsonObject) -> Predicates:
    return compile_predicates(check_spec(PLAIN | {"predicates": list(clauses)}).predicates)


def holds(payload: Any, *clauses: JsonObject) -> bool:
    """Whether clauses hold for a payload; the test and its working are asked, and agree."""
    asked, shown = predicates(*clauses), document(payload)
    verdict = asked.test(shown)
    assert asked.trace(shown).outcome is verdict
    return verdict
