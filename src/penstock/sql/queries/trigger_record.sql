-- Reading passes as they were recorded. {columns} are those of triggers/book/rows.py, JSON as text.

-- name: pass_of
-- why:  Which pass took up a position; passes that only carried acts end where the one before them ended.
SELECT p.pass, p.judged_at FROM trigger_passes AS p
 WHERE p.to_position >= %(position)s AND p.after_position < %(position)s
 ORDER BY p.to_position, p.pass LIMIT 1;

-- name: pass_at
-- why:  The instant of a pass.
SELECT p.pass, p.judged_at FROM trigger_passes AS p WHERE p.pass = %(pass)s;

-- name: delivery_at
-- why:  A trigger has one delivery of an event, or none.
SELECT {columns} FROM workflow_trigger_deliveries WHERE trigger_id = %(trigger)s AND event_position = %(position)s;

-- name: passes
-- why:  A stretch of passes, oldest first.
SELECT p.pass, p.judged_at, p.after_position, p.to_position, p.due_limit, p.released
  FROM trigger_passes AS p
 WHERE p.pass > %(after)s AND p.pass <= %(to)s ORDER BY p.pass LIMIT %(limit)s;

-- name: last_pass
-- why:  The last pass by an instant, or the last of all.
SELECT coalesce(max(p.pass), 0) FROM trigger_passes AS p
 WHERE p.judged_at <= coalesce(%(until)s::timestamptz, 'infinity');

-- name: acts
-- why:  What operators did in a stretch of passes, in the order in which it was heard.
SELECT a.pass, a.act::text FROM trigger_acts AS a WHERE a.pass BETWEEN %(first)s AND %(last)s ORDER BY a.id;

-- name: run_ends
-- why:  Ends of runs in the order in which passes heard them.
SELECT e.pass, e.run_id, e.trigger_id, e.status, e.ended_at
  FROM trigger_run_ends AS e
 WHERE e.pass BETWEEN %(first)s AND %(last)s AND (%(trigger)s::text IS NULL OR e.trigger_id = %(trigger)s)
 ORDER BY e.id;

-- name: outcomes
-- why:  Launches that did not become runs of their own.
SELECT o.pass, o.delivery_id, o.attached, o.refused FROM trigger_launch_outcomes AS o WHERE o.pass BETWEEN %(first)s AND %(last)s;

-- name: versions
-- why:  Definitions with the pass that first saw each.
SELECT v.trigger_id, v.tenant_id, v.workflow_slug, v.version, v.spec::text, t.created_at, t.created_by, v.created_at, v.created_by, v.status, v.first_pass
  FROM workflow_event_trigger_versions AS v
  JOIN workflow_event_triggers AS t ON t.id = v.trigger_id
 WHERE v.first_pass IS NOT NULL AND (%(trigger)s::text IS NULL OR v.trigger_id = %(trigger)s)
 ORDER BY v.first_pass, v.trigger_id, v.version;

-- name: settings
-- why:  Limits with the pass that first had them.
SELECT s.first_pass, s.settings::text FROM trigger_settings AS s ORDER BY s.first_pass;

-- name: held_in
-- why:  Events that a stretch of passes did not let through when they came.
SELECT r.position FROM event_ingress_retries AS r
 WHERE r.held_pass BETWEEN %(first)s AND %(last)s AND r.tenant_id = %(tenant)s;

-- name: between
-- why:  The events of one tenant that a stretch of passes took up; of some types, when only those can matter.
SELECT e.* FROM workflow_events AS e
 WHERE e.position > %(after)s::bigint AND e.position <= %(to)s::bigint AND e.tenant_id = %(tenant)s
   AND (%(types)s::text[] IS NULL OR e.type = ANY (%(types)s::text[]))
 ORDER BY e.position;

-- name: settled
-- why:  Deliveries of a trigger that no pass after the last one asked for has touched.
SELECT {columns} FROM workflow_trigger_deliveries
 WHERE trigger_id = %(trigger)s AND last_pass <= %(last)s ORDER BY event_position;

-- name: history_up_to
-- why:  What passes made of the deliveries of a trigger, up to the last one asked for.
SELECT {columns} FROM workflow_trigger_delivery_history AS h
 WHERE h.pass <= %(last)s
   AND h.delivery_id IN (SELECT d.id FROM workflow_trigger_deliveries AS d WHERE d.trigger_id = %(trigger)s)
 ORDER BY h.pass, h.delivery_id;

-- name: version
-- why:  The words that judged a delivery.
SELECT v.trigger_id, v.tenant_id, v.workflow_slug, v.version, v.spec::text, t.created_at, t.created_by, v.created_at, v.created_by, v.status
  FROM workflow_event_trigger_versions AS v
  JOIN workflow_event_triggers AS t ON t.id = v.trigger_id
 WHERE v.tenant_id = %(tenant)s AND v.trigger_id = %(trigger)s AND v.version = %(version)s;

-- name: cursor
-- why:  Whether passes have gone beyond a position.
SELECT position FROM trigger_cursor;

-- name: newest
-- why:  What a trigger says now, seen by a pass or not, deleted or not.
SELECT v.trigger_id, v.tenant_id, v.workflow_slug, v.version, v.spec::text, t.created_at, t.created_by, v.created_at, v.created_by, v.status
  FROM workflow_event_trigger_versions AS v
  JOIN workflow_event_triggers AS t ON t.id = v.trigger_id
 WHERE v.tenant_id = %(tenant)s AND v.trigger_id = %(trigger)s ORDER BY v.version DESC LIMIT 1;
