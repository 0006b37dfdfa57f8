-- Conditional appends. The work is in the functions of migration 0005; these call them.

-- name: settle_in
-- why:  One plan for good, since each is one walk through known indexes; and nobody waits for ever.
SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('lock_timeout', '10s', false),
       set_config('idle_in_transaction_session_timeout', '30s', false), set_config('statement_timeout', '15s', false);

-- name: append_one
-- why:  A lone event on a lone criterion, which is nearly every append, is worth a plan of its own.
SELECT append_one($1, $2, $3, $4, $5, $6, $7, $8);

-- name: append_batch
-- why:  Whatever waited while the last commit ran, in one round trip and one commit.
SELECT * FROM append_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19);

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
