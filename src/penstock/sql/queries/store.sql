-- Reading the log. A page is made of three parts: `page` says what comes back, one `walk_<index>`
-- says which index is walked, newest first, and `where_filters` says which rows of that walk are wanted.
-- The holes {walk} and {filters} take only these texts; everything a reader says is a parameter.
-- A filter that was not given is a NULL parameter, which PostgreSQL folds away while planning.
--
-- Why `type >= x AND (type, position) < (x, before) ORDER BY type DESC, position DESC` where
-- `type = x` would say the same: only the index (tenant_id, type, position) delivers that order,
-- so a type seen long ago is never searched for by walking the whole log from its newest end.

-- name: enter
-- why:  The tenant holds for this transaction only; index walks beat whatever statistics promise.
SELECT set_config('penstock.tenant', %(tenant)s, true), set_config('enable_seqscan', 'off', true),
       set_config('random_page_cost', '1.1', true), set_config('jit', 'off', true);

-- name: keep_order
-- why:  Before statistics exist, the planner would rather gather a whole tenant and sort it.
SELECT set_config('enable_sort', 'off', true);

-- name: page
-- why:  JSON comes as text, so that our own loader keeps every digit of a number.
SELECT e.position, e.tenant_id, e.id, e.type, e.source, e.occurred_at, e.received_at,
       e.payload::text, e.tags::text, e.correlation_id, e.causation_id, e.traceparent, e.ttl_ms,
       e.metadata::text, e.schema_version, e.schema_hash, e.severity, e.severity_rule, e.content_hash
  FROM ({walk}) AS e
 ORDER BY e.position DESC;

-- name: where_filters
-- why:  Cheap comparisons first, the jsonPath last: rows that fail early never unpack their payload.
    (%(types)s::text[] IS NULL OR e.type = ANY (%(types)s::text[]))
AND (%(type_regex)s::text IS NULL OR e.type ~ %(type_regex)s::text)
AND (%(sources)s::text[] IS NULL OR e.source = ANY (%(sources)s::text[]))
AND (%(correlation_id)s::text IS NULL OR e.correlation_id = %(correlation_id)s::text)
AND (%(severities)s::text[] IS NULL OR e.severity = ANY (%(severities)s::text[]))
AND (%(occurred_from)s::timestamptz IS NULL OR e.occurred_at >= %(occurred_from)s::timestamptz)
AND (%(occurred_to)s::timestamptz IS NULL OR e.occurred_at <= %(occurred_to)s::timestamptz)
AND (%(tags)s::jsonb[] IS NULL OR e.tags @> ALL (%(tags)s::jsonb[]))
AND (%(as_of_position)s::bigint IS NULL OR e.position <= %(as_of_position)s::bigint)
AND (%(as_of_instant)s::timestamptz IS NULL OR e.received_at <= %(as_of_instant)s::timestamptz)
AND (%(found_path)s::jsonpath IS NULL
     OR jsonb_path_exists_tz(e.payload, %(found_path)s::jsonpath, silent => true)
     OR (%(found_inner)s::jsonpath IS NOT NULL AND e.payload @? '$.payload'
         AND jsonb_path_exists_tz(e.payload, %(found_inner)s::jsonpath, silent => true)))
AND (%(true_path)s::jsonpath IS NULL
     OR jsonb_path_match_tz(e.payload, %(true_path)s::jsonpath, silent => true)
     OR (%(true_inner)s::jsonpath IS NOT NULL AND e.payload @? '$.payload'
         AND jsonb_path_match_tz(e.payload, %(true_inner)s::jsonpath, silent => true)));

-- name: walk_log
-- why:  Without a filter that has an index, and with many events of this tenant, the log itself.
SELECT e.*
  FROM workflow_events AS e
 WHERE e.tenant_id = %(tenant)s AND e.position < %(before)s::bigint AND {filters}
 ORDER BY e.position DESC LIMIT %(limit)s;

-- name: walk_window
-- why:  A stretch of time with few events: all of them by BRIN, then the newest positions.
SELECT e.*
  FROM (SELECT e.* FROM workflow_events AS e
         WHERE e.tenant_id = %(tenant)s AND e.position < %(before)s::bigint AND {filters} OFFSET 0) AS e
 ORDER BY e.position DESC LIMIT %(limit)s;

-- name: walk_tag
-- why:  The tag table is walked and each event looked up; OFFSET 0 keeps it that way round.
SELECT e.*
  FROM unnest(%(walked)s::text[]) AS w (value)
 CROSS JOIN LATERAL (
       SELECT e.*
         FROM event_tags AS t
        CROSS JOIN LATERAL (
              SELECT e.* FROM workflow_events AS e
               WHERE e.position = t.position AND e.tenant_id = %(tenant)s AND {filters}
              OFFSET 0) AS e
        WHERE t.tenant_id = %(tenant)s AND t.tag = w.value AND t.position < %(before)s::bigint
        ORDER BY t.position DESC LIMIT %(limit)s) AS e
 ORDER BY e.position DESC LIMIT %(limit)s;

-- name: walk_correlation
-- why:  What belongs to one request is found by its index, however old it is.
SELECT e.*
  FROM unnest(%(walked)s::text[]) AS w (value)
 CROSS JOIN LATERAL (
       SELECT e.* FROM workflow_events AS e
        WHERE e.tenant_id = %(tenant)s AND e.correlation_id >= w.value
          AND (e.correlation_id, e.position) < (w.value, %(before)s::bigint) AND {filters}
        ORDER BY e.correlation_id DESC, e.position DESC LIMIT %(limit)s) AS e
 ORDER BY e.position DESC LIMIT %(limit)s;

-- name: walk_type
-- why:  One walk per type, each stopped at the page size, then the newest of them all.
SELECT e.*
  FROM unnest(%(walked)s::text[]) AS w (value)
 CROSS JOIN LATERAL (
       SELECT e.* FROM workflow_events AS e
        WHERE e.tenant_id = %(tenant)s AND e.type >= w.value
          AND (e.type, e.position) < (w.value, %(before)s::bigint) AND {filters}
        ORDER BY e.type DESC, e.position DESC LIMIT %(limit)s) AS e
 ORDER BY e.position DESC LIMIT %(limit)s;

-- name: walk_source
-- why:  Likewise per source; all sources of a small tenant stand in for an index of its own log.
SELECT e.*
  FROM unnest(%(walked)s::text[]) AS w (value)
 CROSS JOIN LATERAL (
       SELECT e.* FROM workflow_events AS e
        WHERE e.tenant_id = %(tenant)s AND e.source >= w.value
          AND (e.source, e.position) < (w.value, %(before)s::bigint) AND {filters}
        ORDER BY e.source DESC, e.position DESC LIMIT %(limit)s) AS e
 ORDER BY e.position DESC LIMIT %(limit)s;

-- name: walk_severity
-- why:  The index leaves out `info`, which is nearly everything; the extra condition says so.
SELECT e.*
  FROM unnest(%(walked)s::text[]) AS w (value)
 CROSS JOIN LATERAL (
       SELECT e.* FROM workflow_events AS e
        WHERE e.tenant_id = %(tenant)s AND e.severity <> 'info' AND e.severity >= w.value
          AND (e.severity, e.position) < (w.value, %(before)s::bigint) AND {filters}
        ORDER BY e.severity DESC, e.position DESC LIMIT %(limit)s) AS e
 ORDER BY e.position DESC LIMIT %(limit)s;

-- name: probe
-- why:  With several filters the rarest should be walked; counting stops early, so this is cheap.
SELECT p.choice, sum(c.found)::bigint
  FROM unnest(%(choices)s::int[], %(indexes)s::text[], %(values)s::text[])
       AS p (choice, index, value)
 CROSS JOIN LATERAL (
       SELECT count(*) AS found FROM (
         (SELECT 1 FROM event_tags AS t
           WHERE p.index = 'tag' AND t.tenant_id = %(tenant)s AND t.tag = p.value
             AND t.position < %(before)s::bigint LIMIT %(most)s)
         UNION ALL
         (SELECT 1 FROM workflow_events AS e
           WHERE p.index = 'correlation' AND e.tenant_id = %(tenant)s
             AND e.correlation_id >= p.value
             AND (e.correlation_id, e.position) < (p.value, %(before)s::bigint)
           ORDER BY e.correlation_id DESC, e.position DESC LIMIT %(most)s)
         UNION ALL
         (SELECT 1 FROM workflow_events AS e
           WHERE p.index = 'type' AND e.tenant_id = %(tenant)s AND e.type >= p.value
             AND (e.type, e.position) < (p.value, %(before)s::bigint)
           ORDER BY e.type DESC, e.position DESC LIMIT %(most)s)
         UNION ALL
         (SELECT 1 FROM workflow_events AS e
           WHERE p.index = 'source' AND e.tenant_id = %(tenant)s AND e.source >= p.value
             AND (e.source, e.position) < (p.value, %(before)s::bigint)
           ORDER BY e.source DESC, e.position DESC LIMIT %(most)s)
         UNION ALL
         (SELECT 1 FROM workflow_events AS e
           WHERE p.index = 'severity' AND e.tenant_id = %(tenant)s AND e.severity <> 'info'
             AND e.severity >= p.value AND (e.severity, e.position) < (p.value, %(before)s::bigint)
           ORDER BY e.severity DESC, e.position DESC LIMIT %(most)s)) AS row) AS c
 GROUP BY p.choice;

-- name: probe_window
-- why:  A stretch of time with few events is worth walking, a crowded one is not.
SELECT count(*)
  FROM (SELECT FROM workflow_events AS e
         WHERE e.tenant_id = %(tenant)s
           AND e.occurred_at >= coalesce(%(occurred_from)s::timestamptz, '-infinity')
           AND e.occurred_at <= coalesce(%(occurred_to)s::timestamptz, 'infinity')
         LIMIT %(most)s) AS e;

-- name: probe_log
-- why:  How much of a stretch of the log is this tenant's, and how new its times are.
SELECT count(*), max(e.occurred_at)
  FROM workflow_events AS e
 WHERE e.tenant_id = %(tenant)s AND e.position < %(before)s::bigint
   AND e.position >= %(before)s::bigint - %(stretch)s::bigint;

-- name: types_between
-- why:  A glob becomes the types it names: one step through the index per distinct type.
WITH RECURSIVE step AS (
  (SELECT e.type FROM workflow_events AS e
    WHERE e.tenant_id = %(tenant)s AND e.type >= %(low)s AND e.type < %(high)s
    ORDER BY e.type LIMIT 1)
  UNION ALL
  SELECT (SELECT e.type FROM workflow_events AS e
           WHERE e.tenant_id = %(tenant)s AND e.type > step.type AND e.type < %(high)s
           ORDER BY e.type LIMIT 1)
    FROM step WHERE step.type IS NOT NULL
)
SELECT step.type FROM step WHERE step.type IS NOT NULL LIMIT %(most)s;

-- name: sources_of_tenant
-- why:  A tenant has few sources, and each has its own walk through the index.
WITH RECURSIVE step AS (
  (SELECT e.source FROM workflow_events AS e
    WHERE e.tenant_id = %(tenant)s ORDER BY e.source LIMIT 1)
  UNION ALL
  SELECT (SELECT e.source FROM workflow_events AS e
           WHERE e.tenant_id = %(tenant)s AND e.source > step.source ORDER BY e.source LIMIT 1)
    FROM step WHERE step.source IS NOT NULL
)
SELECT step.source FROM step WHERE step.source IS NOT NULL LIMIT %(most)s;

-- name: position_at
-- why:  received_at never goes back along positions, so the log as of an instant ends at a position.
SELECT log_position_at(%(instant)s::timestamptz);

-- name: by_id
-- why:  An id is unique within its tenant.
SELECT e.* FROM workflow_events AS e WHERE e.tenant_id = %(tenant)s AND e.id = %(id)s;

-- name: after
-- why:  Positions are gapless and commit-ordered, so a plain range is a complete catch-up.
SELECT e.* FROM workflow_events AS e
 WHERE e.position > %(after)s::bigint ORDER BY e.position LIMIT %(limit)s;

-- name: after_near
-- why:  The same for one tenant, over a bounded stretch of the log.
SELECT e.* FROM workflow_events AS e
 WHERE e.tenant_id = %(tenant)s AND e.position > %(after)s::bigint
   AND e.position <= %(after)s::bigint + %(stretch)s::bigint
 ORDER BY e.position LIMIT %(limit)s;

-- name: after_by_source
-- why:  A small tenant in a long log catches up through its sources, not through other tenants.
SELECT e.*
  FROM unnest(%(sources)s::text[]) AS w (value)
 CROSS JOIN LATERAL (
       SELECT e.* FROM workflow_events AS e
        WHERE e.tenant_id = %(tenant)s AND e.source <= w.value
          AND (e.source, e.position) > (w.value, %(after)s::bigint)
        ORDER BY e.source, e.position LIMIT %(limit)s) AS e
 ORDER BY e.position LIMIT %(limit)s;

-- name: onward_log
-- why:  Where matches are common, or have no index, a bounded stretch of the log is held against the filters.
SELECT e.*
  FROM workflow_events AS e
 WHERE e.tenant_id = %(tenant)s AND e.position > %(after)s::bigint
   AND e.position <= %(until)s::bigint AND {filters}
 ORDER BY e.position LIMIT %(limit)s;

-- name: onward_at
-- why:  The events that an index led to, looked up one by one; OFFSET 0 keeps it that way round.
SELECT e.*
  FROM unnest(%(positions)s::bigint[]) AS p (position)
 CROSS JOIN LATERAL (
       SELECT e.* FROM workflow_events AS e
        WHERE e.position = p.position AND e.tenant_id = %(tenant)s AND {filters}
       OFFSET 0) AS e
 ORDER BY e.position LIMIT %(limit)s;

-- name: probe_onward
-- why:  The next positions of each value in its index, oldest first; rows are compared with both bounds, so that the walk ends at the second.
SELECT p.choice, ARRAY(
         (SELECT t.position FROM event_tags AS t
           WHERE p.index = 'tag' AND t.tenant_id = %(tenant)s AND t.tag = p.value
             AND t.position > %(after)s::bigint AND t.position <= %(until)s::bigint
           ORDER BY t.position LIMIT p.entries)
         UNION ALL
         (SELECT e.position FROM workflow_events AS e
           WHERE p.index = 'correlation' AND e.tenant_id = %(tenant)s
             AND e.correlation_id >= p.value
             AND (e.correlation_id, e.position) > (p.value, %(after)s::bigint)
             AND (e.correlation_id, e.position) <= (p.value, %(until)s::bigint)
           ORDER BY e.correlation_id, e.position LIMIT p.entries)
         UNION ALL
         (SELECT e.position FROM workflow_events AS e
           WHERE p.index = 'type' AND e.tenant_id = %(tenant)s
             AND (e.type, e.position) > (p.value, %(after)s::bigint)
             AND (e.type, e.position) <= (p.value, %(until)s::bigint)
           ORDER BY e.type, e.position LIMIT p.entries)
         UNION ALL
         (SELECT e.position FROM workflow_events AS e
           WHERE p.index = 'source' AND e.tenant_id = %(tenant)s
             AND (e.source, e.position) > (p.value, %(after)s::bigint)
             AND (e.source, e.position) <= (p.value, %(until)s::bigint)
           ORDER BY e.source, e.position LIMIT p.entries)
         UNION ALL
         (SELECT e.position FROM workflow_events AS e
           WHERE p.index = 'severity' AND e.tenant_id = %(tenant)s AND e.severity <> 'info'
             AND (e.severity, e.position) > (p.value, %(after)s::bigint)
             AND (e.severity, e.position) <= (p.value, %(until)s::bigint)
           ORDER BY e.severity, e.position LIMIT p.entries))
  FROM unnest(%(choices)s::int[], %(indexes)s::text[], %(values)s::text[], %(entries)s::int[])
       AS p (choice, index, value, entries);

-- name: head
-- why:  The last position given out; everything up to it is committed.
SELECT position FROM head;
