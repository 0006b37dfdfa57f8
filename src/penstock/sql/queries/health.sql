-- name: parts
-- why:  Ages are told by the database's clock, the one that also stamped the reports.
SELECT part, report, reported_at, greatest(0, extract(epoch FROM now() - reported_at))::float8 AS age_s
  FROM process_reports ORDER BY part;

-- name: dead_letters
-- why:  What waits in quarantine, by reason; redriven letters are settled.
SELECT reason, count(*) FROM dead_letters WHERE redriven_at IS NULL GROUP BY reason ORDER BY reason;

-- name: report
-- why:  One row per part: only the latest word counts, stamped by the database's clock.
INSERT INTO process_reports (part, report, reported_at) VALUES (%(part)s, %(report)s::jsonb, now())
ON CONFLICT (part) DO UPDATE SET report = excluded.report, reported_at = excluded.reported_at;

-- name: backlog
-- why:  How many deliveries wait at each trigger, of them for a pause, and of them as planned: for a batch, for quiet, for a run.
SELECT trigger_id, count(*), count(*) FILTER (WHERE reason = 'paused'),
       count(*) FILTER (WHERE reason IN ('collecting', 'debouncing', 'run_active'))
  FROM workflow_trigger_deliveries
 WHERE status IN ('pending', 'throttled', 'failed') AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
 GROUP BY trigger_id;

-- name: delivery_retries
-- why:  What waits although it should not have to: waiting as planned is no retry. It is due when its trigger is no longer paused, and late a second after.
SELECT count(*), count(*) FILTER (WHERE w.due_at < clock_timestamp() - interval '1 second'), min(w.due_at)
  FROM (SELECT CASE WHEN p.trigger_id IS NULL OR p.paused_until IS NOT NULL THEN greatest(d.next_attempt_at, p.paused_until) END AS due_at
          FROM workflow_trigger_deliveries AS d LEFT JOIN event_scheduler_trigger_pauses AS p ON p.trigger_id = d.trigger_id
         WHERE d.status IN ('pending', 'throttled', 'failed') AND coalesce(d.reason, '') NOT IN ('collecting', 'debouncing', 'run_active')
           AND (%(tenant)s::text IS NULL OR d.tenant_id = %(tenant)s)) AS w;

-- name: delivery_retry_entries
-- why:  The first of them, with the names that people know their triggers and workflows by.
SELECT d.id, d.trigger_id, w.id, d.workflow_slug, t.name, d.event_id, d.event_type, d.event_source, d.status, d.reason, d.attempts, d.retry_attempts,
       due.at, coalesce(due.at < clock_timestamp() - interval '1 second', false), d.retry_state, d.last_error, d.workflow_run_id,
       d.dedupe_key, d.retry_metadata::text, d.created_at, d.updated_at
  FROM workflow_trigger_deliveries AS d
  LEFT JOIN workflow_event_triggers AS t ON t.id = d.trigger_id
  LEFT JOIN workflow_definitions AS w ON w.tenant_id = d.tenant_id AND w.slug = d.workflow_slug AND w.deleted_at IS NULL
  LEFT JOIN event_scheduler_trigger_pauses AS p ON p.trigger_id = d.trigger_id
 CROSS JOIN LATERAL (SELECT CASE WHEN p.trigger_id IS NULL OR p.paused_until IS NOT NULL THEN greatest(d.next_attempt_at, p.paused_until) END) AS due (at)
 WHERE d.status IN ('pending', 'throttled', 'failed') AND coalesce(d.reason, '') NOT IN ('collecting', 'debouncing', 'run_active')
   AND (%(tenant)s::text IS NULL OR d.tenant_id = %(tenant)s)
 ORDER BY due.at NULLS LAST, d.event_position LIMIT %(limit)s;

-- name: event_retries
-- why:  Events that no trigger has seen yet because their source must wait; due when it no longer must.
SELECT count(*), count(*) FILTER (WHERE w.due_at < clock_timestamp() - interval '1 second'), min(w.due_at)
  FROM (SELECT CASE WHEN p.source IS NULL OR p.paused_until IS NOT NULL THEN greatest(r.next_attempt_at, p.paused_until) END AS due_at
          FROM event_ingress_retries AS r LEFT JOIN event_scheduler_source_pauses AS p ON p.tenant_id = r.tenant_id AND p.source = r.source
         WHERE r.released_pass IS NULL AND r.retry_state IN ('scheduled', 'pending') AND (%(tenant)s::text IS NULL OR r.tenant_id = %(tenant)s)) AS w;

-- name: event_retry_entries
-- why:  The first of them, with their types, which only the log knows.
SELECT r.event_id, r.source, e.type, r.attempts, due.at, coalesce(due.at < clock_timestamp() - interval '1 second', false),
       r.retry_state, r.last_error, r.metadata::text, r.created_at, r.updated_at
  FROM event_ingress_retries AS r
  LEFT JOIN workflow_events AS e ON e.position = r.position
  LEFT JOIN event_scheduler_source_pauses AS p ON p.tenant_id = r.tenant_id AND p.source = r.source
 CROSS JOIN LATERAL (SELECT CASE WHEN p.source IS NULL OR p.paused_until IS NOT NULL THEN greatest(r.next_attempt_at, p.paused_until) END) AS due (at)
 WHERE r.released_pass IS NULL AND r.retry_state IN ('scheduled', 'pending') AND (%(tenant)s::text IS NULL OR r.tenant_id = %(tenant)s)
 ORDER BY due.at NULLS LAST, r.position LIMIT %(limit)s;

-- name: definitions
-- why:  Triggers name their workflow by its slug; dashboards link by its id.
SELECT tenant_id, slug, id FROM workflow_definitions WHERE deleted_at IS NULL AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s);

-- name: judging_wait
-- why:  How long the last event of each recent pass had waited to be judged.
SELECT avg(greatest(0, extract(epoch FROM p.judged_at - e.received_at)) * 1000)::float8
  FROM (SELECT judged_at, to_position FROM trigger_passes
         WHERE judged_at > now() - interval '5 minutes' AND to_position > after_position ORDER BY judged_at DESC LIMIT 200) AS p
  JOIN workflow_events AS e ON e.position = p.to_position;

-- name: schedules
-- why:  Schedules as a queue: due, to come, off, in trouble; and how late the late ones are.
SELECT count(*) FILTER (WHERE is_active AND next_run_at <= now()), count(*) FILTER (WHERE is_active AND next_run_at > now()),
       count(*) FILTER (WHERE NOT is_active), count(*) FILTER (WHERE is_active AND last_error IS NOT NULL),
       min(next_run_at) FILTER (WHERE is_active), avg(extract(epoch FROM now() - next_run_at) * 1000) FILTER (WHERE is_active AND next_run_at <= now())::float8
  FROM workflow_schedules WHERE %(tenant)s::text IS NULL OR tenant_id = %(tenant)s;

-- name: recent_schedules
-- why:  The schedules that fired last.
SELECT id, workflow_slug, name, catchup_cursor, next_run_at, last_error, updated_at
  FROM workflow_schedules
 WHERE catchup_cursor IS NOT NULL AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
 ORDER BY catchup_cursor DESC, id LIMIT %(limit)s;

-- name: outbox
-- why:  Events that committed with a change and are not in the log yet.
SELECT count(*) FILTER (WHERE refused IS NULL), coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE refused IS NULL)) * 1000, 0)::float8,
       count(*) FILTER (WHERE refused IS NOT NULL)
  FROM event_outbox;

-- name: delivery_counts
-- why:  Counted over all triggers, deleted ones too: a counter that goes down would look like a restart.
SELECT coalesce(sum(count_matched), 0)::bigint, coalesce(sum(count_launched), 0)::bigint, coalesce(sum(count_throttled), 0)::bigint,
       coalesce(sum(count_skipped), 0)::bigint, coalesce(sum(count_failed), 0)::bigint, coalesce(sum(count_paused), 0)::bigint,
       coalesce(sum(count_dead), 0)::bigint
  FROM event_scheduler_trigger_metrics;

-- name: settled_until
-- why:  Every transaction that began before this instant is over, so nothing that ended before it can still appear.
SELECT least(now() - interval '5 seconds', (SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()));

-- name: lock_edge
-- why:  Whoever adds to the totals has them for itself.
SELECT until FROM health_edges WHERE metric = %(metric)s FOR UPDATE;

-- name: move_edge
-- why:  The totals now say everything up to here.
UPDATE health_edges SET until = %(until)s WHERE metric = %(metric)s AND until < %(until)s;

-- name: add_runs
-- why:  Runs that ended between two edges, by how they ended and how long they took.
INSERT INTO health_totals AS h (metric, label, bucket, count, seconds)
SELECT 'workflow_runs', r.status, width_bucket(r.seconds, %(bounds)s::float8[]), count(*), sum(r.seconds)
  FROM (SELECT status, greatest(0, extract(epoch FROM completed_at - coalesce(started_at, created_at)))::float8 AS seconds
          FROM workflow_runs WHERE completed_at > %(after)s AND completed_at <= %(until)s AND status IN ('succeeded', 'failed', 'canceled')) AS r
 GROUP BY 2, 3
ON CONFLICT (metric, label, bucket) DO UPDATE SET count = h.count + excluded.count, seconds = h.seconds + excluded.seconds;

-- name: add_deliveries
-- why:  Launches between two edges, by how long their event had been in the log; each trigger's own index gives them.
INSERT INTO health_totals AS h (metric, label, bucket, count, seconds)
SELECT 'deliveries', '', width_bucket(l.seconds, %(bounds)s::float8[]), count(*), sum(l.seconds)
  FROM (SELECT greatest(0, extract(epoch FROM d.updated_at - coalesce(e.received_at, d.created_at)))::float8 AS seconds
          FROM workflow_event_triggers AS t
          JOIN workflow_trigger_deliveries AS d ON d.trigger_id = t.id AND d.role IN ('triggered', 'attached') AND d.status IN ('launched', 'matched')
               AND d.updated_at > %(after)s AND d.updated_at <= %(until)s
          LEFT JOIN workflow_events AS e ON e.position = d.event_position
         WHERE d.status = 'launched') AS l
 GROUP BY 3
ON CONFLICT (metric, label, bucket) DO UPDATE SET count = h.count + excluded.count, seconds = h.seconds + excluded.seconds;

-- name: run_totals
-- why:  Runs that ended since the beginning: the totals, and what they do not have yet.
SELECT f.label, f.bucket, sum(f.count)::bigint, sum(f.seconds)::float8
  FROM (SELECT label, bucket, count, seconds FROM health_totals WHERE metric = 'workflow_runs'
        UNION ALL
        SELECT r.status, width_bucket(r.seconds, %(bounds)s::float8[]), 1, r.seconds
          FROM (SELECT status, greatest(0, extract(epoch FROM completed_at - coalesce(started_at, created_at)))::float8 AS seconds
                  FROM workflow_runs
                 WHERE completed_at > (SELECT until FROM health_edges WHERE metric = 'workflow_runs') AND status IN ('succeeded', 'failed', 'canceled')) AS r) AS f
 GROUP BY 1, 2 ORDER BY 1, 2;

-- name: delivery_totals
-- why:  Launches since the beginning, likewise.
SELECT f.label, f.bucket, sum(f.count)::bigint, sum(f.seconds)::float8
  FROM (SELECT label, bucket, count, seconds FROM health_totals WHERE metric = 'deliveries'
        UNION ALL
        SELECT '', width_bucket(l.seconds, %(bounds)s::float8[]), 1, l.seconds
          FROM (SELECT greatest(0, extract(epoch FROM d.updated_at - coalesce(e.received_at, d.created_at)))::float8 AS seconds
                  FROM workflow_event_triggers AS t
                  JOIN workflow_trigger_deliveries AS d ON d.trigger_id = t.id AND d.role IN ('triggered', 'attached') AND d.status IN ('launched', 'matched')
                       AND d.updated_at > (SELECT until FROM health_edges WHERE metric = 'deliveries')
                  LEFT JOIN workflow_events AS e ON e.position = d.event_position
                 WHERE d.status = 'launched') AS l) AS f
 GROUP BY 1, 2 ORDER BY 1, 2;

-- name: active_runs
-- why:  Runs that have not ended, from the index of just those.
SELECT status, count(*) FROM workflow_runs WHERE status IN ('pending', 'running') GROUP BY status;

-- name: try_round
-- why:  One process decides about alerts at a time; the lock goes with its connection.
SELECT pg_try_advisory_lock(%(key)s), clock_timestamp();

-- name: end_round
-- why:  The next one may.
SELECT pg_advisory_unlock(%(key)s);

-- name: alerts_sent
-- why:  What was told already, and when by the database's clock.
SELECT key, sent_at FROM alerts_sent;

-- name: keep_alert
-- why:  Only the last time counts.
INSERT INTO alerts_sent (key, event, sent_at) VALUES (%(key)s, %(event)s, %(at)s)
ON CONFLICT (key) DO UPDATE SET sent_at = excluded.sent_at;

-- name: forget_alerts
-- why:  What is older than any window keeps nothing back.
DELETE FROM alerts_sent WHERE sent_at < now() - interval '2 days';
