"""Hand decided launches to whoever runs workflows, and incidents to whoever stores events.

    pass ── launches ──▶ Launcher ──▶ one outcome each, rows in the pass's own transaction
         ── events ────▶ Outbox   ──▶ rows in the same transaction, published after the commit

Both are called inside the transaction of the pass: what they write is committed with the decisions
or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.envelope.envelope import JsonObject
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.delivery import Launch, LaunchOutcome


class Launcher(Protocol):
    """Whatever turns launches into runs."""

    def __call__(self, connection: Connection, launches: Sequence[Launch]) -> list[LaunchOutcome]:
        """One outcome per launch, in order; all in one call, so that rows can go in together.

        It may be called again for the same launches after a rollback: an outcome that the decision
        did not expect, like an attached run, makes the pass decide again knowing it.
        """
        ...


class Outbox(Protocol):
    """Whatever publishes events once the transaction is committed."""

    def __call__(self, connection: Connection, events: Sequence[JsonObject]) -> None:
        """Keep events in wire form, ids filled in, to be published after the commit."""
        ...
