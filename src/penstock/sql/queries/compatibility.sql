-- name: enter
-- why:  The tenant and the time that is left hold for this transaction only.
SELECT set_config('penstock.tenant', %(tenant)s, true),
       set_config('statement_timeout', %(timeout_ms)s, true),
       set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('jit', 'off', true);

-- name: page
-- why:  Received times never go back along positions, so the first event before the window ends it;
--       pairs are compared because only the index on type and position has their order.
SELECT e.position, e.id, e.source, e.schema_version, e.payload::text, e.received_at >= %(since)s
  FROM workflow_events AS e
 WHERE e.tenant_id = %(tenant)s AND e.type >= %(type)s
   AND (e.type, e.position) < (%(type)s, %(before)s::bigint)
 ORDER BY e.type DESC, e.position DESC LIMIT %(limit)s;
