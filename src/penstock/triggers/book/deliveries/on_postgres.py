"""Read deliveries from PostgreSQL: of a trigger, of an event, with their history, and the backlog.

Everything is asked for one tenant; the backlog may be asked for all of them, by the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from psycopg import sql
from psycopg.rows import TupleRow

from penstock.base.errors import NotFound
from penstock.base.on_postgres import Pool, answering
from penstock.sql import query
from penstock.triggers.book.backlog import Backlog
from penstock.triggers.book.rows import (
    DELIVERY,
    HELD,
    HISTORY,
    delivery_of,
    held_of,
    history_of_row,
)
from penstock.triggers.delivery import Delivery, Held, HistoryEntry, Status

LIMIT_DEFAULT, LIMIT_MAX = 50, 200
BACKLOG_ENTRIES_MAX = 50
_JSON = frozenset({"parameters", "retry_metadata", "detail", "metadata"})
_Values: TypeAlias = dict[str, str | int | None]


def columns(names: Sequence[str]) -> sql.Composable:
    """Names of columns for a query; JSON is read as text, so that our own loader keeps digits."""
    return sql.SQL(", ").join(
        sql.SQL("{}::text").format(sql.Identifier(name)) if name in _JSON else sql.Identifier(name)
        for name in names
    )


class DeliveryBook:
    """What became of events at triggers."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def deliveries(
        self,
        tenant_id: str,
        trigger_id: str,
        *,
        limit: int = LIMIT_DEFAULT,
        status: Status | None = None,
        event_id: str | None = None,
        dedupe_key: str | None = None,
        before: int | None = None,
    ) -> list[Delivery]:
        """The newest deliveries of a trigger, or those of events before a position."""
        values: _Values = {
            "tenant": tenant_id, "trigger": trigger_id, "limit": min(limit, LIMIT_MAX),
            "status": status and status.value, "event_id": event_id, "dedupe_key": dedupe_key,
            "before": before,
        }  # fmt: skip
        return [delivery_of(row) for row in self._rows("deliveries", DELIVERY, values)]

    def delivery(self, tenant_id: str, delivery_id: str) -> tuple[Delivery, list[HistoryEntry]]:
        """One delivery and what each pass made of it, oldest first."""
        values: _Values = {"tenant": tenant_id, "id": delivery_id}
        rows = self._rows("delivery", DELIVERY, values)
        if not rows:
            raise NotFound(f"expected a delivery by the id {delivery_id[:60]!r}, found none")
        history = self._rows("history", HISTORY, values)
        return delivery_of(rows[0]), [history_of_row(row) for row in history]

    def of_event(self, tenant_id: str, event_id: str) -> list[Delivery]:
        """The deliveries of one event, oldest trigger first."""
        values: _Values = {"tenant": tenant_id, "event_id": event_id}
        return [delivery_of(row) for row in self._rows("of_event", DELIVERY, values)]

    def waiting(
        self, tenant_id: str | None, *, limit: int = BACKLOG_ENTRIES_MAX
    ) -> tuple[Backlog, list[Delivery]]:
        """Deliveries that are to be judged again, the next one first."""
        values: _Values = {"tenant": tenant_id, "limit": limit}
        entries = [delivery_of(row) for row in self._rows("waiting", DELIVERY, values)]
        return self._backlog("waiting_summary", values), entries

    def held(
        self, tenant_id: str | None, *, limit: int = BACKLOG_ENTRIES_MAX
    ) -> tuple[Backlog, list[Held]]:
        """Events that wait because their source must, the next one first."""
        values: _Values = {"tenant": tenant_id, "limit": limit}
        entries = [held_of(row) for row in self._rows("held", HELD, values)]
        return self._backlog("held_summary", values), entries

    def held_event(self, tenant_id: str, event_id: str) -> Held | None:
        """How one event waited for its source; None when it never did."""
        rows = self._rows("held_event", HELD, {"tenant": tenant_id, "event_id": event_id})
        return held_of(rows[0]) if rows else None

    def _rows(self, name: str, names: Sequence[str], values: _Values) -> list[TupleRow]:
        text = sql.SQL(query("trigger_deliveries", name)).format(columns=columns(names))
        with answering(), self._pool.connection() as connection:
            return connection.execute(text, values).fetchall()

    def _backlog(self, name: str, values: _Values) -> Backlog:
        with answering(), self._pool.connection() as connection:
            row = connection.execute(query("trigger_deliveries", name), values).fetchone()
        return Backlog(*(row or (0, 0, None)))
