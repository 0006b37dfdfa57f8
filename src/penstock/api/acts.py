"""Record what operators do: every mutating admin call is itself an event in the same log.

The event's id is a function of what was done, so a call that is repeated because its answer was
lost is recorded once. When the event cannot be made durable the caller hears 503 and may repeat it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from penstock.access.token import Caller
from penstock.base.errors import QueueUnavailable
from penstock.base.ids import derived_id, uuid7
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.ingress.door import Item
from penstock.ingress.verdict import Via

if TYPE_CHECKING:
    from penstock.house import House

SOURCE = "penstock.api"
_log = structlog.get_logger("api")


async def record(
    house: House, caller: Caller, event_type: str, payload: JsonObject, *, once: Sequence[str] = ()
) -> None:
    """Publish the act as an event of the caller's tenant; `once` names what it is the same by."""
    event_id = derived_id(0, "act", event_type, caller.token_id, *once) if once else uuid7()
    event: JsonObject = {
        "id": event_id,
        "type": event_type,
        "source": SOURCE,
        "payload": {**payload, "actor": caller.name, "actorTokenId": caller.token_id},
    }
    item = Item(raw=encode(event), tree=event)
    outcomes = await house.door.publish_async([item], tenant_id=caller.tenant_id, via=Via.SYSTEM)
    rejected = outcomes[0].rejected
    if rejected is not None:
        # The act is done. Its record is a dead letter, which nobody overlooks.
        _log.error("act_not_recorded", event_type=event_type, reason=rejected.reason)


async def note(
    house: House, caller: Caller, event_type: str, payload: JsonObject, *, once: Sequence[str]
) -> None:
    """Record an act that cannot be repeated, and whose own events commit with it.

    A caller who heard 503 would do it a second time; so the act stands, and the log says it was
    done by the events that it wrote itself.
    """
    try:
        await record(house, caller, event_type, payload, once=once)
    except QueueUnavailable as error:
        _log.error("act_not_recorded", event_type=event_type, reason=error.code)
