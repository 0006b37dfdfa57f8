-- name: as_tenant
-- why:  Row security shows a reader this tenant only, for this transaction only.
SELECT set_config('penstock.tenant', %(tenant)s, true);

-- name: page
-- why:  Newest first; letters refused together share their time, so the id decides among them.
SELECT id, tenant_id, reason, detail, pointer, type, source, event_id, raw, via, first_seen_at, last_seen_at, count, redriven_at, redriven_id
  FROM dead_letters
 WHERE tenant_id = %(tenant)s
   AND (%(reason)s::text IS NULL OR reason = %(reason)s)
   AND (%(source)s::text IS NULL OR source = %(source)s)
   AND (%(type)s::text IS NULL OR type = %(type)s)
   AND (%(via)s::text IS NULL OR via = %(via)s)
   AND (%(ids)s::text[] IS NULL OR id = ANY (%(ids)s))
   AND (%(redriven)s::boolean IS NULL OR (redriven_at IS NOT NULL) = %(redriven)s)
   AND (%(before)s::timestamptz IS NULL OR (last_seen_at, id) < (%(before)s::timestamptz, %(before_id)s::text))
 ORDER BY last_seen_at DESC, id DESC
 LIMIT %(limit)s;

-- name: groups
-- why:  One line per cause, with a sample to look at.
SELECT reason, type, source, pointer,
       (array_agg(detail ORDER BY last_seen_at DESC))[1] AS detail,
       sum(count)::bigint AS messages, count(*) AS letters,
       min(first_seen_at) AS first_seen_at, max(last_seen_at) AS last_seen_at,
       (array_agg(id ORDER BY last_seen_at DESC))[1] AS sample_id
  FROM dead_letters
 WHERE tenant_id = %(tenant)s
   AND (%(reason)s::text IS NULL OR reason = %(reason)s)
   AND (%(source)s::text IS NULL OR source = %(source)s)
   AND (%(type)s::text IS NULL OR type = %(type)s)
   AND (%(via)s::text IS NULL OR via = %(via)s)
   AND (%(ids)s::text[] IS NULL OR id = ANY (%(ids)s))
   AND (%(redriven)s::boolean IS NULL OR (redriven_at IS NOT NULL) = %(redriven)s)
 GROUP BY reason, type, source, pointer
 ORDER BY messages DESC, reason, type, source
 LIMIT 500;

-- name: by_id
-- why:  One letter, verbatim.
SELECT id, tenant_id, reason, detail, pointer, type, source, event_id, raw, via, first_seen_at, last_seen_at, count, redriven_at, redriven_id
  FROM dead_letters WHERE tenant_id = %(tenant)s AND id = %(id)s;

-- name: walk
-- why:  A redrive goes through all that match in the order they first came; neither key changes under it.
SELECT id, tenant_id, reason, detail, pointer, type, source, event_id, raw, via, first_seen_at, last_seen_at, count, redriven_at, redriven_id
  FROM dead_letters
 WHERE tenant_id = %(tenant)s AND (first_seen_at, id) > (%(after)s::timestamptz, %(after_id)s::text)
   AND (%(reason)s::text IS NULL OR reason = %(reason)s)
   AND (%(source)s::text IS NULL OR source = %(source)s)
   AND (%(type)s::text IS NULL OR type = %(type)s)
   AND (%(via)s::text IS NULL OR via = %(via)s)
   AND (%(ids)s::text[] IS NULL OR id = ANY (%(ids)s))
   AND (%(redriven)s::boolean IS NULL OR (redriven_at IS NOT NULL) = %(redriven)s)
 ORDER BY first_seen_at, id
 LIMIT 500;

-- name: count_refused
-- why:  What the door refused was never accepted; the ledger shows it beside the account.
INSERT INTO ledger_refused AS r (tenant_id, via, reason, count) VALUES (%(tenant)s, %(via)s, %(reason)s, %(count)s)
ON CONFLICT (tenant_id, via, reason) DO UPDATE SET count = r.count + excluded.count;

-- name: mark_redriven
-- why:  The letter stays for the record, with the event it became.
UPDATE dead_letters SET redriven_at = %(at)s, redriven_id = %(event_id)s WHERE id = %(id)s AND redriven_at IS NULL;
