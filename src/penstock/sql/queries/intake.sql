-- name: never_scan
-- why:  The only read of a lot is a probe by key; whatever walks the whole log or a whole index of it can never be right.
SELECT set_config(name, 'off', false)
  FROM unnest(ARRAY['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_bitmapscan', 'enable_material', 'enable_memoize', 'jit']) AS name;

-- name: bound_waits
-- why:  Whoever holds the head lock and stalls must not hold everybody else for ever.
SELECT set_config('lock_timeout', '30s', false), set_config('idle_in_transaction_session_timeout', '30s', false), set_config('statement_timeout', '60s', false);

-- name: lock_head
-- why:  One writer at a time hands out positions, so they are gapless and in commit order; the time never goes back.
SELECT position, greatest(received_at, clock_timestamp()) FROM head FOR UPDATE;

-- name: epoch
-- why:  An ingress that was replaced while it slept must not settle anything more.
SELECT epoch FROM ingress_epoch;

-- name: settled
-- why:  A segment that was committed before a crash is read again after it; its row says so.
SELECT segment FROM ledger_segments WHERE segment = ANY (%(segments)s::text[]);

-- name: known
-- why:  The same id again is a duplicate or a conflict; the content hash tells which. LIMIT 1 makes it a probe per id, never a walk.
SELECT e.id, e.content_hash
  FROM unnest(%(ids)b::text[]) AS u (id)
 CROSS JOIN LATERAL (SELECT k.id, k.content_hash FROM workflow_events k WHERE k.tenant_id = %(tenant)s AND k.id = u.id LIMIT 1) AS e;

-- name: copy
-- why:  COPY straight into the log is the fastest durable way in; the positions are already known.
COPY {table} ({columns}) FROM STDIN;

-- name: keep_letter
-- why:  The same bytes rejected for the same reason are one dead letter with a count.
INSERT INTO dead_letters (id, tenant_id, reason, detail, pointer, type, source, event_id, raw, via, first_seen_at, last_seen_at, count)
VALUES (%(id)s, %(tenant_id)s, %(reason)s, %(detail)s, %(pointer)s, %(type)s, %(source)s, %(event_id)s, %(raw)b, %(via)s, %(at)s, %(at)s, %(count)s)
ON CONFLICT (id) DO UPDATE SET count = dead_letters.count + excluded.count, last_seen_at = greatest(dead_letters.last_seen_at, excluded.last_seen_at), detail = excluded.detail;

-- name: count_appended
-- why:  Appends before this lot are counted before it, so that what is counted has one end. Takes the row of the totals, which
--       whoever changes the rows of sources takes first.
SELECT count_appended(%(base)s::bigint);

-- name: count_source
-- why:  Per-source totals and lag are kept with the rows they count.
INSERT INTO ledger_sources AS s (tenant_id, source, stored, duplicates, dead, lag_total_ms, lag_last_ms, lag_max_ms, last_event_at)
VALUES (%(tenant_id)s, %(source)s, %(stored)s, %(duplicates)s, %(dead)s, %(lag_total_ms)s, %(lag_last_ms)s, %(lag_max_ms)s, %(last_event_at)s)
ON CONFLICT (tenant_id, source) DO UPDATE SET
  stored        = s.stored + excluded.stored,
  duplicates    = s.duplicates + excluded.duplicates,
  dead          = s.dead + excluded.dead,
  lag_total_ms  = s.lag_total_ms + excluded.lag_total_ms,
  lag_last_ms   = CASE WHEN excluded.stored > 0 THEN excluded.lag_last_ms ELSE s.lag_last_ms END,
  lag_max_ms    = greatest(s.lag_max_ms, excluded.lag_max_ms),
  last_event_at = coalesce(excluded.last_event_at, s.last_event_at);

-- name: settle_segment
-- why:  In the transaction of its rows: a segment is settled once, or not at all.
INSERT INTO ledger_segments (segment) VALUES (%(segment)s);

-- name: count_segments
-- why:  A writer numbers what it acknowledges; a segment that vanished leaves a gap between accepted and settled.
INSERT INTO ledger_writers AS w (writer, accepted, settled) VALUES (%(writer)s, %(end)s, %(lines)s)
ON CONFLICT (writer) DO UPDATE SET accepted = greatest(w.accepted, excluded.accepted), settled = w.settled + excluded.settled, last_at = now();

-- name: count_direct
-- why:  Without a queue, accepting and settling are one act.
INSERT INTO ledger_writers AS w (writer, accepted, settled) VALUES (%(writer)s, %(lines)s, %(lines)s)
ON CONFLICT (writer) DO UPDATE SET accepted = w.accepted + excluded.accepted, settled = w.settled + excluded.settled, last_at = now();

-- name: count_totals
-- why:  The running totals that /admin/ledger compares with the head of the log.
UPDATE ledger_totals
   SET stored = stored + %(stored)s, duplicates = duplicates + %(duplicates)s, dead = dead + %(dead)s, counted = %(counted)s;

-- name: advance
-- why:  The head moves in the transaction that fills the positions up to it.
UPDATE head SET position = %(position)s, received_at = %(at)s;

-- name: notify
-- why:  Live streams sleep until something was committed; they read by position, so the payload is a hint.
SELECT pg_notify('penstock_events', %(position)s);
