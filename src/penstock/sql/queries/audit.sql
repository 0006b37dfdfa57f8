-- Sealing the log, proving it, and checking it. Everything here looks at all tenants.

-- name: lock
-- why:  One sealer at a time; the lock goes with its transaction, however that ends.
SELECT pg_try_advisory_xact_lock(%(key)s);

-- name: head
-- why:  Everything up to here is committed.
SELECT position FROM head;

-- name: head_as_text
-- why:  A head that was tampered with may hold a time that no program can read.
SELECT position, received_at::text FROM head;

-- name: unsealed
-- why:  What a seal is over: place, time in whole microseconds, and the hash of the row.
SELECT position, (extract(epoch FROM received_at) * 1000000)::bigint, hash
  FROM workflow_events
 WHERE position > %(after)s::bigint AND position <= %(last)s::bigint
 ORDER BY position;

-- name: checkpoint
-- why:  The newest signed tree head; the older ones are in files.
SELECT note FROM audit_checkpoint;

-- name: keep_seal
-- why:  Each position is sealed once; the primary key holds that against a second sealer.
INSERT INTO audit_seals (last_position, first_position, leaves) VALUES (%(last)s, %(first)s, %(leaves)b);

-- name: keep_nodes
-- why:  The tiles that the new leaves filled, in one statement.
INSERT INTO audit_nodes (level, index, hash)
SELECT * FROM unnest(%(levels)s::smallint[], %(indexes)s::bigint[], %(hashes)s::bytea[]);

-- name: keep_checkpoint
-- why:  The signed tree head that this seal leads to takes the place of the one before.
INSERT INTO audit_checkpoint (note) VALUES (%(note)s) ON CONFLICT (one) DO UPDATE SET note = excluded.note;

-- name: leaves
-- why:  The seals that hold a stretch of positions.
SELECT first_position, last_position, leaves
  FROM audit_seals
 WHERE last_position >= %(first)s::bigint AND first_position <= %(last)s::bigint
 ORDER BY last_position;

-- name: tile
-- why:  The hashes of one tile above the leaves, in order.
SELECT index, hash FROM audit_nodes
 WHERE level = %(level)s AND index >= %(first)s::bigint AND index < %(first)s::bigint + 256
 ORDER BY index;

-- name: position_of
-- why:  A proof is about a position; a caller knows an id of their tenant.
SELECT position FROM workflow_events WHERE tenant_id = %(tenant)s AND id = %(id)s;

-- name: sealed_up_to
-- why:  What may leave the log must be sealed first.
SELECT coalesce(max(last_position), 0) FROM audit_seals;

-- name: snapshot
-- why:  Several connections check one and the same state of the log.
SELECT pg_export_snapshot();

-- name: begin_checking
-- why:  Text comes out one way, no row is hidden, and a long check is not cut off.
SELECT set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO', true),
       set_config('bytea_output', 'hex', true), set_config('row_security', 'off', true),
       set_config('idle_in_transaction_session_timeout', '0', true),
       set_config('statement_timeout', '0', true), set_config('work_mem', '128MB', true);

-- name: use_snapshot
-- why:  The state that the first connection exported.
SET TRANSACTION SNAPSHOT {snapshot};

-- name: ends
-- why:  Where the rows really begin and end, whatever the head says.
SELECT min(position), max(position), count(*) FROM workflow_events;

-- name: first_beyond
-- why:  A row far away from all others is looked at by itself.
SELECT min(position) FROM workflow_events WHERE position > %(last)s::bigint;

-- name: nodes
-- why:  Every tile above the leaves, to be compared with the rows.
SELECT level, index, hash FROM audit_nodes ORDER BY level, index;

-- name: seal_ends
-- why:  Where the seals begin and end, how many there are, and how many positions they say they hold.
SELECT min(first_position), max(last_position), count(*), coalesce(sum(last_position - first_position + 1), 0)::bigint
  FROM audit_seals;

-- name: copy_rows
-- why:  Rows as text, in the order of positions; COPY is the fastest way out.
COPY (SELECT {columns} FROM workflow_events
       WHERE position >= {first} AND position <= {last} ORDER BY position) TO STDOUT;

-- name: tags
-- why:  There is no index by position, so the tags of a long stretch are sorted once.
SELECT position, tenant_id, tag FROM event_tags
 WHERE position >= %(first)s::bigint AND position <= %(last)s::bigint
 ORDER BY position;
