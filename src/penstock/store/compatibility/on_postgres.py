"""Read the stored payloads of one type, newest first, a page at a time, as the reader role.

Each page is a transaction of its own with the time that the caller has left; so a scan of many
pages holds nothing and disturbs nobody. Events never change, so the pages fit together.
"""

from __future__ import annotations

from datetime import datetime
from itertools import takewhile

from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import load_stored
from penstock.registry.evidence import KeptPayload
from penstock.sql import query

_POSITION_MAX = 2**63 - 1
_TIMEOUT_MS_MIN = 50


class PostgresPayloads:
    """The payloads of one tenant at a time (`registry.evidence.StoredPayloads`)."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def page(
        self, tenant_id: str, event_type: str, *, before: int | None, since: datetime,
        limit: int, within_s: float,
    ) -> list[KeptPayload]:  # fmt: skip
        parameters = {
            "tenant": tenant_id,
            "type": event_type,
            "before": _POSITION_MAX if before is None else before,
            "since": since,
            "limit": limit,
        }
        timeout_ms = max(_TIMEOUT_MS_MIN, int(within_s * 1000))
        with (
            answering(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            enter = {"tenant": tenant_id, "timeout_ms": str(timeout_ms)}
            connection.execute(query("compatibility", "enter"), enter)
            rows = connection.execute(query("compatibility", "page"), parameters).fetchall()
        return [
            KeptPayload(position, event_id, source, version, load_stored(payload))
            for position, event_id, source, version, payload, _ in takewhile(
                lambda row: row[5], rows
            )
        ]
