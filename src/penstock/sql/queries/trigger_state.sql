-- What passes keep for the next one, and what a decision asks of the past.
-- {columns} are those of triggers/book/rows.py, JSON as text.

-- name: waiting
-- why:  Deliveries that are to be judged again; a host that starts reads them all.
SELECT {columns} FROM workflow_trigger_deliveries WHERE status IN ('pending', 'throttled', 'failed') ORDER BY event_position, trigger_id;

-- name: held
-- why:  Events that no trigger has seen yet, in order.
SELECT {columns} FROM event_ingress_retries WHERE released_pass IS NULL AND retry_state IN ('scheduled', 'pending') ORDER BY position;

-- name: pauses
-- why:  Triggers that must wait.
SELECT trigger_id, paused_at, paused_until, reason, failures, by FROM event_scheduler_trigger_pauses ORDER BY trigger_id;

-- name: source_pauses
-- why:  Sources whose events must wait.
SELECT tenant_id, source, paused_at, paused_until, reason, details::text, by FROM event_scheduler_source_pauses ORDER BY tenant_id, source;

-- name: windows
-- why:  How many events of limited sources were let through, and when.
SELECT tenant_id, source, at, counts FROM event_scheduler_source_windows ORDER BY tenant_id, source;

-- name: failures
-- why:  Launches that failed lately.
SELECT trigger_id, failure_time, reason FROM event_scheduler_trigger_failures ORDER BY id;

-- name: active
-- why:  Runs that triggers launched and that have not ended.
SELECT trigger_id, run_id, group_key FROM trigger_active_runs ORDER BY run_id;

-- name: at_positions
-- why:  The events that deliveries wait with, each by its primary key.
SELECT e.* FROM unnest(%(positions)s::bigint[]) AS p (position) CROSS JOIN LATERAL (
       SELECT e.* FROM workflow_events AS e WHERE e.position = p.position OFFSET 0) AS e;

-- name: holders
-- why:  Which deliveries hold the keys; the partial unique index has one at most for each.
SELECT d.trigger_id, d.dedupe_key, d.shadow, d.id, d.workflow_run_id
  FROM unnest(%(triggers)s::text[], %(keys)s::text[], %(shadows)s::boolean[]) AS k (trigger_id, key, shadow)
 CROSS JOIN LATERAL (
       SELECT d.* FROM workflow_trigger_deliveries AS d
        WHERE d.trigger_id = k.trigger_id AND d.dedupe_key = k.key AND d.shadow = k.shadow
          AND d.dedupe_key IS NOT NULL AND d.status IN ('pending', 'matched', 'throttled', 'launched')
        LIMIT 1) AS d;

-- name: chains
-- why:  How often triggers launched in a correlation, and whether the guard spoke up before.
SELECT k.trigger_id, k.correlation_id, k.shadow, d.launches, d.told
  FROM unnest(%(triggers)s::text[], %(correlations)s::text[], %(shadows)s::boolean[]) AS k (trigger_id, correlation_id, shadow)
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE d.shadow = k.shadow AND d.status = CASE WHEN k.shadow THEN 'matched' ELSE 'launched' END) AS launches,
              coalesce(bool_or(d.status = 'skipped' AND d.reason = 'loop'), false) AS told
         FROM workflow_trigger_deliveries AS d
        WHERE d.trigger_id = k.trigger_id AND d.correlation_id = k.correlation_id
          AND d.correlation_id IS NOT NULL AND (d.status IN ('launched', 'matched') OR d.reason = 'loop')) AS d;

-- name: depths
-- why:  How many causes stand behind an event, one behind the other; a circle ends where it closes.
WITH RECURSIVE chain (first, tenant_id, cause, seen, depth) AS (
  SELECT c.position, c.tenant_id COLLATE "C", c.cause COLLATE "C", ARRAY[c.id] COLLATE "C", 0
    FROM unnest(%(positions)s::bigint[], %(tenants)s::text[], %(ids)s::text[], %(causes)s::text[]) AS c (position, tenant_id, id, cause)
  UNION ALL
  SELECT chain.first, chain.tenant_id, e.causation_id, chain.seen || chain.cause, chain.depth + 1
    FROM chain CROSS JOIN LATERAL (
         SELECT e.causation_id FROM workflow_events AS e
          WHERE e.tenant_id = chain.tenant_id AND e.id = chain.cause OFFSET 0) AS e
   WHERE chain.cause IS NOT NULL AND chain.depth < %(most)s AND chain.cause <> ALL (chain.seen)
)
SELECT first, max(depth) FROM chain GROUP BY first;

-- name: times
-- why:  When a trigger launched since an instant, one delivery for every launch.
SELECT k.trigger_id, k.since, k.shadow, d.updated_at
  FROM unnest(%(triggers)s::text[], %(sinces)s::timestamptz[], %(shadows)s::boolean[]) AS k (trigger_id, since, shadow)
 CROSS JOIN LATERAL (
       SELECT d.updated_at FROM workflow_trigger_deliveries AS d
        WHERE d.trigger_id = k.trigger_id AND d.updated_at > k.since AND d.shadow = k.shadow
          AND d.role IN ('triggered', 'attached') AND d.status IN ('launched', 'matched')
          AND d.status = CASE WHEN k.shadow THEN 'matched' ELSE 'launched' END
        ORDER BY d.updated_at) AS d;

-- name: copy
-- why:  COPY is the fastest way in for rows that are surely new.
COPY {table} ({columns}) FROM STDIN;

-- name: insert
-- why:  A few rows are put in one after the other, all in one round trip.
INSERT INTO {table} ({columns}) VALUES ({values});

-- name: change_deliveries
-- why:  All changed ones at once. Those that let go of a key go first, so that another may take it in the same pass.
UPDATE workflow_trigger_deliveries AS d
   SET trigger_version = c.trigger_version, status = c.status, stage = c.stage, reason = c.reason, updated_at = c.updated_at,
       last_pass = c.last_pass, ticket = c.ticket, shadow = c.shadow, role = c.role, attempts = c.attempts,
       last_error = c.last_error, workflow_run_id = c.workflow_run_id, run_key = c.run_key, parameters = c.parameters::json,
       dedupe_key = c.dedupe_key, group_key = c.group_key, group_id = c.group_id, next_attempt_at = c.next_attempt_at,
       throttled_until = c.throttled_until, retry_state = c.retry_state, retry_attempts = c.retry_attempts,
       retry_metadata = c.retry_metadata::json
  FROM unnest(%(id)s::text[], %(trigger_version)s::int[], %(status)s::text[], %(stage)s::text[], %(reason)s::text[],
              %(updated_at)s::timestamptz[], %(last_pass)s::bigint[], %(ticket)s::bigint[], %(shadow)s::boolean[],
              %(role)s::text[], %(attempts)s::int[], %(last_error)s::text[], %(workflow_run_id)s::text[], %(run_key)s::text[],
              %(parameters)s::text[], %(dedupe_key)s::text[], %(group_key)s::text[], %(group_id)s::text[],
              %(next_attempt_at)s::timestamptz[], %(throttled_until)s::timestamptz[], %(retry_state)s::text[],
              %(retry_attempts)s::int[], %(retry_metadata)s::text[])
       AS c (id, trigger_version, status, stage, reason, updated_at, last_pass, ticket, shadow, role, attempts, last_error,
             workflow_run_id, run_key, parameters, dedupe_key, group_key, group_id, next_attempt_at, throttled_until,
             retry_state, retry_attempts, retry_metadata)
 WHERE d.id = c.id;

-- name: keep_held
-- why:  Held for the first time, tried again, released or cancelled: the newest word counts.
INSERT INTO event_ingress_retries AS r (position, event_id, tenant_id, source, held_pass, created_at, last_error, next_attempt_at,
                                        attempts, retry_state, released_pass, metadata, updated_at)
SELECT h.position, h.event_id, h.tenant_id, h.source, h.held_pass, h.created_at, h.last_error, h.next_attempt_at,
       h.attempts, h.retry_state, h.released_pass, h.metadata::json, %(judged_at)s
  FROM unnest(%(position)s::bigint[], %(event_id)s::text[], %(tenant_id)s::text[], %(source)s::text[], %(held_pass)s::bigint[],
              %(created_at)s::timestamptz[], %(last_error)s::text[], %(next_attempt_at)s::timestamptz[], %(attempts)s::int[],
              %(retry_state)s::text[], %(released_pass)s::bigint[], %(metadata)s::text[])
       AS h (position, event_id, tenant_id, source, held_pass, created_at, last_error, next_attempt_at, attempts, retry_state,
             released_pass, metadata)
ON CONFLICT (position) DO UPDATE
   SET last_error = excluded.last_error, next_attempt_at = excluded.next_attempt_at, attempts = excluded.attempts,
       retry_state = excluded.retry_state, released_pass = excluded.released_pass, metadata = excluded.metadata,
       updated_at = excluded.updated_at;

-- name: drop_pauses
-- why:  A pause that ended, or is said anew.
DELETE FROM event_scheduler_trigger_pauses WHERE trigger_id = ANY (%(triggers)s::text[]);

-- name: keep_pause
-- why:  A trigger that must wait from now on.
INSERT INTO event_scheduler_trigger_pauses (trigger_id, paused_at, paused_until, reason, failures, by)
VALUES (%(trigger_id)s, %(paused_at)s, %(until)s, %(reason)s, %(failures)s, %(by)s);

-- name: drop_source_pause
-- why:  A pause that ended, or is said anew.
DELETE FROM event_scheduler_source_pauses WHERE tenant_id = %(tenant_id)s AND source = %(source)s;

-- name: keep_source_pause
-- why:  A source whose events wait from now on.
INSERT INTO event_scheduler_source_pauses (tenant_id, source, paused_at, paused_until, reason, details, by)
VALUES (%(tenant_id)s, %(source)s, %(paused_at)s, %(until)s, %(reason)s, %(details)s::json, %(by)s);

-- name: keep_window
-- why:  What a source was let through with, as the next pass counts it.
INSERT INTO event_scheduler_source_windows (tenant_id, source, at, counts)
VALUES (%(tenant_id)s, %(source)s, %(at)s::timestamptz[], %(counts)s::int[])
ON CONFLICT (tenant_id, source) DO UPDATE SET at = excluded.at, counts = excluded.counts;

-- name: drop_window
-- why:  Nothing is left in it.
DELETE FROM event_scheduler_source_windows WHERE tenant_id = %(tenant_id)s AND source = %(source)s;

-- name: drop_failures
-- why:  The list of a trigger is said anew when it changes.
DELETE FROM event_scheduler_trigger_failures WHERE trigger_id = ANY (%(triggers)s::text[]);

-- name: keep_failures
-- why:  Failures that still count, in order.
INSERT INTO event_scheduler_trigger_failures (trigger_id, failure_time, reason)
SELECT f.trigger_id, f.at, f.reason
  FROM unnest(%(triggers)s::text[], %(ats)s::timestamptz[], %(reasons)s::text[]) WITH ORDINALITY AS f (trigger_id, at, reason, n)
 ORDER BY f.n;

-- name: drop_active
-- why:  Runs that ended are no longer active.
DELETE FROM trigger_active_runs WHERE run_id = ANY (%(run_ids)s::text[]);

-- name: keep_active
-- why:  Runs that were launched are active until their end is heard.
INSERT INTO trigger_active_runs (run_id, trigger_id, group_key)
SELECT a.run_id, a.trigger_id, a.group_key
  FROM unnest(%(run_ids)s::text[], %(triggers)s::text[], %(groups)s::text[]) AS a (run_id, trigger_id, group_key)
ON CONFLICT (run_id) DO NOTHING;

-- name: count_sources
-- why:  Counters grow in the transaction of what they count.
INSERT INTO event_scheduler_source_metrics AS m (tenant_id, source, total, throttled, dropped, failures, total_lag_ms, last_lag_ms, max_lag_ms, last_event_at)
SELECT * FROM unnest(%(tenants)s::text[], %(sources)s::text[], %(total)s::bigint[], %(throttled)s::bigint[], %(dropped)s::bigint[],
                     %(failures)s::bigint[], %(total_lag_ms)s::bigint[], %(last_lag_ms)s::bigint[], %(max_lag_ms)s::bigint[],
                     %(last_event_at)s::timestamptz[])
ON CONFLICT (tenant_id, source) DO UPDATE
   SET total = m.total + excluded.total, throttled = m.throttled + excluded.throttled, dropped = m.dropped + excluded.dropped,
       failures = m.failures + excluded.failures, total_lag_ms = m.total_lag_ms + excluded.total_lag_ms,
       last_lag_ms = CASE WHEN excluded.total > 0 THEN excluded.last_lag_ms ELSE m.last_lag_ms END,
       max_lag_ms = greatest(m.max_lag_ms, excluded.max_lag_ms), last_event_at = coalesce(excluded.last_event_at, m.last_event_at);

-- name: count_triggers
-- why:  Likewise for triggers, in one word because there are many; the last error stays until another takes its place.
INSERT INTO event_scheduler_trigger_metrics AS m (trigger_id, workflow_definition_id, count_filtered, count_matched, count_launched,
       count_throttled, count_skipped, count_failed, count_paused, count_dead, last_status, last_error, last_updated_at)
SELECT t.*, %(judged_at)s
  FROM json_to_recordset(%(tallies)s::json) AS t (trigger_id text, workflow_slug text, filtered bigint, matched bigint, launched bigint,
       throttled bigint, skipped bigint, failed bigint, paused bigint, dead bigint, last_status text, last_error text)
ON CONFLICT (trigger_id) DO UPDATE
   SET workflow_definition_id = excluded.workflow_definition_id, count_filtered = m.count_filtered + excluded.count_filtered,
       count_matched = m.count_matched + excluded.count_matched, count_launched = m.count_launched + excluded.count_launched,
       count_throttled = m.count_throttled + excluded.count_throttled, count_skipped = m.count_skipped + excluded.count_skipped,
       count_failed = m.count_failed + excluded.count_failed, count_paused = m.count_paused + excluded.count_paused,
       count_dead = m.count_dead + excluded.count_dead, last_status = coalesce(excluded.last_status, m.last_status),
       last_error = coalesce(excluded.last_error, m.last_error), last_updated_at = excluded.last_updated_at;
