-- Summaries of what a query finds. {walk} and {filters} take texts of queries/store.sql.

-- name: facets
-- why:  One reading of the newest matches serves every facet; the row without a key is their number.
WITH sample AS MATERIALIZED (SELECT e.type, e.source, e.severity, e.tags FROM ({walk}) AS e)
SELECT NULL AS key, NULL AS value, count(*) AS events FROM sample AS s
UNION ALL
SELECT 'type', s.type, count(*) FROM sample AS s
 WHERE 'type' = ANY (%(keys)s::text[]) GROUP BY s.type
UNION ALL
SELECT 'source', s.source, count(*) FROM sample AS s
 WHERE 'source' = ANY (%(keys)s::text[]) GROUP BY s.source
UNION ALL
SELECT 'severity', s.severity, count(*) FROM sample AS s
 WHERE 'severity' = ANY (%(keys)s::text[]) GROUP BY s.severity
UNION ALL
SELECT 'tag', k.key, count(*) FROM sample AS s CROSS JOIN jsonb_object_keys(s.tags) AS k (key)
 WHERE 'tag' = ANY (%(keys)s::text[]) GROUP BY k.key
UNION ALL
SELECT 'tag.' || k.key, s.tags ->> k.key, count(*)
  FROM sample AS s CROSS JOIN unnest(%(tag_keys)s::text[]) AS k (key)
 WHERE s.tags ? k.key GROUP BY k.key, s.tags ->> k.key;

-- name: let_planner_choose
-- why:  A summary reads all of its events, and then reading the table in order may be the best.
SELECT set_config('enable_seqscan', 'on', true);

-- name: histogram
-- why:  Every match counts, in whatever order is cheapest to read.
SELECT date_bin(%(step)s::interval, e.occurred_at, %(occurred_from)s::timestamptz), e.severity,
       count(*)
  FROM workflow_events AS e
 WHERE e.tenant_id = %(tenant)s AND {filters}
 GROUP BY 1, 2;

-- name: histogram_of_tag
-- why:  The rarest filter is a tag, and only the tag table finds those events.
SELECT date_bin(%(step)s::interval, e.occurred_at, %(occurred_from)s::timestamptz), e.severity,
       count(*)
  FROM event_tags AS t
  JOIN workflow_events AS e ON e.position = t.position
 WHERE t.tenant_id = %(tenant)s AND t.tag = %(tag)s AND e.tenant_id = %(tenant)s AND {filters}
 GROUP BY 1, 2;
