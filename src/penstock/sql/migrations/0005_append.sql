-- Conditional appends: where a criterion matches, and two calls that check and append at once.
--
-- An append asks that nothing matching some criteria stands after a position. That is checked twice:
-- first without the lock, as long as it may take; then, under the lock of the head, only over what
-- was committed in between, which is next to nothing. So a slow question holds up nobody else, and
-- a refusal writes nothing.

-- The first positions after a place that carry all tags and one of the types; NULL asks nothing.
-- Of several tags, and the types beside them, the rarest is walked: with the fewest entries, or whose
-- hundredth lies furthest away. Each place on the way is looked up among the others; OFFSET 0 keeps
-- it that way round. Comparing pairs keeps the walk of a type to its own index, however rare it is.
CREATE FUNCTION positions_matching(tenant text, tags text[], types text[], after bigint, most bigint)
RETURNS TABLE (place bigint) LANGUAGE sql STABLE PARALLEL SAFE ROWS 10 AS $$
  (SELECT t.position
     FROM event_tags AS t
    WHERE cardinality(tags) = 1 AND types IS NULL
      AND t.tenant_id = tenant AND t.tag = tags[1] AND t.position > after
    ORDER BY t.position LIMIT most)
  UNION ALL
  (SELECT w.position
     FROM (SELECT c.tag   -- NULL: the types
             FROM (SELECT r.tag, s.entries, s.furthest
                     FROM unnest(tags) AS r (tag)
                    CROSS JOIN LATERAL (
                          SELECT count(*) AS entries, max(t.position) AS furthest
                            FROM (SELECT t.position FROM event_tags AS t
                                   WHERE t.tenant_id = tenant AND t.tag = r.tag AND t.position > after
                                   ORDER BY t.position LIMIT 100) AS t) AS s
                   UNION ALL
                   SELECT NULL, count(*), max(e.position)
                     FROM unnest(types) AS r (type)
                    CROSS JOIN LATERAL (
                          SELECT e.position FROM workflow_events AS e
                           WHERE e.tenant_id = tenant AND e.type <= r.type AND (e.type, e.position) > (r.type, after)
                           ORDER BY e.type, e.position LIMIT 100) AS e
                   HAVING types IS NOT NULL) AS c
            WHERE cardinality(tags) > 1 OR (types IS NOT NULL AND tags IS NOT NULL)
            ORDER BY c.entries, c.furthest DESC LIMIT 1) AS rarest
    CROSS JOIN LATERAL (
          (SELECT t.position FROM event_tags AS t
            WHERE rarest.tag IS NOT NULL AND t.tenant_id = tenant AND t.tag = rarest.tag AND t.position > after
            ORDER BY t.position)
          UNION ALL
          (SELECT e.position
             FROM unnest(types) AS r (type)
            CROSS JOIN LATERAL (
                  SELECT e.position FROM workflow_events AS e
                   WHERE e.tenant_id = tenant AND e.type <= r.type AND (e.type, e.position) > (r.type, after)
                   ORDER BY e.type, e.position) AS e
            WHERE rarest.tag IS NULL
            ORDER BY e.position)
          OFFSET 0) AS w
    WHERE NOT EXISTS (
          SELECT FROM unnest(tags) AS o (tag)
           WHERE o.tag IS DISTINCT FROM rarest.tag AND NOT EXISTS (
                 SELECT FROM event_tags AS t
                  WHERE t.tenant_id = tenant AND t.tag = o.tag AND t.position = w.position
                 OFFSET 0)
          OFFSET 0)
      AND (types IS NULL OR rarest.tag IS NULL OR EXISTS (
          SELECT FROM workflow_events AS e
           WHERE e.position = w.position AND e.type = ANY (types)
          OFFSET 0))
    LIMIT most)
  UNION ALL
  (SELECT e.position
     FROM unnest(types) AS w (type)
    CROSS JOIN LATERAL (
          SELECT e.position FROM workflow_events AS e
           WHERE e.tenant_id = tenant AND e.type <= w.type AND (e.type, e.position) > (w.type, after)
           ORDER BY e.type, e.position LIMIT most) AS e
    WHERE tags IS NULL
    ORDER BY e.position LIMIT most)
$$;

-- One event, at most one criterion. The position it got; NULL when anything at all stands in the
-- way, and append_batch then says what. The head is moved first, which takes its lock. `seen` is a
-- position that the caller knows to be committed: if the head was still there, nothing can have
-- slipped in after the check; else what came since is checked too, and the head moved back if need
-- be. Nearly every append is of this kind, so it is kept to four statements.
--
-- `line` is the row as store/intake/rows.py writes and hashes it, from the tenant on: text of COPY,
-- in which only a backslash is escaped, by another one.
CREATE FUNCTION append_one(
  by_writer text, seen bigint, line text, e_tags text[], is_new boolean, c_tags text[], c_types text[], c_after bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  f   text[] := string_to_array(line, E'\t', '\N');
  got bigint;
  at  timestamptz;
  lag bigint;
BEGIN
  IF cardinality(c_tags) = 1 AND c_types IS NULL THEN   -- nearly always, and by far the shortest plan
    PERFORM FROM event_tags AS t WHERE t.tenant_id = f[1] AND t.tag = c_tags[1] AND t.position > c_after LIMIT 1;
    IF FOUND THEN
      RETURN NULL;
    END IF;
  ELSIF c_after IS NOT NULL THEN
    PERFORM FROM positions_matching(f[1], c_tags, c_types, c_after, 1);
    IF FOUND THEN
      RETURN NULL;
    END IF;
  END IF;
  IF NOT is_new THEN
    PERFORM FROM workflow_events AS e WHERE e.tenant_id = f[1] AND e.id >= f[2] AND e.id <= f[2] ORDER BY e.id LIMIT 1;
    IF FOUND THEN
      RETURN NULL;
    END IF;
  END IF;
  UPDATE head AS h SET position = h.position + 1, received_at = greatest(h.received_at, clock_timestamp())
   WHERE h.one RETURNING h.position, h.received_at INTO got, at;
  IF got > seen + 1 OR c_after >= got THEN
    PERFORM FROM positions_matching(f[1], c_tags, c_types, greatest(c_after, seen), 1) WHERE c_after IS NOT NULL;
    IF NOT FOUND AND NOT is_new THEN
      PERFORM FROM workflow_events AS e WHERE e.tenant_id = f[1] AND e.id >= f[2] AND e.id <= f[2] ORDER BY e.id LIMIT 1;
    END IF;
    IF FOUND OR c_after >= got THEN
      UPDATE head AS h SET position = got - 1 WHERE h.one;
      RETURN NULL;
    END IF;
  END IF;
  lag := greatest(0, trunc(extract(epoch FROM at - f[5]::timestamptz) * 1000));
  WITH stored AS (
    INSERT INTO workflow_events
      (position, received_at, tenant_id, id, type, source, occurred_at, payload, tags, correlation_id, causation_id, traceparent, ttl_ms,
       metadata, schema_version, schema_hash, severity, severity_rule, content_hash, hash)
    VALUES
      (got, at, f[1], f[2], f[3], f[4], f[5]::timestamptz, replace(f[6], '\\', '\')::jsonb, replace(f[7], '\\', '\')::jsonb,
       replace(f[8], '\\', '\'), replace(f[9], '\\', '\'), f[10], f[11]::bigint, replace(f[12], '\\', '\')::jsonb, f[13]::integer,
       f[14], f[15], f[16], replace(f[17], '\\', '\')::bytea, replace(f[18], '\\', '\')::bytea)),
  tagged AS (
    INSERT INTO event_tags (position, tenant_id, tag) SELECT got, f[1], t.tag FROM unnest(e_tags) AS t (tag)),
  sourced AS (
    INSERT INTO ledger_sources AS s (tenant_id, source, stored, lag_total_ms, lag_last_ms, lag_max_ms, last_event_at)
    VALUES (f[1], f[4], 1, lag, lag, lag, f[5]::timestamptz)
    ON CONFLICT (tenant_id, source) DO UPDATE SET
      stored = s.stored + 1, lag_total_ms = s.lag_total_ms + lag, lag_last_ms = lag, lag_max_ms = greatest(s.lag_max_ms, lag),
      last_event_at = excluded.last_event_at),
  counted AS (
    INSERT INTO ledger_writers AS w (writer, accepted, settled) VALUES (by_writer, 1, 1)
    ON CONFLICT (writer) DO UPDATE SET accepted = w.accepted + 1, settled = w.settled + 1, last_at = now())
  UPDATE ledger_totals AS t SET stored = t.stored + 1 WHERE t.one;
  PERFORM pg_notify('penstock_events', got::text);
  RETURN got;
END $$;

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
  by_writer text, appends integer,
  e_append integer[], e_line text[],
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
    WITH repeated AS (
      SELECT split_part(e.line, E'\t', 1) AS tenant, split_part(e.line, E'\t', 4) AS source, count(*) AS events
        FROM unnest(e_append, e_line) WITH ORDINALITY AS e (append, line, event)
       WHERE e.event = ANY (known) AND (dropped IS NULL OR e.append <> ALL (dropped))
       GROUP BY 1, 2),
    sourced AS (
      UPDATE ledger_sources AS s SET duplicates = s.duplicates + r.events
        FROM repeated AS r WHERE s.tenant_id = r.tenant AND s.source = r.source)
    SELECT coalesce(sum(r.events), 0) INTO repeats FROM repeated AS r;
  END IF;
  WITH stored AS (
    INSERT INTO workflow_events
      (position, received_at, tenant_id, id, type, source, occurred_at, payload, tags, correlation_id, causation_id, traceparent, ttl_ms,
       metadata, schema_version, schema_hash, severity, severity_rule, content_hash, hash)
    SELECT
       base + row_number() OVER (ORDER BY e.event), at, f[1], f[2], f[3], f[4], f[5]::timestamptz, replace(f[6], '\\', '\')::jsonb, replace(f[7], '\\', '\')::jsonb,
       replace(f[8], '\\', '\'), replace(f[9], '\\', '\'), f[10], f[11]::bigint, replace(f[12], '\\', '\')::jsonb, f[13]::integer,
       f[14], f[15], f[16], replace(f[17], '\\', '\')::bytea, replace(f[18], '\\', '\')::bytea
      FROM unnest(e_append, e_line) WITH ORDINALITY AS e (append, line, event)
     CROSS JOIN LATERAL string_to_array(e.line, E'\t', '\N') AS f
     WHERE (dropped IS NULL OR e.append <> ALL (dropped)) AND (known IS NULL OR e.event <> ALL (known))
    RETURNING position, tenant_id, source, occurred_at, tags),
  tagged AS (
    INSERT INTO event_tags (position, tenant_id, tag)
    SELECT s.position, s.tenant_id, t.key || ':' || t.value FROM stored AS s CROSS JOIN LATERAL jsonb_each_text(s.tags) AS t),
  sourced AS (
    INSERT INTO ledger_sources AS l (tenant_id, source, stored, lag_total_ms, lag_last_ms, lag_max_ms, last_event_at)
    SELECT s.tenant_id, s.source, count(*), sum(s.lag), (array_agg(s.lag ORDER BY s.position DESC))[1], max(s.lag),
           (array_agg(s.occurred_at ORDER BY s.position DESC))[1]
      FROM (SELECT s.*, greatest(0, trunc(extract(epoch FROM at - s.occurred_at) * 1000))::bigint AS lag FROM stored AS s) AS s
     GROUP BY s.tenant_id, s.source
    ON CONFLICT (tenant_id, source) DO UPDATE SET
      stored = l.stored + excluded.stored, lag_total_ms = l.lag_total_ms + excluded.lag_total_ms, lag_last_ms = excluded.lag_last_ms,
      lag_max_ms = greatest(l.lag_max_ms, excluded.lag_max_ms), last_event_at = excluded.last_event_at)
  SELECT count(*) INTO fresh FROM stored;
  IF fresh + repeats > 0 THEN
    WITH counted AS (
      INSERT INTO ledger_writers AS w (writer, accepted, settled) VALUES (by_writer, fresh + repeats, fresh + repeats)
      ON CONFLICT (writer) DO UPDATE SET accepted = w.accepted + excluded.accepted, settled = w.settled + excluded.settled, last_at = now()),
    totalled AS (
      UPDATE ledger_totals AS t SET stored = t.stored + fresh, duplicates = t.duplicates + repeats WHERE t.one)
    UPDATE head AS h SET position = base + fresh, received_at = at WHERE h.one AND fresh > 0;
  END IF;
  IF fresh > 0 THEN
    PERFORM pg_notify('penstock_events', (base + fresh)::text);
  END IF;
END $$;
