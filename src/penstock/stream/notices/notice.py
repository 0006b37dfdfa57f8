"""Read the notifications that tell of retries: cancelled or forced, and by whom.

    penstock_triggers · penstock_retries    {"frames": [{"type", "id", "tenantId", "by"}]}

Passes tell of events and deliveries, the steps of workflows of themselves. Each becomes the type of
a frame, its data, and the tenant whose clients may see it. What is not understood is no notice: a
frame too few is a page that refreshes later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import decode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.envelope.names import is_glob, matches_glob
from penstock.store.query import EventQuery

# The types there are, and what the id in their data is called.
_IDS = {
    "retry.event.source.cancelled": "eventId",
    "retry.event.source.forced": "eventId",
    "retry.trigger.delivery.cancelled": "deliveryId",
    "retry.trigger.delivery.forced": "deliveryId",
    "retry.workflow.step.cancelled": "workflowRunStepId",
    "retry.workflow.step.forced": "workflowRunStepId",
}
TYPES = tuple(_IDS)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that is no event, for the clients of one tenant."""

    tenant_id: str
    type: str
    data: JsonObject


def wanted_by(query: EventQuery, notice: Notice) -> bool:
    """Whether a client gets it: one of that tenant, unless it asked for other types only."""
    return query.tenant_id == notice.tenant_id and (
        not query.types
        or any(
            matches_glob(wanted, notice.type) if is_glob(wanted) else wanted == notice.type
            for wanted in query.types
        )
    )


def read_notices(payload: str) -> list[Notice]:
    """The notices of one notification, whichever of the two it came by; often none."""
    if not payload:
        return []
    try:
        tree = decode(payload.encode())
    except NotInProfile:
        return []
    return list(_notices(tree))


def _notices(tree: JsonValue) -> Iterator[Notice]:
    listed = tree.get("frames") if isinstance(tree, dict) else None
    for said in listed if isinstance(listed, list) else []:
        found = _notice(said) if isinstance(said, dict) else None
        if found is not None:
            yield found


def _notice(said: JsonObject) -> Notice | None:
    kind, tenant_id = said.get("type"), said.get("tenantId")
    if not isinstance(kind, str) or kind not in _IDS or not isinstance(tenant_id, str):
        return None
    word = kind.rpartition(".")[2]
    return Notice(tenant_id, kind, {_IDS[kind]: said.get("id"), f"{word}By": said.get("by")})
