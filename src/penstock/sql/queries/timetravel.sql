-- Time travel: where an instant lies in the log, the events of a boundary oldest first, snapshots.
-- A boundary is walked a stretch at a time through one index: so many entries of it are looked at,
-- whether they match or not, so that no statement takes long and a reader can always go on.

-- name: log_head
-- why:  The newest place of the log, and when it was reached.
SELECT h.position, log_instant_of(h.position) FROM head AS h;

-- name: instant_of
-- why:  When the log reached a position.
SELECT log_instant_of(%(position)s::bigint);

-- name: position_at
-- why:  The last position that was received by an instant, and when.
SELECT p.position, log_instant_of(p.position)
  FROM (SELECT log_position_at(%(instant)s::timestamptz) AS position) AS p;

-- name: rarest_tag
-- why:  With several tags the rarest is walked and the others are asked of each event.
SELECT w.tag
  FROM unnest(%(tags)s::text[]) AS w (tag)
 CROSS JOIN LATERAL (
       SELECT count(*) AS found
         FROM (SELECT FROM event_tags AS t
                WHERE t.tenant_id = %(tenant)s AND t.tag = w.tag LIMIT %(most)s) AS t) AS c
 ORDER BY c.found, w.tag LIMIT 1;

-- name: stretch_of_tag
-- why:  The next entries of one tag, oldest first.
SELECT t.position
  FROM event_tags AS t
 WHERE t.tenant_id = %(tenant)s AND t.tag = %(walked)s
   AND t.position > %(after)s::bigint AND t.position <= %(upto)s::bigint
 ORDER BY t.position LIMIT %(limit)s;

-- name: stretch_of_correlation
-- why:  The same for a correlation id; pairs are compared because only its index has their order.
SELECT e.position
  FROM workflow_events AS e
 WHERE e.tenant_id = %(tenant)s AND e.correlation_id >= %(walked)s
   AND (e.correlation_id, e.position) > (%(walked)s, %(after)s::bigint)
   AND (e.correlation_id, e.position) <= (%(walked)s, %(upto)s::bigint)
 ORDER BY e.correlation_id, e.position LIMIT %(limit)s;

-- name: stretch_of_event
-- why:  An event without tags and correlation is a history of its own.
SELECT e.position
  FROM workflow_events AS e
 WHERE e.tenant_id = %(tenant)s AND e.id = %(walked)s
   AND e.position > %(after)s::bigint AND e.position <= %(upto)s::bigint LIMIT %(limit)s;

-- name: in_boundary
-- why:  Which events of a stretch belong to the boundary; each is looked up by its position.
SELECT e.*
  FROM unnest(%(positions)s::bigint[]) AS w (position)
 CROSS JOIN LATERAL (
       SELECT e.* FROM workflow_events AS e WHERE e.position = w.position OFFSET 0) AS e
 WHERE e.tenant_id = %(tenant)s
   AND (%(correlation_id)s::text IS NULL OR e.correlation_id = %(correlation_id)s::text)
   AND (%(is_any_type)s OR e.type = ANY (%(types)s::text[]) OR e.type ~ %(type_regex)s::text)
   AND (%(tags)s::jsonb[] IS NULL OR e.tags @> ALL (%(tags)s::jsonb[]));

-- name: snapshot
-- why:  The newest snapshot that is not newer than what is asked; and whether to say it is in use.
SELECT s.position, s.events, s.state::text, b.used_at < now() - interval '1 day'
  FROM state_snapshots AS s
  JOIN state_boundaries AS b USING (tenant_id, boundary, reducer)
 WHERE s.tenant_id = %(tenant)s AND s.boundary = %(boundary)s AND s.reducer = %(reducer)s
   AND s.position <= %(upto)s::bigint
 ORDER BY s.position DESC LIMIT 1;

-- name: use_boundary
-- why:  A boundary that is asked about keeps its snapshots.
INSERT INTO state_boundaries (tenant_id, boundary, reducer, definition)
VALUES (%(tenant)s, %(boundary)s, %(reducer)s, %(definition)s::jsonb)
ON CONFLICT (tenant_id, boundary, reducer) DO UPDATE SET used_at = now();

-- name: keep_snapshot
-- why:  It comes back as text, so that one which does not read as it was can be thrown away.
INSERT INTO state_snapshots (tenant_id, boundary, reducer, position, events, state)
VALUES (%(tenant)s, %(boundary)s, %(reducer)s, %(position)s, %(events)s, %(state)s::jsonb)
ON CONFLICT DO NOTHING RETURNING state::text;

-- name: newest_of_boundaries
-- why:  Where the worker goes on making snapshots, before anybody has to wait for them.
SELECT b.tenant_id, b.reducer, b.definition::text, coalesce(n.position, 0)
  FROM state_boundaries AS b
  LEFT JOIN LATERAL (
       SELECT s.position FROM state_snapshots AS s
        WHERE (s.tenant_id, s.boundary, s.reducer) = (b.tenant_id, b.boundary, b.reducer)
        ORDER BY s.position DESC LIMIT 1) AS n ON true
 ORDER BY b.used_at DESC LIMIT %(most)s;

-- name: forget_boundary
-- why:  Somebody's data is to leave the cache; the snapshots go with their boundary.
DELETE FROM state_boundaries
 WHERE tenant_id = %(tenant)s AND (%(boundary)s::text IS NULL OR boundary = %(boundary)s::text);

-- name: forget_unused
-- why:  A boundary nobody asks about takes up room for nothing.
DELETE FROM state_boundaries WHERE used_at < now() - make_interval(days => %(days)s);
