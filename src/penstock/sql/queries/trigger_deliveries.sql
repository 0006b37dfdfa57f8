-- Reading deliveries. {columns} are those of triggers/book/rows.py, JSON as text.

-- name: deliveries
-- why:  Newest first by position, which the index of a trigger gives; the other filters narrow that walk.
SELECT {columns}
  FROM workflow_trigger_deliveries
 WHERE tenant_id = %(tenant)s AND trigger_id = %(trigger)s
   AND (%(status)s::text IS NULL OR status = %(status)s)
   AND (%(event_id)s::text IS NULL OR event_id = %(event_id)s)
   AND (%(dedupe_key)s::text IS NULL OR dedupe_key = %(dedupe_key)s)
   AND (%(before)s::bigint IS NULL OR event_position < %(before)s)
 ORDER BY event_position DESC LIMIT %(limit)s;

-- name: delivery
-- why:  An id is unique, and shows itself only to its own tenant.
SELECT {columns} FROM workflow_trigger_deliveries WHERE tenant_id = %(tenant)s AND id = %(id)s;

-- name: of_event
-- why:  Which triggers an event reached, in the order in which they were made.
SELECT {columns} FROM workflow_trigger_deliveries WHERE tenant_id = %(tenant)s AND event_id = %(event_id)s ORDER BY trigger_id;

-- name: history
-- why:  What each pass made of a delivery, oldest first.
SELECT {columns} FROM workflow_trigger_delivery_history WHERE delivery_id = %(id)s ORDER BY pass;

-- name: waiting
-- why:  The retry backlog, what is due first on top.
SELECT {columns}
  FROM workflow_trigger_deliveries
 WHERE status IN ('pending', 'throttled', 'failed') AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
 ORDER BY next_attempt_at NULLS LAST, event_position LIMIT %(limit)s;

-- name: waiting_summary
-- why:  How much waits, how much of it is late by the database's clock, and when the next is due.
SELECT count(*), count(*) FILTER (WHERE next_attempt_at < clock_timestamp()), min(next_attempt_at)
  FROM workflow_trigger_deliveries
 WHERE status IN ('pending', 'throttled', 'failed') AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s);

-- name: held
-- why:  Events whose source must wait, what is due first on top.
SELECT {columns}
  FROM event_ingress_retries
 WHERE released_pass IS NULL AND retry_state IN ('scheduled', 'pending') AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
 ORDER BY next_attempt_at NULLS LAST, position LIMIT %(limit)s;

-- name: held_summary
-- why:  The same figures for held events.
SELECT count(*), count(*) FILTER (WHERE next_attempt_at < clock_timestamp()), min(next_attempt_at)
  FROM event_ingress_retries
 WHERE released_pass IS NULL AND retry_state IN ('scheduled', 'pending') AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s);

-- name: held_event
-- why:  Whether and how long one event waited for its source.
SELECT {columns} FROM event_ingress_retries WHERE tenant_id = %(tenant)s AND event_id = %(event_id)s;
