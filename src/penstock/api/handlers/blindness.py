"""Warn whoever makes, shows or tries a trigger that it reads personal data.

The trigger itself, and the steps of the workflow that it launches: what they read of the event is
ciphertext by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import NotFound
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.triggers.personal import blind_reads, refuse_blind
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
