"""Say what every queue promises: `send` returns a future that resolves when the bytes are durable.

A transport carries bytes and does not look inside them. What arrives is treated as untrusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple, Protocol

UNBOUND = "-"  # stands for the tenant of a message that may name its own


class Message(NamedTuple):
    """One event on its way, with what the door knew about it.

    A tuple, because the ingress makes one per line and a frozen dataclass takes thrice as long.
    """

    json: bytes  # on one line
    accepted_ms: int
    tenant_id: str
    via: str


class Transport(Protocol):
    """A durable queue, seen by whoever puts messages on it."""

    def send(self, messages: Sequence[Message]) -> Future[None]:
        """Queue all of them; the future resolves when all are durable.

        It fails with QueueUnavailable when they are not: then sending them again is safe.
        """

    def close(self) -> None:
        """Make durable what was sent, and let go."""
