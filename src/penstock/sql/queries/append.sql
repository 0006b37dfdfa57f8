-- Conditional appends: quick statements for what nearly always holds, and the function of migration 0010 that looks
-- at everything.

-- name: settle_in
-- why:  One plan for good, since each is one walk through known indexes; and nobody waits for ever.
SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('lock_timeout', '10s', false),
       set_config('idle_in_transaction_session_timeout', '30s', false), set_config('statement_timeout', '15s', false);

-- name: kind
-- why:  The name that the type of an event has on the wire, which every database gives anew.
SELECT 'append_row'::regtype::oid;

-- name: append_lock
-- why:  Where others write a lot the head is locked first, so that the quick statement behind it sees all there is.
SELECT FROM head AS h WHERE h.one FOR UPDATE;

-- name: part_columns
-- why:  What an append says of an event; the log adds where it is and when it came.
tenant_id, id, type, source, occurred_at, payload, tags, correlation_id, causation_id, traceparent, ttl_ms, metadata,
schema_version, schema_hash, severity, severity_rule, content_hash, hash

-- name: part_values
-- why:  The same of an event e, an append_row.
e.tenant_id, e.id, e.type, e.source, e.occurred_at, e.payload, e.tags, e.correlation_id, e.causation_id, e.traceparent,
e.ttl_ms, e.metadata, e.schema_version, e.schema_hash, e.severity, e.severity_rule, e.content_hash, e.hash

-- name: append_quick
-- why:  All of it in one statement. The head is moved only from where this statement sees it, so nobody has written
--       since, and what it sees is all there is. Else, or when a tag ($5) is there after its place ($6), or a place lies
--       beyond the head ($1 is the furthest), nothing happens and no row comes back; an id that is taken is an error of
--       its index. append_batch then says what is the matter.
WITH moved AS (
  UPDATE head AS h
     SET position = h.position + $2::bigint, received_at = greatest(h.received_at, clock_timestamp()),
         appended = h.appended + $2::bigint
   WHERE h.one AND h.position = (SELECT s.position FROM head AS s WHERE s.one) AND h.position >= $1::bigint
     AND NOT EXISTS (
         SELECT FROM unnest($4::text[], $5::text[], $6::bigint[]) AS c (tenant, tag, after)
          CROSS JOIN LATERAL (
                SELECT FROM event_tags AS t
                 WHERE t.tenant_id = c.tenant AND t.tag = c.tag AND t.position > c.after LIMIT 1) AS t)
  RETURNING h.position, h.position - $2::bigint AS base, h.received_at),
stored AS (
  INSERT INTO workflow_events (position, received_at, {columns})
  SELECT m.base + e.ordinality, m.received_at, {values}
    FROM moved AS m CROSS JOIN unnest($3::append_row[]) WITH ORDINALITY AS e),
tagged AS (
  INSERT INTO event_tags (tenant_id, tag, position)
  SELECT e.tenant_id, t.word, m.base + e.ordinality
    FROM moved AS m CROSS JOIN unnest($3::append_row[]) WITH ORDINALITY AS e CROSS JOIN unnest(e.words) AS t (word))
SELECT m.position, pg_notify('penstock_events', m.position::text) FROM moved AS m;

-- name: append_one
-- why:  The same for one event ($4) on one tag ($2, or an empty one that nothing carries) after its place ($3): nothing to
--       take apart, and a tenth less to wait for.
WITH moved AS (
  UPDATE head AS h
     SET position = h.position + 1, received_at = greatest(h.received_at, clock_timestamp()), appended = h.appended + 1
   WHERE h.one AND h.position = (SELECT s.position FROM head AS s WHERE s.one) AND h.position >= $3::bigint
     AND NOT EXISTS (
         SELECT FROM event_tags AS t WHERE t.tenant_id = $1::text AND t.tag = $2::text AND t.position > $3::bigint)
  RETURNING h.position, h.received_at),
stored AS (
  INSERT INTO workflow_events (position, received_at, {columns})
  SELECT m.position, m.received_at, {values} FROM moved AS m CROSS JOIN (SELECT ($4::append_row).*) AS e),
tagged AS (
  INSERT INTO event_tags (tenant_id, tag, position)
  SELECT $1::text, unnest(($4::append_row).words), m.position FROM moved AS m)
SELECT m.position FROM moved AS m WHERE pg_notify('penstock_events', m.position::text) IS NOT NULL;

-- name: append_next
-- why:  The same again, sent by whoever knows where the log ends ($5), since nobody else has written for a while; if it
--       does not end there any more, nothing happens. Nothing to look up and no row to send back: a twentieth less.
WITH moved AS (
  UPDATE head AS h
     SET position = $5::bigint + 1, received_at = greatest(h.received_at, clock_timestamp()), appended = h.appended + 1
   WHERE h.one AND h.position = $5::bigint AND $5::bigint >= $3::bigint
     AND NOT EXISTS (
         SELECT FROM event_tags AS t WHERE t.tenant_id = $1::text AND t.tag = $2::text AND t.position > $3::bigint)
  RETURNING h.received_at),
tagged AS (
  INSERT INTO event_tags (tenant_id, tag, position)
  SELECT $1::text, unnest(($4::append_row).words), $5::bigint + 1 FROM moved AS m)
INSERT INTO workflow_events (position, received_at, {columns})
SELECT $5::bigint + 1, m.received_at, {values} FROM moved AS m CROSS JOIN (SELECT ($4::append_row).*) AS e
 WHERE pg_notify('penstock_events', ($5::bigint + 1)::text) IS NOT NULL;

-- name: append_batch
-- why:  Whatever waited while the last commit ran, in one round trip and one commit, with the reasons for what was refused.
SELECT * FROM append_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18);

-- name: append_count
-- why:  Now and then, what was appended is added up by source. Should it be lost it is done again, so no disk is waited for.
SELECT count_appended($1::bigint) FROM set_config('synchronous_commit', 'off', true);

-- name: look
-- why:  Where the log ends, in the snapshot of the events; and their plan is one for good.
SELECT position FROM head WHERE set_config('plan_cache_mode', 'force_generic_plan', true) IS NOT NULL;

-- name: matching
-- why:  The events a decision depends on, oldest first, found the way its condition will be checked.
SELECT e.*
  FROM (SELECT DISTINCT p.place
          FROM unnest(%(tags)s::text[], %(types)s::text[]) AS c (tags, types)
         CROSS JOIN LATERAL positions_matching(
               %(tenant)s, c.tags::text[], c.types::text[], %(after)s::bigint, %(limit)s::bigint) AS p
         ORDER BY p.place LIMIT %(limit)s) AS m
 CROSS JOIN LATERAL (
       SELECT e.* FROM workflow_events AS e
        WHERE e.position = m.place AND e.tenant_id = %(tenant)s OFFSET 0) AS e;
