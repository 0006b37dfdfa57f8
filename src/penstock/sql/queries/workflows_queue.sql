-- The queue: who works, what waits, what runs. Only the database's clock is asked.

-- name: settle_in
-- why:  Every statement here is one walk through known indexes, whatever the tables have grown to.
SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false),
       set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false), set_config('enable_bitmapscan', 'off', false),
       set_config('jit', 'off', false), set_config('lock_timeout', '20s', false), set_config('statement_timeout', '30s', false),
       set_config('idle_in_transaction_session_timeout', '30s', false);

-- name: register
-- why:  A worker's number is new each time, so nothing of a former life is taken for its own.
INSERT INTO workflow_workers (name) VALUES (%(name)s) RETURNING id;

-- name: hold
-- why:  The session lock goes with the connection, hence with the process: peers see at once who died.
SELECT pg_advisory_lock(%(space)s::integer, %(worker)s::integer);

-- name: listen
-- why:  A notification is a hint; the worker also looks by itself.
LISTEN penstock_jobs;

-- name: adopt
-- why:  A worker that had to connect again keeps what nobody has taken from it meanwhile.
UPDATE jobs AS j SET worker = %(worker)s
  FROM json_to_recordset(%(rows)s::json) AS f (id bigint, fence integer)
 WHERE j.id = f.id AND j.fence = f.fence AND j.state <> 'w' RETURNING j.id;

-- name: heartbeat
-- why:  No row means that a peer declared this worker dead: what it runs is no longer its own.
UPDATE workflow_workers SET heartbeat_at = clock_timestamp() WHERE id = %(worker)s RETURNING id;

-- name: leave
-- why:  A worker that goes in peace gives back what it did not begin.
WITH freed AS (
  UPDATE jobs SET state = 'w', worker = NULL, run_at = now(), started_at = CASE WHEN token IS NULL THEN NULL ELSE started_at END
   WHERE worker = %(worker)s AND state = 'a' RETURNING id),
gone AS (DELETE FROM workflow_workers WHERE id = %(worker)s)
SELECT count(*), CASE WHEN count(*) > 0 THEN pg_notify('penstock_jobs', '') END FROM freed;

-- name: claim
-- why:  Takes what is due and nobody else is taking; now() is fixed, so the index is read only as far as due.
WITH picked AS MATERIALIZED (
  SELECT id FROM jobs
   WHERE state = 'w' AND queue = %(queue)s AND run_at <= now()
   ORDER BY priority, run_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED),
claimed AS (
  UPDATE jobs AS j
     SET state = 'a', worker = %(worker)s, fence = j.fence + 1, claimed_at = now(),
         number = j.number + (j.started_at IS NULL)::integer, started_at = coalesce(j.started_at, now())
    FROM picked AS p WHERE j.id = p.id RETURNING j.*),
-- Whoever else holds such a run is about to start it too, or to cancel it. Its state is asked for as what
-- it is not, so that it is found by its key and not by walking through all that are active.
fresh AS MATERIALIZED (
  SELECT r.id FROM workflow_runs AS r
   WHERE r.id IN (SELECT c.run_id FROM claimed AS c WHERE c.attempt = 1)
     AND r.status NOT IN ('running', 'succeeded', 'failed', 'canceled') ORDER BY r.id FOR UPDATE OF r SKIP LOCKED),
started AS (
  UPDATE workflow_runs AS r SET status = 'running', started_at = now(), updated_at = now()
    FROM fresh AS f WHERE r.id = f.id RETURNING r.tenant_id, r.id),
told AS (
  INSERT INTO event_outbox (tenant_id, run_id, run_status) SELECT s.tenant_id, s.id, 'running' FROM started AS s),
noted AS (
  INSERT INTO workflow_execution_history (tenant_id, run_id, event_type) SELECT s.tenant_id, s.id, 'run.running' FROM started AS s)
SELECT c.id, c.fence, c.run_id, c.address, c.attempt, c.number, c.lost, c.token::text, c.queued_at, c.started_at, now() AS claimed_at,
       s.step_id, s.input::text, r.tenant_id, r.status, r.definition_id, r.definition_version, r.run_key, r.correlation_id, r.causation_id
  FROM claimed AS c
  JOIN workflow_runs AS r ON r.id = c.run_id
 -- By both columns of its key: a run may have thousands of steps.
 CROSS JOIN LATERAL (SELECT s.step_id, s.input FROM workflow_run_steps AS s WHERE s.run_id = c.run_id AND s.address = c.address OFFSET 0) AS s
 ORDER BY c.priority, c.run_at, c.id;

-- name: postpone
-- why:  The work goes on elsewhere; the same execution is looked at again after a while.
UPDATE jobs AS j SET state = 'w', worker = NULL, run_at = now() + w.delay_ms * interval '1 millisecond', token = w.token
  FROM json_to_recordset(%(rows)s::json) AS w (id bigint, fence integer, delay_ms bigint, token json)
 WHERE j.id = w.id AND j.fence = w.fence AND j.state <> 'w';

-- name: overdue
-- why:  Dead is whose session lock is free, or who was not heard for longer than the lease.
SELECT w.id, l.objid IS NULL AS is_gone
  FROM workflow_workers AS w
  LEFT JOIN (SELECT objid FROM pg_locks
              WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND classid = %(space)s::integer::oid AND objsubid = 2 AND granted) AS l ON l.objid = w.id::oid
 WHERE w.id <> %(worker)s
   AND (l.objid IS NULL OR w.heartbeat_at <= clock_timestamp() - %(lease_s)s::float8 * interval '1 second');

-- name: reap
-- why:  What a dead worker held is free again: at once, but apart from its neighbours if it keeps happening, so that only one to blame is blamed.
WITH gone AS (
  DELETE FROM workflow_workers WHERE id = ANY (%(workers)s::integer[]) RETURNING id, name),
held AS MATERIALIZED (
  SELECT j.id, g.name FROM jobs AS j JOIN gone AS g ON j.worker = g.id WHERE j.state = 'a' FOR UPDATE OF j SKIP LOCKED),
freed AS (
  UPDATE jobs AS j
     SET state = 'w', worker = NULL, lost = j.lost + 1, started_at = CASE WHEN j.token IS NULL THEN NULL ELSE j.started_at END,
         run_at = now() + CASE WHEN j.lost = 0 THEN 0 ELSE (1 << least(j.lost, 6)) * random() END * interval '500 milliseconds'
    FROM held AS h, jobs AS before WHERE j.id = h.id AND before.id = j.id
  RETURNING j.tenant_id, j.run_id, j.address, j.number, j.attempt, j.token, j.queued_at, before.started_at, h.name),
recorded AS (
  INSERT INTO job_runs (run_id, address, number, tenant_id, job_slug, kind, attempt, status, failure_reason, error_message, worker, queued_at, started_at)
  SELECT f.run_id, f.address, f.number, f.tenant_id, '', '', f.attempt, 'failed', %(reason)s::text, 'its worker ended while it ran', f.name, f.queued_at, f.started_at
    FROM freed AS f WHERE f.token IS NULL),
noted AS (
  INSERT INTO workflow_execution_history (tenant_id, run_id, address, event_type, payload)
  SELECT f.tenant_id, f.run_id, f.address, 'step.lost', jsonb_build_object('attempt', f.attempt, 'worker', f.name, 'reason', %(reason)s::text)
    FROM freed AS f)
SELECT count(*), CASE WHEN count(*) > 0 THEN pg_notify('penstock_jobs', '') END FROM freed;

-- name: orphans
-- why:  A job whose worker has no row at all, for instance because it was reaped while the job was locked.
UPDATE jobs AS j
   SET state = 'w', worker = NULL, run_at = now(), lost = j.lost + 1, started_at = CASE WHEN j.token IS NULL THEN NULL ELSE j.started_at END
 WHERE j.id IN (SELECT o.id FROM jobs AS o
                 WHERE o.state = 'a' AND o.worker IS NOT NULL AND NOT EXISTS (SELECT FROM workflow_workers AS w WHERE w.id = o.worker)
                 FOR UPDATE SKIP LOCKED);

-- name: called_off
-- why:  What this worker runs although its run is over, or its step is.
SELECT j.id FROM jobs AS j
  JOIN workflow_runs AS r ON r.id = j.run_id
 CROSS JOIN LATERAL (SELECT s.status FROM workflow_run_steps AS s WHERE s.run_id = j.run_id AND s.address = j.address OFFSET 0) AS s
 WHERE j.state = 'a' AND j.worker = %(worker)s
   AND (r.status NOT IN ('pending', 'running') OR s.status NOT IN ('pending', 'running'));

-- name: wake
-- why:  Once for a batch of runs: every NOTIFY makes commits wait for each other.
SELECT pg_notify('penstock_jobs', %(word)s);

-- name: counts
-- why:  Health in the words that operators of queues know.
SELECT count(*) FILTER (WHERE state = 'w' AND run_at <= now()) AS waiting, count(*) FILTER (WHERE state = 'a') AS active,
       count(*) FILTER (WHERE state = 'w' AND run_at > now()) AS delayed,
       extract(epoch FROM now() - min(run_at) FILTER (WHERE state = 'w' AND run_at <= now())) * 1000 AS oldest_ms
  FROM jobs WHERE queue = %(queue)s;

-- name: recent
-- why:  How long jobs waited and ran, of those that ended lately.
SELECT count(*) FILTER (WHERE status = 'succeeded') AS completed, count(*) FILTER (WHERE status <> 'succeeded') AS failed,
       avg(extract(epoch FROM completed_at - started_at) * 1000)::float8 AS processing_ms,
       avg(extract(epoch FROM started_at - queued_at) * 1000)::float8 AS waiting_ms
  FROM job_runs WHERE completed_at > now() - %(window_s)s * interval '1 second';

-- name: workers
-- why:  Who works, for health.
SELECT w.id, w.name, w.started_at, w.heartbeat_at, (SELECT count(*) FROM jobs AS j WHERE j.worker = w.id AND j.state = 'a') AS active
  FROM workflow_workers AS w ORDER BY w.id;
