"""Declare what happens around secrets: who asked for one, and the tokens that open them.

No event ever carries a secret or a token, only their names.
"""

from __future__ import annotations

from typing import Literal

from penstock.catalog.platform.fields import Fields, Instant, Name
from penstock.registry.declare import EventType, Payload

_SOURCES = ("core.secrets",)


class SecretAccess(Payload):
    """Somebody asked for a secret, and was given it or not."""

    outcome: Literal["authorized", "forbidden", "missing", "expired"]
    """What they got."""
    secret_key: Name | None = None
    """The name of the secret."""
    backend: str | None = None
    """Where it is kept."""
    actor: str | None = None
    """Who asked."""
    reason: str | None = None
    """Why they were refused."""
    metadata: Fields | None = None
    """What else is known."""


class _SecretToken(Payload):
    """A token that opens secrets."""

    token_id: Name
    """The token's id, never the token."""
    subject: str | None = None
    """Whom it was given to."""
    secret_keys: list[str] | None = None
    """The secrets it opens."""
    expires_at: Instant | None = None
    """When it stops opening them."""
    actor: str | None = None
    """Who did it."""


class SecretTokenIssued(_SecretToken):
    """A token for secrets was handed out."""


class SecretTokenRefreshed(_SecretToken):
    """A token for secrets was given more time."""


class SecretTokenRevoked(_SecretToken):
    """A token for secrets was taken back."""


_TOKEN = {"tokenId": "tok-3", "subject": "job-7", "secretKeys": ["db-password"], "actor": "ana"}
_UNTIL = {**_TOKEN, "expiresAt": "2026-03-01T11:30:00.000Z"}

EVENTS = (
    EventType(
        "secret.access",
        SecretAccess,
        sources=_SOURCES,
        example={"outcome": "authorized", "secretKey": "db-password", "actor": "job-7"},
    ),
    EventType("secret.token.issued", SecretTokenIssued, sources=_SOURCES, example=_UNTIL),
    EventType("secret.token.refreshed", SecretTokenRefreshed, sources=_SOURCES, example=_UNTIL),
    EventType("secret.token.revoked", SecretTokenRevoked, sources=_SOURCES, example=_TOKEN),
)

SECRET_ACCESS, SECRET_TOKEN_ISSUED, SECRET_TOKEN_REFRESHED, SECRET_TOKEN_REVOKED = EVENTS
