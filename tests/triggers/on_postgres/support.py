"""Make specs, events, launchers and hosts for tests of triggers on PostgreSQL."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from penstock.base.ids import uuid7
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.delivery import Act, Launch, Launched, LaunchOutcome, Refused
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.limits import Limits
from penstock.triggers.trigger import TriggerSpec
from penstock.triggers.words import ActKind, Target

TYPE = "metastore.record.updated"

_RUNS = """
CREATE TABLE IF NOT EXISTS test_runs (
  run_id text PRIMARY KEY, run_key text, trigger_id text, delivery_id text, event_ids text[],
  active boolean DEFAULT true)
"""
_EVENTS = """
INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, received_at,
  payload, correlation_id, causation_id, ttl_ms, severity, severity_rule, content_hash, hash)
SELECT h.position + n, 'default', 'evt-' || (h.position + n), %(type)s, %(source)s,
       clock_timestamp() - %(age)s, clock_timestamp(),
       coalesce(%(payload)s::jsonb,
                jsonb_build_object('n', h.position + n, 'mod', (h.position + n) %% 10)),
       %(correlation)s, %(cause)s, %(ttl_ms)s, 'info', 'default', '', ''
  FROM head AS h CROSS JOIN generate_series(1, %(count)s) AS n
"""


def spec(**said: Any) -> TriggerSpec:
    """A spec in wire words; by default it wants every updated record."""
    return TriggerSpec.model_validate({"name": "on update", "eventType": TYPE} | said)


def store(
    dsn: str,
    count: int,
    *,
    event_type: str = TYPE,
    source: str = "metastore.api",
    ttl_ms: int | None = None,
    age: timedelta = timedelta(),
    correlation: str | None = None,
    cause: str | None = None,
    payload: dict[str, Any] | None = None,
) -> None:
    """Store events the way an intake would: positions in commit order, and a notification."""
    values = {
        "count": count, "type": event_type, "source": source, "ttl_ms": ttl_ms, "age": age,
        "correlation": correlation, "cause": cause,
        "payload": None if payload is None else json.dumps(payload),
    }  # fmt: skip
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT FROM head FOR UPDATE")
        connection.execute(_EVENTS, values)
        connection.execute(
            "UPDATE head SET position = position + %(count)s, received_at = clock_timestamp()",
            values,
        )
        connection.execute("SELECT pg_notify('penstock_events', '')")


def act(kind: ActKind, target: Target, target_id: str, **said: Any) -> Act:
    """Something that an operator of the default tenant wants done now."""
    return Act(uuid7(), kind, target, target_id, "default", "ann", datetime.now(UTC), **said)


def prepare_runs(dsn: str) -> None:
    """Make the table that stands in for workflow runs."""
    with psycopg.connect(dsn) as connection:
        connection.execute(_RUNS)


class TableLauncher:
    """Start runs that are rows of a table. A workflow called `broken` refuses; keys attach."""

    def __init__(self) -> None:
        self.is_broken = False

    def __call__(self, connection: Connection, launches: Sequence[Launch]) -> list[LaunchOutcome]:
        return [self._start(connection, launch) for launch in launches]

    def _start(self, connection: Connection, launch: Launch) -> LaunchOutcome:
        if launch.workflow_slug == "broken" or self.is_broken:
            return Refused("expected a workflow that works, found a broken one")
        active = connection.execute(
            "SELECT run_id FROM test_runs WHERE run_key = %s AND active", (launch.run_key,)
        ).fetchone()
        if active is not None:
            return Launched(active[0], attached=True)
        ids = [stored.envelope.id for stored in launch.events]
        connection.execute(
            "INSERT INTO test_runs VALUES (%s, %s, %s, %s, %s)",
            (launch.run_id, launch.run_key, launch.trigger.id, launch.delivery_id, ids),
        )
        return Launched(launch.run_id)


def end_run(dsn: str, run_id: str, *, status: str = "succeeded") -> None:
    """End a run the way the workflow room does: in one transaction with the news of it."""
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "WITH done AS (UPDATE test_runs SET active = false WHERE run_id = %s RETURNING *)"
            " INSERT INTO trigger_run_ends (tenant_id, run_id, trigger_id, status)"
            " SELECT 'default', run_id, trigger_id, %s FROM done",
            (run_id, status),
        )
        connection.execute("SELECT pg_notify('penstock_run_ends', '')")


def runs(dsn: str) -> list[tuple[Any, ...]]:
    """Every run as (run id, trigger id, event ids), in order of its first event."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "SELECT run_id, trigger_id, event_ids FROM test_runs"
            " ORDER BY substr(event_ids[1], 5)::bigint, trigger_id"
        ).fetchall()


def host_of(dsn: str, launcher: TableLauncher, limits: Limits | None = None) -> TriggerHost:
    return TriggerHost(dsn, launcher, limits or Limits())


def settle(host: TriggerHost) -> int:
    """Run passes until nothing is left that could be done now; how many did something."""
    done = 0
    while host.run_pass().number is not None:
        done += 1
    return done


def await_that(claim: Callable[[], bool], *, within_s: float = 30.0) -> None:
    """Wait until a claim is true; fail when it takes too long."""
    until = time.monotonic() + within_s
    while not claim():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
