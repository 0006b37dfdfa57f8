"""Read the figures about triggers from PostgreSQL; passes keep them as they go."""

from __future__ import annotations

from psycopg.rows import TupleRow

from penstock.base.on_postgres import Pool, answering
from penstock.sql import query
from penstock.triggers.book.figure import Progress, SourceFigures, TriggerFigures
from penstock.triggers.book.rows import read
from penstock.triggers.delivery import Pause, SourcePause


class FigureBook:
    """What health and metrics ask; a tenant sees its own, None asks for all."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def sources(self, tenant_id: str | None = None) -> list[SourceFigures]:
        """Counters and lag of every source that was judged."""
        return [SourceFigures(*row) for row in self._rows("sources", tenant_id)]

    def triggers(self, tenant_id: str | None = None) -> list[TriggerFigures]:
        """Counters of every trigger, oldest first."""
        return [TriggerFigures(*row) for row in self._rows("triggers", tenant_id)]

    def paused_triggers(self, tenant_id: str | None = None) -> list[Pause]:
        """Pauses of triggers; `is_open` tells a half-open one."""
        return [Pause(*row) for row in self._rows("paused_triggers", tenant_id)]

    def paused_sources(self, tenant_id: str | None = None) -> list[SourcePause]:
        """Pauses of sources."""
        return [
            SourcePause(tenant, source, paused_at, until, reason, read(details), by)
            for tenant, source, paused_at, until, reason, details, by in self._rows(
                "paused_sources", tenant_id
            )
        ]

    def progress(self) -> Progress:
        """How far passes have come, and how far they are behind the log."""
        return Progress(*self._rows("progress", None)[0])

    def _rows(self, name: str, tenant_id: str | None) -> list[TupleRow]:
        with answering(), self._pool.connection() as connection:
            text = query("trigger_figures", name)
            return connection.execute(text, {"tenant": tenant_id}).fetchall()
