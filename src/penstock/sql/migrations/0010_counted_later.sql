-- What was appended is counted by source afterwards.
--
-- Every append also wrote the row of its source in the ledger: a seventh of its work, while its caller
-- waited. Now the log counts what it has stored since it was last counted, every thousand events and
-- before each lot of the ingress; whoever reads the ledger adds what is left. The account is as exact
-- as before, since both sides of it are of one snapshot.

ALTER TABLE ledger_totals ADD COLUMN counted bigint NOT NULL DEFAULT 0;   -- up to this position, ledger_sources has counted
UPDATE ledger_totals SET counted = (SELECT position FROM head);

-- PostgreSQL reads and plans a CHECK anew in every statement, and this row is written with every append. It has one row
-- still: nobody may insert another.
ALTER TABLE head DROP CONSTRAINT head_one_check;

-- What came from each source after one position, up to another.
CREATE FUNCTION sources_between(after bigint, upto bigint)
RETURNS TABLE (tenant_id text, source text, stored bigint, lag_total_ms bigint, lag_last_ms bigint, lag_max_ms bigint, last_event_at timestamptz)
LANGUAGE sql STABLE AS $$
  SELECT e.tenant_id, e.source, count(*), sum(e.lag)::bigint, (array_agg(e.lag ORDER BY e.position DESC))[1], max(e.lag),
         (array_agg(e.occurred_at ORDER BY e.position DESC))[1]
    FROM (SELECT e.position, e.tenant_id, e.source, e.occurred_at,
                 greatest(0, trunc(extract(epoch FROM e.received_at - e.occurred_at) * 1000))::bigint AS lag
            FROM workflow_events AS e
           WHERE e.position > after AND e.position <= upto) AS e
   GROUP BY e.tenant_id, e.source
$$;

-- Count by source what is stored up to a position and not counted yet. Whoever changes the rows of
-- sources has the row of the totals first, so that nobody waits for another in a circle.
CREATE FUNCTION count_appended(upto bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  already bigint;
BEGIN
  SELECT t.counted INTO already FROM ledger_totals AS t WHERE t.one FOR UPDATE;
  IF already >= upto THEN
    RETURN;
  END IF;
  INSERT INTO ledger_sources AS l (tenant_id, source, stored, lag_total_ms, lag_last_ms, lag_max_ms, last_event_at)
  SELECT s.tenant_id, s.source, s.stored, s.lag_total_ms, s.lag_last_ms, s.lag_max_ms, s.last_event_at
    FROM sources_between(already, upto) AS s
  ON CONFLICT (tenant_id, source) DO UPDATE SET
    stored = l.stored + excluded.stored, lag_total_ms = l.lag_total_ms + excluded.lag_total_ms, lag_last_ms = excluded.lag_last_ms,
    lag_max_ms = greatest(l.lag_max_ms, excluded.lag_max_ms), last_event_at = excluded.last_event_at;
  UPDATE ledger_totals AS t SET counted = upto WHERE t.one;
END $$;

DROP FUNCTION append_batch;
DROP TYPE append_source;

-- Several appends, each all or nothing, in one commit. Events name their append by number; so do
-- criteria: those of one tag alone (s_…), which are nearly all and have a short plan, and any others
-- (c_…). A clause is 0 for "after a position" and 1 for "anywhere". The caller sees to it that no
-- append of a batch could match another's criteria or has one of its ids.
--
--   base        the position before the first that was stored
--   hit, hit_*  criteria that matched: append, clause, and the first positions found, none of them
--               when the criterion begins after the head
--   known, …    events whose id the log has: where, and whether with the same content
--   dropped     appends of which nothing was stored; all others are stored, in the given order
CREATE FUNCTION append_batch(
  appends integer, e_append integer[], e_row append_row[],
  k_event integer[], k_tenant text[], k_id text[], k_content bytea[],
  s_append integer[], s_clause smallint[], s_tenant text[], s_tag text[], s_after bigint[],
  c_append integer[], c_clause smallint[], c_tenant text[], c_tags text[], c_types text[], c_after bigint[],
  OUT base bigint, OUT hit integer[], OUT hit_clause smallint[], OUT hit_places text[],
  OUT known integer[], OUT known_place bigint[], OUT known_same boolean[], OUT dropped integer[]
) LANGUAGE plpgsql AS $$
DECLARE
  seen       bigint;
  at         timestamptz;
  fresh      bigint;
  repeats    bigint := 0;
BEGIN
  SELECT h.position INTO seen FROM head AS h WHERE h.one;
  IF cardinality(s_append) > 0 THEN
    SELECT array_agg(s.append), array_agg(s.clause), array_agg(m.places) INTO hit, hit_clause, hit_places
      FROM unnest(s_append, s_clause, s_tenant, s_tag, s_after) AS s (append, clause, tenant, tag, after)
     CROSS JOIN LATERAL (
           SELECT string_agg(p.position::text, ',')
             FROM (SELECT t.position FROM event_tags AS t
                    WHERE t.tenant_id = s.tenant AND t.tag = s.tag AND t.position > s.after
                    ORDER BY t.position LIMIT 10) AS p) AS m (places)
     WHERE m.places IS NOT NULL OR s.after > seen;
  END IF;
  IF cardinality(c_append) > 0 THEN
    SELECT hit || array_agg(c.append), hit_clause || array_agg(c.clause), hit_places || array_agg(m.places) INTO hit, hit_clause, hit_places
      FROM unnest(c_append, c_clause, c_tenant, c_tags, c_types, c_after) AS c (append, clause, tenant, tags, types, after)
     CROSS JOIN LATERAL (
           SELECT string_agg(p.place::text, ',')
             FROM positions_matching(c.tenant, c.tags::text[], c.types::text[], c.after, 10) AS p) AS m (places)
     WHERE m.places IS NOT NULL OR c.after > seen;
  END IF;
  -- When every append is refused already and nothing of it is stored, there is nothing to lock for.
  IF hit IS NOT NULL AND (SELECT count(DISTINCT h.append) FROM unnest(hit) AS h (append)) = appends THEN
    PERFORM FROM unnest(k_tenant, k_id) AS k (tenant, id)
     CROSS JOIN LATERAL (
           SELECT FROM workflow_events AS e
            WHERE e.tenant_id = k.tenant AND e.id >= k.id AND e.id <= k.id ORDER BY e.id LIMIT 1) AS e;
    IF NOT FOUND THEN
      base := seen;
      dropped := hit;
      RETURN;
    END IF;
  END IF;
  SELECT h.position, greatest(h.received_at, clock_timestamp()) INTO base, at FROM head AS h WHERE h.one FOR UPDATE;
  IF base > seen THEN
    SELECT hit || array_agg(c.append), hit_clause || array_agg(c.clause), hit_places || array_agg(m.places) INTO hit, hit_clause, hit_places
      FROM (SELECT s.append, s.clause, s.tenant, ARRAY[s.tag] AS tags, NULL::text[] AS types, s.after
              FROM unnest(s_append, s_clause, s_tenant, s_tag, s_after) AS s (append, clause, tenant, tag, after)
             UNION ALL
            SELECT c.append, c.clause, c.tenant, c.tags::text[], c.types::text[], c.after
              FROM unnest(c_append, c_clause, c_tenant, c_tags, c_types, c_after) AS c (append, clause, tenant, tags, types, after)) AS c
     CROSS JOIN LATERAL (
           SELECT string_agg(p.place::text, ',')
             FROM positions_matching(c.tenant, c.tags, c.types, greatest(c.after, seen), 10) AS p) AS m (places)
     WHERE m.places IS NOT NULL;
  END IF;
  dropped := hit;
  IF cardinality(k_event) > 0 THEN
    SELECT array_agg(k.event), array_agg(e.position), array_agg(e.content_hash = k.content) INTO known, known_place, known_same
      FROM unnest(k_event, k_tenant, k_id, k_content) AS k (event, tenant, id, content)
     CROSS JOIN LATERAL (
           SELECT e.position, e.content_hash FROM workflow_events AS e
            WHERE e.tenant_id = k.tenant AND e.id >= k.id AND e.id <= k.id ORDER BY e.id LIMIT 1) AS e;
  END IF;
  IF known IS NOT NULL THEN
    -- An append that is stored already is answered again, whatever has happened since. An id that is
    -- taken by other content drops the whole append.
    SELECT array_agg(a.append) INTO dropped
      FROM (SELECT e.append, bool_and(k.same IS TRUE) AS is_stored, bool_or(NOT k.same) AS is_taken
              FROM unnest(e_append) WITH ORDINALITY AS e (append, event)
              LEFT JOIN unnest(known, known_same) AS k (event, same) USING (event)
             GROUP BY e.append) AS a
     WHERE a.is_taken OR (NOT a.is_stored AND a.append = ANY (hit));
    SELECT count(*) INTO repeats
      FROM unnest(e_append) WITH ORDINALITY AS e (append, event)
     WHERE e.event = ANY (known) AND (dropped IS NULL OR e.append <> ALL (dropped));
  END IF;
  IF repeats > 0 THEN
    UPDATE ledger_totals AS t SET duplicates = t.duplicates + repeats WHERE t.one;
    INSERT INTO ledger_sources AS s (tenant_id, source, duplicates)
    SELECT e.tenant_id, e.source, count(*)
      FROM unnest(e_append, e_row) WITH ORDINALITY AS e (append)
     WHERE e.ordinality = ANY (known) AND (dropped IS NULL OR e.append <> ALL (dropped))
     GROUP BY 1, 2
    ON CONFLICT (tenant_id, source) DO UPDATE SET duplicates = s.duplicates + excluded.duplicates;
  END IF;
  WITH stored AS (
    INSERT INTO workflow_events
      (position, received_at, tenant_id, id, type, source, occurred_at, payload, tags, correlation_id, causation_id, traceparent, ttl_ms,
       metadata, schema_version, schema_hash, severity, severity_rule, content_hash, hash)
    SELECT
       base + row_number() OVER (ORDER BY e.ordinality), at, e.tenant_id, e.id, e.type, e.source, e.occurred_at, e.payload, e.tags, e.correlation_id,
       e.causation_id, e.traceparent, e.ttl_ms, e.metadata, e.schema_version, e.schema_hash, e.severity, e.severity_rule, e.content_hash, e.hash
      FROM unnest(e_append, e_row) WITH ORDINALITY AS e (append)
     WHERE (dropped IS NULL OR e.append <> ALL (dropped)) AND (known IS NULL OR e.ordinality <> ALL (known))
    RETURNING position, tenant_id, tags),
  tagged AS (
    INSERT INTO event_tags (position, tenant_id, tag)
    SELECT s.position, s.tenant_id, t.key || ':' || t.value FROM stored AS s CROSS JOIN LATERAL jsonb_each_text(s.tags) AS t)
  SELECT count(*) INTO fresh FROM stored;
  IF fresh + repeats > 0 THEN
    UPDATE head AS h SET position = base + fresh, received_at = at, appended = h.appended + fresh + repeats WHERE h.one;
  END IF;
  IF fresh > 0 THEN
    PERFORM pg_notify('penstock_events', (base + fresh)::text);
  END IF;
END $$;
