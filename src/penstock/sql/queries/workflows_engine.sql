-- Runs and their steps: locked by id, advanced by the pure `advance`, written back in bulk.
--
-- Where jobs are looked up by their key, their state is asked for as what it is not: otherwise the small
-- index of active or waiting jobs would be walked from end to end for every one of them.

-- name: lock_finished
-- why:  Only whoever holds the newest claim may say how a job ended; runs are locked in one order.
SELECT j.id, r.id, r.rev, r.status
  FROM json_to_recordset(%(rows)s::json) AS f (id bigint, fence integer)
  JOIN jobs AS j ON j.id = f.id AND j.fence = f.fence AND j.state <> 'w'
  JOIN workflow_runs AS r ON r.id = j.run_id
 ORDER BY r.id, j.id FOR UPDATE OF r, j;

-- name: lock_run
-- why:  An operator's act on one run waits its turn like everything else.
SELECT r.rev, r.definition_id, r.definition_version FROM workflow_runs AS r WHERE r.id = %(id)s AND r.tenant_id = %(tenant)s FOR UPDATE;

-- name: load_runs
-- why:  What `advance` reads of the runs that are not in memory, or were changed by another worker.
SELECT id, rev, status, parameters::text, shared::text, run_key, trigger::text, partition_key, correlation_id
  FROM workflow_runs WHERE id = ANY (%(ids)s::text[]);

-- name: load_steps
-- why:  Their steps, in the order they were made.
SELECT run_id, address, step_id, status, attempt, input::text, output::text, failure_reason, error_message, fanout_index
  FROM workflow_run_steps WHERE run_id = ANY (%(ids)s::text[]) ORDER BY run_id, place;

-- name: load_definition
-- why:  A version never changes, so it is read once.
SELECT definition::text FROM workflow_definition_versions WHERE definition_id = %(id)s AND version = %(version)s;

-- name: current_definitions
-- why:  Which version a launch begins with.
SELECT d.tenant_id, d.slug, d.id, d.version, d.is_active
  FROM json_to_recordset(%(rows)s::json) AS w (tenant_id text, slug text)
  JOIN workflow_definitions AS d ON d.tenant_id = w.tenant_id AND d.slug = w.slug AND d.deleted_at IS NULL;

-- name: insert_steps
-- why:  Steps come into being when something follows from what finished.
INSERT INTO workflow_run_steps
  (run_id, address, place, tenant_id, step_id, fanout_index, status, attempt, input, output, failure_reason, error_message, resolution_error, completed_at)
SELECT s.run_id, s.address, s.place, s.tenant_id, s.step_id, s.fanout_index, s.status, s.attempt, s.input, s.output, s.reason, s.detail,
       s.reason IS NOT DISTINCT FROM 'unresolved_input', CASE WHEN s.status NOT IN ('pending', 'running') THEN now() END
  FROM json_to_recordset(%(rows)s::json)
    AS s (run_id text, address text, place integer, tenant_id text, step_id text, fanout_index integer, status text, attempt integer, input json, output json,
          reason text, detail text);

-- name: update_steps
-- why:  What finished, what will be tried again and when, and what is called off.
UPDATE workflow_run_steps AS s
   SET status = u.status, attempt = u.attempt, input = coalesce(u.input, s.input), output = u.output, failure_reason = u.reason, error_message = u.detail,
       resolution_error = u.reason IS NOT DISTINCT FROM 'unresolved_input',
       job_run_id = coalesce(u.job_run_id, s.job_run_id), started_at = coalesce(u.started_at, s.started_at),
       completed_at = CASE WHEN u.status NOT IN ('pending', 'running') THEN now() END,
       next_attempt_at = now() + u.delay_ms * interval '1 millisecond',
       retry_state = CASE WHEN u.delay_ms IS NOT NULL THEN 'scheduled' WHEN s.retry_state = 'cancelled' THEN 'cancelled' WHEN s.retry_attempts > 0 THEN 'completed' ELSE 'pending' END,
       retry_attempts = s.retry_attempts + (u.delay_ms IS NOT NULL)::integer, updated_at = now()
  FROM json_to_recordset(%(rows)s::json)
    AS u (run_id text, address text, status text, attempt integer, input json, output json, reason text, detail text, job_run_id text, started_at timestamptz,
          delay_ms bigint)
 WHERE s.run_id = u.run_id AND s.address = u.address;

-- name: queue_jobs
-- why:  A step has one row in the queue; its next attempt takes the place of the last.
INSERT INTO jobs AS j (tenant_id, run_id, address, attempt, run_at)
SELECT q.tenant_id, q.run_id, q.address, q.attempt, now() + q.delay_ms * interval '1 millisecond'
  FROM json_to_recordset(%(rows)s::json) AS q (tenant_id text, run_id text, address text, attempt integer, delay_ms bigint)
ON CONFLICT (run_id, address) DO UPDATE
  SET state = 'w', worker = NULL, attempt = excluded.attempt, run_at = excluded.run_at, token = NULL, queued_at = now(), claimed_at = NULL, started_at = NULL;

-- name: delete_jobs
-- why:  Its history is elsewhere.
DELETE FROM jobs AS j USING json_to_recordset(%(rows)s::json) AS d (id bigint) WHERE j.id = d.id;

-- name: drop_jobs
-- why:  What waits is taken out; what runs is told to stop by its own worker, which asks. What waits for work elsewhere is taken up at once, to end that too.
WITH waiting AS MATERIALIZED (
  SELECT j.id, j.token IS NOT NULL AS is_elsewhere FROM json_to_recordset(%(rows)s::json) AS d (run_id text, address text)
    JOIN jobs AS j ON j.run_id = d.run_id AND j.address = d.address WHERE j.state <> 'a' FOR UPDATE OF j SKIP LOCKED),
hurried AS (
  UPDATE jobs AS j SET run_at = now() FROM waiting AS w WHERE j.id = w.id AND w.is_elsewhere)
DELETE FROM jobs AS j USING waiting AS w WHERE j.id = w.id AND NOT w.is_elsewhere;

-- name: insert_job_runs
-- why:  One row per execution, when it is over.
INSERT INTO job_runs (run_id, address, number, tenant_id, job_slug, kind, attempt, status, failure_reason, error_message, logs, worker, queued_at, started_at)
SELECT * FROM json_to_recordset(%(rows)s::json)
    AS j (run_id text, address text, number integer, tenant_id text, job_slug text, kind text, attempt integer, status text, failure_reason text, error_message text,
          logs text, worker text, queued_at timestamptz, started_at timestamptz);

-- name: insert_history
-- why:  Append-only: what the rows above forget when they change.
INSERT INTO workflow_execution_history (tenant_id, run_id, address, event_type, payload)
SELECT h.tenant_id, h.run_id, h.address, h.event_type, coalesce(h.payload, '{}'::jsonb)
  FROM json_to_recordset(%(rows)s::json) AS h (tenant_id text, run_id text, address text, event_type text, payload jsonb);

-- name: update_runs
-- why:  The end of a run, its event, and what its trigger hears commit together.
WITH changed AS (
  UPDATE workflow_runs AS r
     SET rev = r.rev + 1, shared = coalesce(u.shared, r.shared), status = coalesce(u.status, r.status), output = coalesce(u.output, r.output),
         failure_reason = coalesce(u.reason, r.failure_reason), error_message = coalesce(u.detail, r.error_message),
         current_step_id = coalesce(u.step_id, r.current_step_id), updated_at = now(),
         started_at = coalesce(r.started_at, now()), completed_at = CASE WHEN u.status IS NOT NULL THEN now() END
    FROM json_to_recordset(%(rows)s::json) AS u (id text, shared json, status text, output json, reason text, detail text, step_id text)
   WHERE r.id = u.id RETURNING r.tenant_id, r.id, r.status, r.failure_reason, r.error_message, r.watchers, u.status IS NOT NULL AS is_over),
told AS (
  INSERT INTO event_outbox (tenant_id, run_id, run_status) SELECT c.tenant_id, c.id, c.status FROM changed AS c WHERE c.is_over),
noted AS (
  INSERT INTO workflow_execution_history (tenant_id, run_id, event_type, payload)
  SELECT c.tenant_id, c.id, 'run.' || c.status, jsonb_strip_nulls(jsonb_build_object('reason', c.failure_reason, 'detail', c.error_message))
    FROM changed AS c WHERE c.is_over),
ended AS (
  INSERT INTO trigger_run_ends (tenant_id, run_id, trigger_id, status)
  SELECT c.tenant_id, c.id, w.trigger_id, c.status FROM changed AS c CROSS JOIN unnest(c.watchers) AS w (trigger_id) WHERE c.is_over
  RETURNING id)
SELECT count(*), CASE WHEN count(*) > 0 THEN pg_notify('penstock_run_ends', '') END FROM ended;

-- name: insert_runs
-- why:  A run whose key an active run has is not made: the launch is told of that one, which a trigger then watches.
WITH made AS (
  INSERT INTO workflow_runs AS r
    (id, tenant_id, definition_id, definition_version, workflow_slug, status, watchers, run_key, run_key_normalized, parameters, shared, triggered_by,
     trigger, trigger_id, partition_key, correlation_id, causation_id, depth, replay_of)
  SELECT g.id, g.tenant_id, g.definition_id, g.definition_version, g.workflow_slug, 'pending', CASE WHEN g.trigger_id IS NULL THEN '{}' ELSE ARRAY[g.trigger_id] END, g.run_key, g.run_key_normalized, g.parameters, '{}',
         g.triggered_by, g.trigger, g.trigger_id, g.partition_key, g.correlation_id, g.causation_id, g.depth, g.replay_of
    FROM json_to_recordset(%(rows)s::json)
      AS g (id text, tenant_id text, definition_id text, definition_version integer, workflow_slug text, run_key text, run_key_normalized text,
            parameters json, triggered_by text, trigger json, trigger_id text, partition_key text, correlation_id text, causation_id text, depth integer, replay_of text)
   WHERE NOT EXISTS (SELECT FROM workflow_runs AS old WHERE old.id = g.id)
   ORDER BY g.definition_id, g.run_key_normalized
  ON CONFLICT (definition_id, run_key_normalized) WHERE run_key_normalized IS NOT NULL AND status IN ('pending', 'running')
  DO UPDATE SET watchers = CASE WHEN excluded.watchers <@ r.watchers THEN r.watchers ELSE r.watchers || excluded.watchers END
  RETURNING r.tenant_id, r.id, r.definition_id, r.run_key_normalized, r.triggered_by, r.xmax = 0 AS is_new),
told AS (
  INSERT INTO event_outbox (tenant_id, run_id, run_status) SELECT m.tenant_id, m.id, 'pending' FROM made AS m WHERE m.is_new),
noted AS (
  INSERT INTO workflow_execution_history (tenant_id, run_id, event_type, payload)
  SELECT m.tenant_id, m.id, 'run.pending', jsonb_build_object('triggeredBy', m.triggered_by) FROM made AS m WHERE m.is_new)
SELECT m.id, m.definition_id, m.run_key_normalized, m.is_new FROM made AS m;

-- name: watch
-- why:  Launches of one statement that share a key share a run; each trigger hears of its end.
UPDATE workflow_runs AS r SET watchers = r.watchers || w.trigger_id
  FROM (SELECT DISTINCT run_id, trigger_id FROM json_to_recordset(%(rows)s::json) AS w (run_id text, trigger_id text)) AS w
 WHERE r.id = w.run_id AND NOT (w.trigger_id = ANY (r.watchers));

-- name: mark_retry
-- why:  Only a scheduled retry can be called off or brought forward, and it says who did.
UPDATE workflow_run_steps AS s
   SET retry_state = %(state)s, next_attempt_at = CASE WHEN %(state)s = 'pending' THEN now() END, updated_at = now(),
       retry_metadata = coalesce(s.retry_metadata, '{}'::jsonb) || jsonb_build_object(%(word)s || 'By', %(by)s::text, %(word)s || 'At', wire_instant(now()))
  FROM workflow_runs AS r
 WHERE s.run_id = %(run_id)s AND s.address = %(address)s AND r.id = s.run_id AND r.tenant_id = %(tenant)s
   AND s.retry_state = 'scheduled' AND s.status = 'pending' AND r.status IN ('pending', 'running')
   AND EXISTS (SELECT FROM jobs AS j WHERE j.run_id = s.run_id AND j.address = s.address AND j.state <> 'a')
RETURNING s.attempt, s.failure_reason, s.error_message;

-- name: advance_job
-- why:  The queue, too, must think that it is due.
UPDATE jobs SET run_at = now() WHERE run_id = %(run_id)s AND address = %(address)s AND state <> 'a';

-- name: tell_retry
-- why:  Operators who watch see a frame.
SELECT pg_notify('penstock_retries', %(notice)s);
