-- Appends as rows of their own type, counted where the head is moved.
--
-- An append came as a line of text that was taken apart again, and was counted in two tables beside
-- the head. Now its events come as values of one type in binary form, and the head counts them in
-- the same write that moves it: half the work of an append, which others wait for.

ALTER TABLE head ADD COLUMN appended bigint NOT NULL DEFAULT 0;   -- events that appends were answered for, repeated ones included
UPDATE head SET appended = (SELECT coalesce(sum(w.accepted), 0) FROM ledger_writers AS w WHERE starts_with(w.writer, 'append-'));
DELETE FROM ledger_writers WHERE starts_with(writer, 'append-');

-- One event as store/append/rows.py writes it; `words` are its tags as event_tags has them.
CREATE TYPE append_row AS (
  tenant_id text, id text, type text, source text, occurred_at timestamptz, payload jsonb, tags jsonb, correlation_id text,
  causation_id text, traceparent text, ttl_ms bigint, metadata jsonb, schema_version integer, schema_hash text, severity text,
  severity_rule text, content_hash bytea, hash bytea, words text[]
);

-- What one source appended in one commit.
CREATE TYPE append_source AS (
  tenant_id text, source text, events bigint, lag_total_ms bigint, lag_last_ms bigint, lag_max_ms bigint, last_event_at timestamptz
);

DROP FUNCTION append_one;
DROP FUNCTION append_batch;

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
    WITH repeated AS (
      SELECT e.tenant_id AS tenant, e.source, count(*) AS events
        FROM unnest(e_append, e_row) WITH ORDINALITY AS e (append)
       WHERE e.ordinality = ANY (known) AND (dropped IS NULL OR e.append <> ALL (dropped))
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
       base + row_number() OVER (ORDER BY e.ordinality), at, e.tenant_id, e.id, e.type, e.source, e.occurred_at, e.payload, e.tags, e.correlation_id,
       e.causation_id, e.traceparent, e.ttl_ms, e.metadata, e.schema_version, e.schema_hash, e.severity, e.severity_rule, e.content_hash, e.hash
      FROM unnest(e_append, e_row) WITH ORDINALITY AS e (append)
     WHERE (dropped IS NULL OR e.append <> ALL (dropped)) AND (known IS NULL OR e.ordinality <> ALL (known))
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
    UPDATE head AS h SET position = base + fresh, received_at = at, appended = h.appended + fresh + repeats WHERE h.one;
  END IF;
  IF repeats > 0 THEN
    UPDATE ledger_totals AS t SET duplicates = t.duplicates + repeats WHERE t.one;
  END IF;
  IF fresh > 0 THEN
    PERFORM pg_notify('penstock_events', (base + fresh)::text);
  END IF;
END $$;
