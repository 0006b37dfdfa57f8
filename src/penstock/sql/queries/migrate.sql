-- name: lock
-- why:  Two processes may start at once; the second waits and then finds nothing to do.
SELECT pg_advisory_lock(%(key)s);

-- name: create_table
-- why:  The record of what was applied lives in the database it describes.
CREATE TABLE IF NOT EXISTS schema_migrations (
  number     integer     PRIMARY KEY,
  name       text        NOT NULL,
  checksum   text        NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: applied
-- why:  A checksum beside each number shows an edited migration.
SELECT number, checksum FROM schema_migrations ORDER BY number;

-- name: record
-- why:  Recorded in the transaction that applies it, so it is never half done.
INSERT INTO schema_migrations (number, name, checksum) VALUES (%(number)s, %(name)s, %(checksum)s);
