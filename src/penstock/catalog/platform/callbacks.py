"""Declare that a receiver of a webhook called back: its work is done, well or badly."""

from __future__ import annotations

from pydantic import JsonValue

from penstock.catalog.platform.fields import Name
from penstock.registry.declare import EventType, Payload


class CallbackReceived(Payload):
    """The receiver of a webhook said what became of the work; the step that waits goes on."""

    message_id: Name
    """The `webhook-id` of the message that asked for the work."""
    succeeded: bool
    """Whether the work was done."""
    output: JsonValue = None
    """What the step's output becomes."""
    detail: str | None = None
    """Why it was not done."""
    actor: str | None = None
    """The name of the token that called back."""
    actor_token_id: str | None = None
    """The id of that token."""


EVENTS = (
    EventType(
        "penstock.callback.received",
        CallbackReceived,
        sources=("penstock.api",),
        example={
            "messageId": "msg_3f9a",
            "succeeded": True,
            "output": {"rows": 24},
            "actor": "loader",
        },
    ),
)
