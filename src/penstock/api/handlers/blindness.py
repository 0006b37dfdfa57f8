"""Warn of triggers that read personal data: who makes, shows or tries one, and who marks a field.

The trigger itself, and the steps of the workflow that it launches: what they read of the event is
ciphertext by then. Whoever marks a field as personal is told which triggers read it until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import NotFound
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.readers import UNNAMED
from penstock.triggers.personal import blind_reads, newly_blind, refuse_blind
from penstock.triggers.trigger import Trigger, TriggerSpec
from penstock.workflows.readers import step_reads

if TYPE_CHECKING:
    from penstock.house import House


def refuse(house: House, spec: TriggerSpec, before: TriggerSpec | None = None) -> None:
    """TriggerReadsPersonal when the trigger compares personal data, by the registry of now."""
    refuse_blind(spec, house.book.refresh(), before=before)


def warnings(house: House, trigger: Trigger) -> JsonObject:
    """`warnings`, when there is something to warn of; else nothing."""
    try:
        workflow = house.workflow_book.definitions.get(trigger.tenant_id, trigger.workflow_slug)
        reads = list(step_reads(workflow.definition))
    except NotFound:  # a draft may name any, and a workflow may be gone
        reads = []
    found = blind_reads(trigger.spec, house.book.current(), beside=reads)
    said: list[JsonValue] = [each.wire() for each in found]
    return {"warnings": said} if said else {}


def blinded(house: House, tenant_id: str, event_type: str, schema: JsonObject) -> JsonObject:
    """`warnings`, when a schema would hide from triggers what they read now; else nothing."""
    before = house.book.current()
    after = before.with_schema(event_type, schema)
    said: list[JsonValue] = []
    for trigger, blind in newly_blind(house.trigger_book.list(None), before, after):
        title = trigger.title if trigger.tenant_id == tenant_id else UNNAMED
        warning: JsonObject = {"trigger": title, **blind.wire()}
        if warning not in said:
            said.append(warning)
    return {"warnings": said} if said else {}
