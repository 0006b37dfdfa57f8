"""Declare what Penstock says about itself: every act of an operator, and the demo's pulse."""

from __future__ import annotations

from pydantic import JsonValue

from penstock.catalog.platform.fields import Count, Fields, Name
from penstock.registry.declare import EventType, Payload

_SOURCES = ("penstock.api", "penstock.cli")


class _Act(Payload):
    """Something that somebody did with Penstock itself."""

    actor: str | None = None
    """The name of the token that did it."""
    actor_token_id: str | None = None
    """The id of that token."""


class _TokenAct(_Act):
    """Something that was done to a token."""

    token_id: Name
    """The token's id, never the token."""
    name: str | None = None
    """What it is called."""
    tenant_id: str | None = None
    """The tenant it is bound to."""
    scopes: list[str] | None = None
    """What it may do."""


class TokenCreated(_TokenAct):
    """An access token was made."""


class TokenRevoked(_TokenAct):
    """An access token was taken back."""


class SchemaOverride(Payload):
    """Why a version was let in although it breaks the one before it."""

    reason: str
    """What was given as the reason."""
    by: str | None = None
    """Who said so."""
    breaks: list[str] | None = None
    """What it breaks, in sentences."""


class SchemaRegistered(_Act):
    """A schema was registered, or its status changed."""

    event_type: Name
    """The type it describes."""
    version: Count
    """Its version."""
    status: str | None = None
    """draft, active or deprecated."""
    schema_hash: str | None = None
    """SHA-256 of the canonical schema."""
    override: SchemaOverride | None = None
    """Why it was let in, when it breaks the version before it."""


class DeadLettersRedriven(_Act):
    """Dead letters were sent through the pipeline again."""

    redriven: Count
    """How many passed."""
    still_failing: Count | None = None
    """How many did not."""
    filter: Fields | None = None
    """Which letters were meant, by filter."""
    ids: JsonValue = None
    """Which letters were meant, or how many, by id."""


class DemoHeartbeat(Payload):
    """The demo is alive; it beats so that the first look at the stream is not empty."""

    beat: Count | None = None
    """How many beats there were before."""
    note: str | None = None
    """A word for whoever reads along."""


_BY = {"actor": "admin", "actorTokenId": "0197a3c2-5a00-7000-8000-000000000001"}
_TOKEN = {
    "tokenId": "0197a3c2-5a00-7000-8000-000000000002",
    "name": "metastore",
    "tenantId": "default",
    "scopes": ["events:publish"],
    **_BY,
}

EVENTS = (
    EventType("penstock.token.created", TokenCreated, sources=_SOURCES, example=_TOKEN),
    EventType("penstock.token.revoked", TokenRevoked, sources=_SOURCES, example=_TOKEN),
    EventType(
        "penstock.schema.registered",
        SchemaRegistered,
        version=2,
        sources=_SOURCES,
        example={"eventType": "orders.order.placed", "version": 1, "status": "active", **_BY},
    ),
    EventType(
        "penstock.dead-letters.redriven",
        DeadLettersRedriven,
        sources=_SOURCES,
        example={"redriven": 12, "stillFailing": 1, "filter": {"reason": "type_unknown"}, **_BY},
    ),
    EventType(
        "penstock.demo.heartbeat",
        DemoHeartbeat,
        sources=("penstock.demo",),
        example={"beat": 0, "note": "hello"},
    ),
)
