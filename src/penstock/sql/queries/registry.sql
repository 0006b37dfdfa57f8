-- name: load
-- why:  One statement sees one instant, so the versions belong to the revision beside them.
SELECT r.revision, s.event_type, s.version, s.status, s.schema::text, s.schema_hash,
       s.metadata::text, s.created_at, s.created_by, s.updated_at, s.updated_by, s.id
  FROM registry_revision r LEFT JOIN event_schema_registry s ON true
 ORDER BY s.event_type, s.version;

-- name: revision
-- why:  Publishers ask for it often; one row of one page answers.
SELECT revision FROM registry_revision;

-- name: lock
-- why:  Whoever registers holds this row until commit, so the next one sees the whole change.
SELECT revision, clock_timestamp() FROM registry_revision FOR UPDATE;

-- name: versions_of
-- why:  Read under the lock: which versions there are decides what registering does.
SELECT event_type, version, status, schema::text, schema_hash, metadata::text,
       created_at, created_by, updated_at, updated_by, id
  FROM event_schema_registry
 WHERE event_type = %(event_type)s
 ORDER BY version;

-- name: keep
-- why:  A new version, or new status, metadata or draft content of one that is there.
INSERT INTO event_schema_registry (event_type, version, status, schema, schema_hash, metadata,
                                   created_at, created_by, updated_at, updated_by)
VALUES (%(event_type)s, %(version)s, %(status)s, %(schema)s::json, %(schema_hash)s,
        %(metadata)s::jsonb, %(created_at)s, %(created_by)s, %(updated_at)s, %(updated_by)s)
ON CONFLICT (event_type, version) DO UPDATE
   SET status = excluded.status, schema = excluded.schema, schema_hash = excluded.schema_hash,
       metadata = excluded.metadata, updated_at = excluded.updated_at,
       updated_by = excluded.updated_by
RETURNING id;

-- name: as_of
-- why:  Of each version the last state it had by then; one that came later is not there.
SELECT DISTINCT ON (event_type, version)
       event_type, version, status, schema::text, schema_hash, metadata::text,
       created_at, created_by, updated_at, updated_by, id
  FROM event_schema_history
 WHERE updated_at <= %(at)s
 ORDER BY event_type, version, change DESC;
