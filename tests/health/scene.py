"""Make a house where everything happens at once, for tests of health."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from tests.triggers.on_postgres.support import (
    TableLauncher,
    act,
    host_of,
    prepare_runs,
    settle,
    spec,
    store,
)

from penstock.base.on_postgres import Pool, open_pool
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.limits import Breaker, Limits, SourceLimit
from penstock.triggers.words import ActKind, Target

NOISY = SourceLimit("noisy.api", 2, 60_000, 60_000)
LIMITS = Limits(sources=(NOISY,), breaker=Breaker(threshold=2, window_ms=60_000, pause_ms=60_000))

_RUNS = """
INSERT INTO workflow_runs (id, tenant_id, definition_id, definition_version, workflow_slug, status,
  parameters, shared, triggered_by, correlation_id, created_at, started_at, completed_at)
SELECT %(prefix)s || n, %(tenant)s, 'wf-' || %(slug)s, 1, %(slug)s, %(status)s, '{}', '{}', 'tests',
       'c', now() - interval '10 seconds', now() - interval '3 seconds',
       CASE WHEN %(status)s NOT IN ('pending', 'running') THEN now() - interval '1 second' END
  FROM generate_series(1, %(count)s) AS n
"""
_STEP = """
INSERT INTO workflow_run_steps (run_id, address, place, tenant_id, step_id, status, attempt,
  failure_reason, error_message, next_attempt_at, retry_state, retry_attempts)
VALUES (%(run_id)s, %(address)s, 0, %(tenant)s, %(address)s, 'pending', 2, 'request_failed',
  'no answer', now() + %(due_s)s * interval '1 second', 'scheduled', 1)
"""
_REST = """
INSERT INTO workflow_definitions (id, tenant_id, slug, name, version, created_by, updated_by)
VALUES ('wf-sync', 'default', 'sync', 'Sync', 1, 'ann', 'ann');
INSERT INTO jobs (tenant_id, run_id, address, attempt, run_at, state) VALUES
  ('default', 'active-1', 'load', 2, now() + interval '1 hour', 'w'),
  ('default', 'active-1', 'other', 1, now() - interval '2 seconds', 'w'),
  ('default', 'active-1', 'third', 1, now(), 'a');
INSERT INTO workflow_workers (name) VALUES ('here:1');
INSERT INTO workflow_schedules (id, tenant_id, workflow_slug, name, cron, parameters, catch_up,
  next_run_at, catchup_cursor, is_active, last_error, created_by, updated_by) VALUES
  ('s-1', 'default', 'sync', 'hourly', '0 * * * *', '{}', 'all', now() + interval '1 hour',
   now() - interval '1 minute', true, NULL, 'ann', 'ann'),
  ('s-2', 'default', 'sync', 'late', '0 * * * *', '{}', 'all', now() - interval '1 minute',
   NULL, true, 'expected a workflow', 'ann', 'ann'),
  ('s-3', 'default', 'sync', 'off', '0 * * * *', '{}', 'all', NULL, NULL, false, NULL,
   'ann', 'ann');
INSERT INTO event_outbox (tenant_id, event, refused) VALUES
  ('default', '{}', NULL), ('default', '{}', 'type_unknown');
"""


@dataclass(frozen=True)
class Scene:
    """A database, and who is in it."""

    dsn: str
    pool: Pool
    triggers: dict[str, str]  # name -> id

    def do(self, text: str, **values: object) -> None:
        with psycopg.connect(self.dsn) as connection:
            connection.execute(text.encode(), values or None)

    def run(
        self, prefix: str, status: str, count: int, *, slug: str = "sync", tenant: str = "default"
    ) -> None:
        """Runs of that status; those that ended took two seconds, and ended a second ago."""
        self.do(_RUNS, prefix=prefix, status=status, count=count, slug=slug, tenant=tenant)

    def retry(self, run_id: str, address: str, *, due_s: float, tenant: str = "default") -> None:
        """A step that waits for another try."""
        self.do(_STEP, run_id=run_id, address=address, due_s=due_s, tenant=tenant)


@contextmanager
def quiet_scene(dsn: str) -> Iterator[Scene]:
    """A house where nothing has happened yet."""
    with open_pool(dsn, "owner", size_max=4) as pool:
        yield Scene(dsn, pool, {})


@contextmanager
def busy_scene(dsn: str) -> Iterator[Scene]:
    """Triggers that launch, throttle, collect and fail; sources that wait; runs and retries."""
    prepare_runs(dsn)
    with open_pool(dsn, "owner", size_max=4) as pool:
        book = TriggerBook(pool)
        specs = {
            "launches": spec(name="launches"),
            "throttles": spec(name="throttles", throttleWindowMs=60_000, throttleCount=1),
            "collects": spec(name="collects", per="batch", batchMaxEvents=100,
                             batchTimeoutMs=3_600_000),
            "fails": spec(name="fails"),
        }  # fmt: skip
        slugs = {"fails": "broken"}
        triggers = {
            name: book.create(each, workflow_slug=slugs.get(name, "sync"), by="ann").id
            for name, each in specs.items()
        }
        book.create(spec(name="theirs"), workflow_slug="sync", by="bob", tenant_id="globex")
        host = host_of(dsn, TableLauncher(), LIMITS)
        try:
            host.act(act(ActKind.PAUSE, Target.SOURCE, "slow.api", reason="maintenance"))
            store(dsn, 3)
            store(dsn, 4, source="noisy.api")
            store(dsn, 2, source="slow.api")
            settle(host)
        finally:
            host.close()
        scene = Scene(dsn, pool, triggers)
        scene.run("done-", "succeeded", 4)
        scene.run("bad-", "failed", 1)
        scene.run("active-", "running", 1)
        scene.retry("active-1", "load", due_s=3_600)
        scene.do(_REST)
        yield scene
