"""Declare what Penstock says about personal data: that a subject was erased, never who it was."""

from __future__ import annotations

from penstock.catalog.platform.fields import Count, Name
from penstock.registry.declare import EventType, Payload


class SubjectErased(Payload):
    """The key of a subject was destroyed; its personal data cannot be read again."""

    subject: Name
    """The pseudonym of the subject, as stored fields have it."""
    keys: Count
    """How many keys were destroyed; none when there was no data, or it was erased before."""
    dead_letters: Count
    """How many dead letters were blanked because they named the subject."""
    reason: str | None = None
    """Why, in words that do not say who."""
    actor: str | None = None
    """The name of the token that did it."""
    actor_token_id: str | None = None
    """The id of that token."""


EVENTS = (
    EventType(
        "privacy.subject.erased",
        SubjectErased,
        sources=("penstock.api",),
        example={
            "subject": "5f0e2a9c4b7d11c3a8e6d2f4b1907c35",
            "keys": 1,
            "deadLetters": 0,
            "reason": "request 2026-117",
            "actor": "admin",
            "actorTokenId": "0197a3c2-5a00-7000-8000-000000000001",
        },
    ),
)
