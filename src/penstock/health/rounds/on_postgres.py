"""Go the round: keep the totals, look at the figures, tell what is to be told.

    alert_round(pool, settings, http)     every few seconds, by every worker

One process at a time decides about alerts: it holds a session lock meanwhile, so however many
workers there are, an alert goes out once a window. One that could not be sent is tried again in
the next round; nothing is remembered before somebody was told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import psycopg
from psycopg.rows import TupleRow

from penstock.base.on_postgres import Pool, answering
from penstock.base.settings import Settings
from penstock.health.activity.on_postgres import ActivityReader
from penstock.health.alarm import tell
from penstock.health.alerts import Alert, alerts_due, policy_of
from penstock.sql import query
from penstock.workflows.book.runs.on_postgres import RunReader
from penstock.workflows.launch.request import Http

_ROOM = "health"
_LOCK = 0x616C7274  # "alrt"
_Connection = psycopg.Connection[TupleRow]


def alert_round(pool: Pool, settings: Settings, http: Http | None) -> list[Alert]:
    """What was told in this round. `pool` plays the owner and has room for two connections.

    StoreUnavailable when PostgreSQL does not answer. Without an address, or a way out, alerts are
    logged. A receiver that does not answer ends the round, so it takes one time limit at most.
    """
    reader, policy = ActivityReader(pool), policy_of(settings)
    reader.keep_totals()
    told: list[Alert] = []
    with answering(), pool.connection() as connection, _alone(connection) as at:
        if at is None:
            return told
        window_s = policy.failure_window.total_seconds()
        streaks = RunReader(pool).streaks(threshold=policy.failure_threshold, window_s=window_s)
        sent: dict[str, datetime] = dict(connection.execute(query(_ROOM, "alerts_sent")).fetchall())
        for alert in alerts_due(at, streaks, reader.backlogs(), sent, policy):
            if not tell(alert, settings, http):
                break
            values = {"key": alert.key, "event": alert.event, "at": alert.at}
            connection.execute(query(_ROOM, "keep_alert"), values)
            told.append(alert)
        connection.execute(query(_ROOM, "forget_alerts"))
    return told


@contextmanager
def _alone(connection: _Connection) -> Iterator[datetime | None]:
    """The time by the database's clock, when no other process is on its round; else None."""
    row = connection.execute(query(_ROOM, "try_round"), {"key": _LOCK}).fetchone()
    if row is None or not row[0]:
        yield None
        return
    try:
        yield row[1]
    finally:
        if not connection.broken:
            connection.execute(query(_ROOM, "end_round"), {"key": _LOCK})
