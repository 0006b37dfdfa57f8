-- name: one_snapshot
-- why:  Head, totals and writers must be of the same moment, or the account would not balance.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: totals
-- why:  The head of the log stands for what is stored: positions are gapless.
SELECT h.position, h.appended, t.duplicates, t.dead, (SELECT coalesce(sum(count), 0)::bigint FROM ledger_refused) AS refused,
       t.counted
  FROM head h, ledger_totals t;

-- name: writers
-- why:  What each writer had acknowledged by the end of its last settled segment.
SELECT writer, accepted FROM ledger_writers;

-- name: settled
-- why:  A segment on disk that is settled is waiting to be deleted, not in flight.
SELECT segment FROM ledger_segments WHERE segment = ANY (%(segments)s::text[]);

-- name: sources
-- why:  Per-source totals and lag, newest activity first: what is counted, and what was appended since.
SELECT tenant_id, source, stored, duplicates, dead,
       CASE WHEN stored > 0 THEN (lag_total_ms / stored)::bigint END AS lag_average_ms,
       lag_last_ms, lag_max_ms, last_event_at
  FROM (SELECT coalesce(l.tenant_id, n.tenant_id) AS tenant_id, coalesce(l.source, n.source) AS source,
               coalesce(l.stored, 0) + coalesce(n.stored, 0) AS stored, coalesce(l.duplicates, 0) AS duplicates,
               coalesce(l.dead, 0) AS dead, coalesce(l.lag_total_ms, 0) + coalesce(n.lag_total_ms, 0) AS lag_total_ms,
               coalesce(n.lag_last_ms, l.lag_last_ms) AS lag_last_ms, greatest(l.lag_max_ms, n.lag_max_ms) AS lag_max_ms,
               coalesce(n.last_event_at, l.last_event_at) AS last_event_at
          FROM ledger_sources AS l
          FULL JOIN sources_between(%(counted)s, %(head)s) AS n
            ON l.tenant_id = n.tenant_id COLLATE "C" AND l.source = n.source COLLATE "C") AS s
 ORDER BY last_event_at DESC NULLS LAST, source COLLATE "C"
 LIMIT 1000;

-- name: forget_segments
-- why:  The row guards against reading a segment twice; the file has been gone for long.
DELETE FROM ledger_segments WHERE settled_at < now() - make_interval(hours => %(hours)s);
