-- Counting what was appended costs a third of what it did.
--
-- Of each source only the last event's lag and time are wanted, and two sorted arrays were built to
-- find them; and lags were computed as numerics. A thousand events took 1.9 ms, of the 45 in which a
-- crowd appends as many. Now the last one is fetched by its position, and a lag is a whole number from
-- the start: microseconds, which a double holds exactly for 285 years.
CREATE OR REPLACE FUNCTION sources_between(after bigint, upto bigint)
RETURNS TABLE (tenant_id text, source text, stored bigint, lag_total_ms bigint, lag_last_ms bigint, lag_max_ms bigint, last_event_at timestamptz)
LANGUAGE sql STABLE AS $$
  SELECT s.tenant_id, s.source, s.stored, s.lag_total_ms, l.lag, s.lag_max_ms, l.occurred_at
    FROM (SELECT e.tenant_id, e.source, count(*) AS stored, sum(e.lag)::bigint AS lag_total_ms, max(e.lag) AS lag_max_ms, max(e.position) AS last
            FROM (SELECT e.position, e.tenant_id, e.source,
                         greatest(0, round(date_part('epoch', e.received_at - e.occurred_at) * 1000000)::bigint / 1000) AS lag
                    FROM workflow_events AS e
                   WHERE e.position > after AND e.position <= upto) AS e
           GROUP BY e.tenant_id, e.source) AS s
   CROSS JOIN LATERAL (
         SELECT e.occurred_at, greatest(0, round(date_part('epoch', e.received_at - e.occurred_at) * 1000000)::bigint / 1000) AS lag
           FROM workflow_events AS e
          WHERE e.position = s.last) AS l
$$;
