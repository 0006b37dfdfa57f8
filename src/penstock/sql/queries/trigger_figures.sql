-- Figures about triggers for health and metrics. A tenant sees its own; NULL asks for all.

-- name: sources
-- why:  What passes have counted for each source since the beginning.
SELECT tenant_id, source, total, throttled, dropped, failures, total_lag_ms, last_lag_ms, max_lag_ms, last_event_at
  FROM event_scheduler_source_metrics
 WHERE %(tenant)s::text IS NULL OR tenant_id = %(tenant)s
 ORDER BY tenant_id, source;

-- name: triggers
-- why:  What passes have counted for each trigger; deleted triggers are left out.
SELECT t.tenant_id, t.id, t.name, t.workflow_slug, coalesce(m.count_filtered, 0), coalesce(m.count_matched, 0), coalesce(m.count_launched, 0),
       coalesce(m.count_throttled, 0), coalesce(m.count_skipped, 0), coalesce(m.count_failed, 0), coalesce(m.count_paused, 0),
       coalesce(m.count_dead, 0), m.last_status, m.last_updated_at, m.last_error
  FROM workflow_event_triggers AS t
  LEFT JOIN event_scheduler_trigger_metrics AS m ON m.trigger_id = t.id
 WHERE t.deleted_at IS NULL AND (%(tenant)s::text IS NULL OR t.tenant_id = %(tenant)s)
 ORDER BY t.created_at, t.id;

-- name: paused_triggers
-- why:  Triggers whose events wait; an automatic pause whose time is up stays as a half-open one.
SELECT p.trigger_id, p.paused_at, p.paused_until, p.reason, p.failures, p.by
  FROM event_scheduler_trigger_pauses AS p
  JOIN workflow_event_triggers AS t ON t.id = p.trigger_id
 WHERE %(tenant)s::text IS NULL OR t.tenant_id = %(tenant)s
 ORDER BY p.trigger_id;

-- name: paused_sources
-- why:  Sources whose events wait.
SELECT tenant_id, source, paused_at, paused_until, reason, details::text, by
  FROM event_scheduler_source_pauses
 WHERE %(tenant)s::text IS NULL OR tenant_id = %(tenant)s
 ORDER BY tenant_id, source;

-- name: progress
-- why:  How far passes are behind the log, and since when nothing was judged.
SELECT c.pass, c.position, h.position, c.judged_at, c.next_due_at, clock_timestamp() FROM trigger_cursor AS c CROSS JOIN head AS h;
