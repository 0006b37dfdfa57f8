"""Find what a receiver said when its work was done: an event in the log, named by its message.

    POST /v1/workflow-callbacks/<webhook-id> ──▶ penstock.callback.received ──▶ callbacks_in(find)

The event's id is a function of the message, so a receiver that calls back twice is heard once, and
looking for it is one look-up. Pure: `find` reads the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.envelope.envelope import Stored
from penstock.workflows.launch.webhook import Callback, Callbacks

RECEIVED: Final = "penstock.callback.received"
MESSAGE: Final = re.compile(r"[A-Za-z0-9_:-]{1,100}")
Find: TypeAlias = Callable[[str, str], Stored | None]  # (tenant, event id)


def callback_id(message: str) -> str:
    """The id of the event that says what became of a message."""
    return f"callback-{message}"


def callbacks_in(find: Find) -> Callbacks:
    """What receivers said, looked up in a log."""

    def said(tenant_id: str, message: str) -> Callback | None:
        stored = find(tenant_id, callback_id(message))
        # Only Penstock itself publishes this type: what is there came through the callback's door.
        if stored is None or stored.envelope.type != RECEIVED:
            return None
        payload = stored.envelope.payload
        if not isinstance(payload, dict):
            return None
        detail = payload.get("detail")
        return Callback(
            payload.get("succeeded") is True,
            payload.get("output"),
            detail if isinstance(detail, str) else "",
        )

    return said
