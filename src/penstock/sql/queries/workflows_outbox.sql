-- The outbox: events that committed with a change, on their way into the log.

-- name: put
-- why:  In the transaction of what they tell of. An event says when it happened before it waits for the relay.
INSERT INTO event_outbox (tenant_id, event)
SELECT coalesce(e.event ->> 'tenantId', 'default'), jsonb_build_object('occurredAt', wire_instant(now())) || (e.event - 'tenantId')
  FROM jsonb_array_elements(%(events)s::jsonb) AS e (event);

-- name: try_lock
-- why:  One relay at a time, so that the events of one run stay in their order.
SELECT pg_try_advisory_xact_lock(%(key)s);

-- name: take
-- why:  The oldest first; what the log refused stays for people to see.
SELECT o.id, o.tenant_id, coalesce(o.event, run_event(r, o.run_status))::text
  FROM (SELECT * FROM event_outbox WHERE refused IS NULL ORDER BY id LIMIT %(limit)s) AS o
  LEFT JOIN workflow_runs AS r ON r.id = o.run_id ORDER BY o.id;

-- name: done
-- why:  They are in the log.
DELETE FROM event_outbox WHERE id = ANY (%(ids)s::bigint[]);

-- name: refuse
-- why:  An event that the log will never take must not hold up the others.
UPDATE event_outbox SET refused = %(detail)s WHERE id = %(id)s;

-- name: backlog
-- why:  Health: how many wait, since when, and how many were refused.
SELECT count(*) FILTER (WHERE refused IS NULL), extract(epoch FROM now() - min(created_at) FILTER (WHERE refused IS NULL)) * 1000,
       count(*) FILTER (WHERE refused IS NOT NULL)
  FROM event_outbox;

-- name: listen
-- why:  A hint that something may wait.
LISTEN penstock_jobs;
