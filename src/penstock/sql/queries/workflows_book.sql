-- What people read and write about workflows: definitions, runs, schedules, services. Every one names a tenant.

-- name: replayed
-- why:  A replay begins with what the run began with, under the definition of today.
SELECT workflow_slug, parameters::text, trigger::text, partition_key, correlation_id, depth
  FROM workflow_runs WHERE tenant_id = %(tenant)s AND id = %(id)s;

-- name: create_definition
-- why:  Its first version, and the event that tells of it, commit together.
WITH made AS (
  INSERT INTO workflow_definitions (id, tenant_id, slug, name, version, is_active, created_by, updated_by)
  VALUES (%(id)s, %(tenant)s, %(slug)s, %(name)s, 1, %(active)s, %(by)s, %(by)s)
  ON CONFLICT (tenant_id, slug) WHERE deleted_at IS NULL DO NOTHING RETURNING id, tenant_id, version),
kept AS (
  INSERT INTO workflow_definition_versions (definition_id, version, tenant_id, definition, created_by)
  SELECT m.id, 1, m.tenant_id, %(definition)s::json, %(by)s FROM made AS m)
SELECT m.version FROM made AS m;

-- name: lock_definition
-- why:  Two people who change one workflow take turns. What it says is read afterwards: whoever waited here must not look for the version of before.
SELECT d.id, d.version, d.is_active FROM workflow_definitions AS d
 WHERE d.tenant_id = %(tenant)s AND d.slug = %(slug)s AND d.deleted_at IS NULL FOR UPDATE;

-- name: locked_definition
-- why:  What a workflow says, while nobody else can change it.
SELECT v.definition::text FROM workflow_definition_versions AS v WHERE v.definition_id = %(id)s AND v.version = %(version)s;

-- name: definition_ids
-- why:  Triggers name their workflow by its slug; answers also say its id.
SELECT d.slug, d.id FROM workflow_definitions AS d
 WHERE d.tenant_id = %(tenant)s AND d.slug = ANY (%(slugs)s::text[]) AND d.deleted_at IS NULL;

-- name: change_definition
-- why:  Versions are only ever added.
WITH changed AS (
  UPDATE workflow_definitions SET version = version + 1, name = %(name)s, updated_at = now(), updated_by = %(by)s WHERE id = %(id)s
  RETURNING id, tenant_id, version)
INSERT INTO workflow_definition_versions (definition_id, version, tenant_id, definition, created_by)
SELECT c.id, c.version, c.tenant_id, %(definition)s::json, %(by)s FROM changed AS c;

-- name: switch_definition
-- why:  A disabled workflow launches nothing; what runs goes on.
UPDATE workflow_definitions SET is_active = %(active)s, updated_at = now(), updated_by = %(by)s WHERE id = %(id)s;

-- name: delete_definition
-- why:  Its versions stay, because its runs name them; its schedules fire no more.
WITH gone AS (
  UPDATE workflow_definitions SET deleted_at = now(), is_active = false, updated_at = now(), updated_by = %(by)s
   WHERE tenant_id = %(tenant)s AND slug = %(slug)s AND deleted_at IS NULL RETURNING id, tenant_id, slug),
silenced AS (
  UPDATE workflow_schedules AS s SET is_active = false, next_run_at = NULL, updated_at = now(), updated_by = %(by)s
    FROM gone AS g WHERE s.tenant_id = g.tenant_id AND s.workflow_slug = g.slug)
SELECT id FROM gone;

-- name: definitions
-- why:  The newest version of one workflow or of all, by name.
SELECT d.id, d.tenant_id, d.version, v.definition::text, d.created_at, d.created_by, d.updated_at, d.updated_by, d.is_active
  FROM workflow_definitions AS d JOIN workflow_definition_versions AS v ON v.definition_id = d.id AND v.version = d.version
 WHERE d.tenant_id = %(tenant)s AND d.deleted_at IS NULL AND (%(slug)s::text IS NULL OR d.slug = %(slug)s)
   AND (%(active)s::boolean IS NULL OR d.is_active = %(active)s)
 ORDER BY d.slug;

-- name: definition_versions
-- why:  What a workflow was before, newest first.
SELECT d.id, d.tenant_id, v.version, v.definition::text, d.created_at, d.created_by, v.created_at, v.created_by, d.is_active
  FROM workflow_definitions AS d JOIN workflow_definition_versions AS v ON v.definition_id = d.id
 WHERE d.tenant_id = %(tenant)s AND d.slug = %(slug)s AND d.deleted_at IS NULL AND (%(version)s::integer IS NULL OR v.version = %(version)s)
   AND (%(at)s::timestamptz IS NULL OR v.created_at <= %(at)s)
 ORDER BY v.version DESC;

-- name: run
-- why:  One run with what its steps wait for.
SELECT r.id, r.tenant_id, r.definition_id, r.definition_version, r.workflow_slug, r.status, r.run_key, r.parameters::text, r.shared::text, r.output::text,
       r.failure_reason, r.error_message, r.current_step_id, r.triggered_by, r.trigger::text, r.trigger_id, r.partition_key, r.correlation_id, r.causation_id,
       r.replay_of, r.created_at, r.started_at, r.completed_at, r.updated_at, s.pending, s.next_attempt_at, s.overdue, s.live_step
  FROM workflow_runs AS r
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE s.retry_state = 'scheduled') AS pending, min(s.next_attempt_at) FILTER (WHERE s.retry_state = 'scheduled') AS next_attempt_at,
              count(*) FILTER (WHERE s.retry_state = 'scheduled' AND s.next_attempt_at < now()) AS overdue,
              min(s.step_id) FILTER (WHERE s.status IN ('pending', 'running')) AS live_step
         FROM workflow_run_steps AS s WHERE s.run_id = r.id AND r.status IN ('pending', 'running')) AS s
 WHERE r.tenant_id = %(tenant)s AND r.id = %(id)s;

-- name: runs
-- why:  Runs newest first, from where the last page ended; one walk through one index.
SELECT r.id, r.tenant_id, r.definition_id, r.definition_version, r.workflow_slug, r.status, r.run_key, r.parameters::text, r.shared::text, r.output::text,
       r.failure_reason, r.error_message, r.current_step_id, r.triggered_by, r.trigger::text, r.trigger_id, r.partition_key, r.correlation_id, r.causation_id,
       r.replay_of, r.created_at, r.started_at, r.completed_at, r.updated_at, 0::bigint, NULL::timestamptz, 0::bigint, NULL::text
  FROM workflow_runs AS r
 WHERE r.tenant_id = %(tenant)s AND (%(slug)s::text IS NULL OR r.workflow_slug = %(slug)s)
   AND (%(statuses)s::text[] IS NULL OR r.status = ANY (%(statuses)s::text[]))
   AND (%(since)s::timestamptz IS NULL OR r.created_at >= %(since)s) AND (%(until)s::timestamptz IS NULL OR r.created_at <= %(until)s)
   AND (%(before_at)s::timestamptz IS NULL OR (r.created_at, r.id) < (%(before_at)s, %(before_id)s::text))
 ORDER BY r.created_at DESC, r.id DESC LIMIT %(limit)s;

-- name: correlated
-- why:  The runs of one trace, oldest first.
SELECT r.id, r.tenant_id, r.definition_id, r.definition_version, r.workflow_slug, r.status, r.run_key, r.parameters::text, r.shared::text, r.output::text,
       r.failure_reason, r.error_message, r.current_step_id, r.triggered_by, r.trigger::text, r.trigger_id, r.partition_key, r.correlation_id, r.causation_id,
       r.replay_of, r.created_at, r.started_at, r.completed_at, r.updated_at, 0::bigint, NULL::timestamptz, 0::bigint, NULL::text
  FROM workflow_runs AS r
 WHERE r.tenant_id = %(tenant)s AND r.correlation_id = %(correlation)s ORDER BY r.created_at, r.id LIMIT %(limit)s;

-- name: steps
-- why:  Steps as they are now: one that a worker holds is running, whatever its row says.
SELECT s.run_id, s.address, s.step_id, s.fanout_index, CASE WHEN j.state = 'a' AND s.status = 'pending' THEN 'running' ELSE s.status END,
       s.attempt, s.input::text, s.output::text, s.failure_reason, s.error_message, s.resolution_error,
       CASE WHEN j.state = 'a' THEN s.run_id || '.' || s.address || '.' || j.number ELSE s.job_run_id END,
       CASE WHEN j.state = 'a' THEN NULL ELSE s.next_attempt_at END,
       CASE WHEN j.state = 'a' AND s.retry_state = 'scheduled' THEN 'pending' ELSE s.retry_state END,
       s.retry_attempts, s.retry_metadata::text, s.created_at, coalesce(j.started_at, s.started_at), s.completed_at, s.updated_at,
       w.heartbeat_at, w.name, x.logs
  FROM workflow_run_steps AS s
  LEFT JOIN jobs AS j ON j.run_id = s.run_id AND j.address = s.address
  LEFT JOIN workflow_workers AS w ON w.id = j.worker
  LEFT JOIN LATERAL (SELECT x.logs FROM job_runs AS x WHERE x.run_id = s.run_id AND x.address = s.address ORDER BY x.number DESC LIMIT 1) AS x ON true
 WHERE s.tenant_id = %(tenant)s AND s.run_id = %(id)s ORDER BY s.place;

-- name: job_runs
-- why:  Every execution of a run's steps: what is over, and what runs now.
SELECT x.run_id, x.address, x.number, x.job_slug, x.kind, x.attempt, x.status, x.failure_reason, x.error_message, x.logs, x.worker, x.queued_at, x.started_at, x.completed_at
  FROM job_runs AS x WHERE x.tenant_id = %(tenant)s AND x.run_id = %(id)s
UNION ALL
SELECT j.run_id, j.address, j.number, '', '', j.attempt, 'running', NULL, NULL, NULL, w.name, j.queued_at, j.started_at, NULL
  FROM jobs AS j LEFT JOIN workflow_workers AS w ON w.id = j.worker
 WHERE j.tenant_id = %(tenant)s AND j.run_id = %(id)s AND j.started_at IS NOT NULL
 ORDER BY 13, 2, 3;

-- name: definition_of_run
-- why:  What a run goes by, whatever became of its workflow since.
SELECT v.definition::text FROM workflow_runs AS r
  JOIN workflow_definition_versions AS v ON v.definition_id = r.definition_id AND v.version = r.definition_version
 WHERE r.tenant_id = %(tenant)s AND r.id = %(id)s;

-- name: history
-- why:  What happened to a run, in order.
SELECT id, address, event_type, payload::text, created_at FROM workflow_execution_history
 WHERE tenant_id = %(tenant)s AND run_id = %(id)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: stats
-- why:  How a workflow has done in a stretch of time.
SELECT r.status, count(*), avg(extract(epoch FROM r.completed_at - r.started_at) * 1000)::float8,
       percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY extract(epoch FROM r.completed_at - r.started_at) * 1000)
  FROM workflow_runs AS r
 WHERE r.tenant_id = %(tenant)s AND (%(slug)s::text IS NULL OR r.workflow_slug = %(slug)s) AND r.created_at >= %(since)s AND r.created_at <= %(until)s
 GROUP BY r.status;

-- name: failure_reasons
-- why:  What makes it fail.
SELECT coalesce(s.failure_reason, 'unknown'), count(*)
  FROM workflow_runs AS r JOIN workflow_run_steps AS s ON s.run_id = r.id AND s.status = 'failed'
 WHERE r.tenant_id = %(tenant)s AND (%(slug)s::text IS NULL OR r.workflow_slug = %(slug)s) AND r.status = 'failed' AND r.created_at >= %(since)s AND r.created_at <= %(until)s
 GROUP BY 1 ORDER BY 2 DESC, 1;

-- name: run_metrics
-- why:  The same per stretch of equal length, for a chart.
SELECT date_bin(%(bucket_s)s * interval '1 second', r.created_at, %(since)s::timestamptz) AS at, count(*),
       count(*) FILTER (WHERE r.status = 'succeeded'), count(*) FILTER (WHERE r.status = 'failed'), count(*) FILTER (WHERE r.status = 'canceled'),
       avg(extract(epoch FROM r.completed_at - r.started_at) * 1000)::float8
  FROM workflow_runs AS r
 WHERE r.tenant_id = %(tenant)s AND (%(slug)s::text IS NULL OR r.workflow_slug = %(slug)s) AND r.created_at >= %(since)s AND r.created_at <= %(until)s
 GROUP BY 1 ORDER BY 1;

-- name: typical_ms
-- why:  A back-test assumes that a run takes as long as runs usually do.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM t.completed_at - t.started_at) * 1000)
  FROM (SELECT r.started_at, r.completed_at FROM workflow_runs AS r
         WHERE r.tenant_id = %(tenant)s AND r.workflow_slug = %(slug)s AND r.status = 'succeeded' ORDER BY r.created_at DESC LIMIT 1000) AS t;

-- name: trigger_entries
-- why:  What triggers made of events for this workflow, for its timeline.
SELECT d.id, d.trigger_id, d.event_id, d.status, d.reason, d.last_error, d.workflow_run_id, d.created_at, d.updated_at
  FROM workflow_trigger_deliveries AS d
 WHERE d.tenant_id = %(tenant)s AND d.workflow_slug = %(slug)s AND d.updated_at >= %(since)s AND d.updated_at <= %(until)s
 ORDER BY d.updated_at DESC LIMIT %(limit)s;

-- name: scheduler_entries
-- why:  Pauses and failures of its triggers, for its timeline.
SELECT 'trigger_failure', f.trigger_id, f.failure_time, f.reason, NULL::timestamptz
  FROM event_scheduler_trigger_failures AS f JOIN workflow_event_triggers AS t ON t.id = f.trigger_id
 WHERE t.tenant_id = %(tenant)s AND t.workflow_slug = %(slug)s AND f.failure_time >= %(since)s AND f.failure_time <= %(until)s
UNION ALL
SELECT 'trigger_paused', p.trigger_id, p.paused_at, p.reason, p.paused_until
  FROM event_scheduler_trigger_pauses AS p JOIN workflow_event_triggers AS t ON t.id = p.trigger_id
 WHERE t.tenant_id = %(tenant)s AND t.workflow_slug = %(slug)s AND p.paused_at >= %(since)s AND p.paused_at <= %(until)s
UNION ALL
SELECT 'source_paused', p.source, p.paused_at, p.reason, p.paused_until
  FROM event_scheduler_source_pauses AS p
 WHERE p.tenant_id = %(tenant)s AND p.paused_at >= %(since)s AND p.paused_at <= %(until)s
   AND EXISTS (SELECT FROM workflow_event_triggers AS t WHERE t.tenant_id = p.tenant_id AND t.workflow_slug = %(slug)s AND coalesce(t.event_source, p.source) = p.source)
 ORDER BY 3 DESC LIMIT %(limit)s;

-- name: retry_summary
-- why:  How many steps wait for another try, how many of them are late, and when the first is due.
SELECT count(*), count(*) FILTER (WHERE next_attempt_at < now() - interval '1 second'), min(next_attempt_at)
  FROM workflow_run_steps WHERE retry_state = 'scheduled' AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s);

-- name: retry_entries
-- why:  The first of them.
SELECT s.run_id, s.address, s.step_id, r.definition_id, r.workflow_slug, s.status, s.attempt, s.retry_attempts, s.next_attempt_at, s.next_attempt_at < now(),
       s.retry_state, s.retry_metadata::text, s.failure_reason, s.error_message, s.updated_at
  FROM workflow_run_steps AS s JOIN workflow_runs AS r ON r.id = s.run_id
 WHERE s.retry_state = 'scheduled' AND (%(tenant)s::text IS NULL OR s.tenant_id = %(tenant)s) ORDER BY s.next_attempt_at LIMIT %(limit)s;

-- name: failure_streak
-- why:  Alerts: how many runs of each workflow failed lately.
SELECT r.tenant_id, r.workflow_slug, count(*) FROM workflow_runs AS r
 WHERE r.status = 'failed' AND r.completed_at > now() - %(window_s)s * interval '1 second' AND r.created_at > now() - interval '1 day' - %(window_s)s * interval '1 second'
 GROUP BY 1, 2 HAVING count(*) >= %(threshold)s ORDER BY 3 DESC;

-- name: schedule_columns
-- why:  One schedule, or all of a tenant or a workflow.
SELECT s.id, s.tenant_id, s.workflow_slug, s.name, s.description, s.cron, s.timezone, s.parameters::text, s.start_window, s.end_window, s.catch_up, s.is_active,
       s.catchup_cursor, s.next_run_at, s.last_materialized_window::text, s.last_error, s.version, s.created_at, s.created_by, s.updated_at, s.updated_by
  FROM workflow_schedules AS s
 WHERE s.tenant_id = %(tenant)s AND (%(id)s::text IS NULL OR s.id = %(id)s) AND (%(slug)s::text IS NULL OR s.workflow_slug = %(slug)s)
 ORDER BY s.workflow_slug, s.created_at, s.id;

-- name: lock_schedule
-- why:  A change waits until the scheduler is done with it.
SELECT s.version, s.catchup_cursor, s.created_at, s.workflow_slug FROM workflow_schedules AS s WHERE s.tenant_id = %(tenant)s AND s.id = %(id)s FOR UPDATE;

-- name: create_schedule
-- why:  It fires from now on.
INSERT INTO workflow_schedules
  (id, tenant_id, workflow_slug, name, description, cron, timezone, parameters, start_window, end_window, catch_up, is_active, created_at, created_by, updated_by)
SELECT %(id)s, %(tenant)s, d.slug, %(name)s, %(description)s, %(cron)s, %(timezone)s, %(parameters)s::json, %(start)s, %(end)s, %(catch_up)s, %(active)s, now(), %(by)s, %(by)s
  FROM workflow_definitions AS d WHERE d.tenant_id = %(tenant)s AND d.slug = %(slug)s AND d.deleted_at IS NULL
RETURNING created_at;

-- name: change_schedule
-- why:  What is settled stays settled.
UPDATE workflow_schedules
   SET name = %(name)s, description = %(description)s, cron = %(cron)s, timezone = %(timezone)s, parameters = %(parameters)s::json, start_window = %(start)s,
       end_window = %(end)s, catch_up = %(catch_up)s, is_active = %(active)s, version = version + 1, last_error = NULL, updated_at = now(), updated_by = %(by)s
 WHERE tenant_id = %(tenant)s AND id = %(id)s;

-- name: plan_schedule
-- why:  The scheduler looks at this instant only.
UPDATE workflow_schedules SET next_run_at = %(next)s WHERE id = %(id)s;

-- name: delete_schedule
-- why:  Its runs name it in their trigger; the row is not needed for that.
DELETE FROM workflow_schedules WHERE tenant_id = %(tenant)s AND id = %(id)s RETURNING id;

-- name: due_schedules
-- why:  Whoever has it locked fires it; the other scheduler passes on.
SELECT s.id, s.tenant_id, s.workflow_slug, s.name, s.description, s.cron, s.timezone, s.parameters::text, s.start_window, s.end_window, s.catch_up, s.is_active,
       s.catchup_cursor, s.next_run_at, s.last_materialized_window::text, s.last_error, s.version, s.created_at, s.created_by, s.updated_at, s.updated_by, now()
  FROM workflow_schedules AS s
 WHERE s.is_active AND s.next_run_at <= now() ORDER BY s.next_run_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED;

-- name: fired
-- why:  The slots that were fired are settled with the runs that they made.
UPDATE workflow_schedules
   SET catchup_cursor = %(cursor)s, next_run_at = %(next)s, last_materialized_window = coalesce(%(window)s::jsonb, last_materialized_window), last_error = %(error)s,
       updated_at = now()
 WHERE id = %(id)s;

-- name: next_schedule
-- why:  How long the scheduler may sleep, by the database's clock.
SELECT extract(epoch FROM min(next_run_at) - clock_timestamp())::float8 FROM workflow_schedules WHERE is_active AND next_run_at IS NOT NULL;

-- name: put_service
-- why:  Registering a service again changes it.
INSERT INTO services AS s (tenant_id, slug, display_name, kind, base_url, status, health_path, headers, metadata, created_by, updated_by)
VALUES (%(tenant)s, %(slug)s, %(display_name)s, %(kind)s, %(base_url)s, %(status)s, %(health_path)s, %(headers)s::jsonb, %(metadata)s::jsonb, %(by)s, %(by)s)
ON CONFLICT (tenant_id, slug) DO UPDATE
  SET display_name = excluded.display_name, kind = excluded.kind, base_url = excluded.base_url, status = excluded.status, health_path = excluded.health_path,
      headers = excluded.headers, metadata = excluded.metadata, updated_at = now(), updated_by = excluded.updated_by;

-- name: services
-- why:  One service or all of a tenant.
SELECT tenant_id, slug, base_url, display_name, kind, status, health_path, headers::text, metadata::text, updated_at
  FROM services WHERE tenant_id = %(tenant)s AND (%(slug)s::text IS NULL OR slug = %(slug)s) ORDER BY slug;

-- name: mark_service
-- why:  How it answered last.
UPDATE services SET status = %(status)s, updated_at = now() WHERE tenant_id = %(tenant)s AND slug = %(slug)s;

-- name: delete_service
-- why:  Steps that call it fail from now on, and say so.
DELETE FROM services WHERE tenant_id = %(tenant)s AND slug = %(slug)s RETURNING slug;
