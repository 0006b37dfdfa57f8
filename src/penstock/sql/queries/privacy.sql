-- The keys of subjects. `subject` is a pseudonym everywhere; the database never sees an id.

-- name: claim_root
-- why:  The first root key that is used with a database is the only one ever; another would split it.
INSERT INTO privacy_root (fingerprint) VALUES (%(fingerprint)b) ON CONFLICT (one) DO NOTHING;

-- name: root
-- why:  Compared with the key file before anything is encrypted.
SELECT fingerprint FROM privacy_root;

-- name: standings
-- why:  One row a subject: its highest number, its live key if it has one, when it was last erased.
SELECT k.tenant_id, k.subject, max(k.number),
       (array_agg(k.wrapped) FILTER (WHERE k.wrapped IS NOT NULL))[1], max(k.erased_at)
  FROM unnest(%(tenants)s::text[], %(subjects)s::text[]) AS u (tenant_id, subject)
  JOIN subject_keys AS k ON k.tenant_id = u.tenant_id AND k.subject = u.subject
 GROUP BY k.tenant_id, k.subject;

-- name: create
-- why:  Whoever comes second keeps nothing, and reads what the first one kept.
INSERT INTO subject_keys (tenant_id, subject, number, wrapped)
SELECT * FROM unnest(%(tenants)s::text[], %(subjects)s::text[], %(numbers)s::integer[], %(wrapped)s::bytea[])
ON CONFLICT DO NOTHING;

-- name: find
-- why:  The keys that a page of events needs, as far as they were not destroyed.
SELECT k.tenant_id, k.subject, k.number, k.wrapped
  FROM unnest(%(tenants)s::text[], %(subjects)s::text[], %(numbers)s::integer[]) AS u (tenant_id, subject, number)
  JOIN subject_keys AS k ON k.tenant_id = u.tenant_id AND k.subject = u.subject AND k.number = u.number
 WHERE k.wrapped IS NOT NULL;

-- name: destroy
-- why:  The key goes, and when it went stays.
UPDATE subject_keys SET wrapped = NULL, erased_at = clock_timestamp()
 WHERE tenant_id = %(tenant)s AND subject = %(subject)s AND wrapped IS NOT NULL
RETURNING erased_at;

-- name: bury
-- why:  Without a live key the erasure is remembered all the same: what comes late is stored erased.
INSERT INTO subject_keys AS k (tenant_id, subject, number, erased_at)
SELECT %(tenant)s, %(subject)s, coalesce(max(o.number), 1), clock_timestamp()
  FROM subject_keys AS o WHERE o.tenant_id = %(tenant)s AND o.subject = %(subject)s
ON CONFLICT (tenant_id, subject, number) DO UPDATE SET erased_at = excluded.erased_at WHERE k.wrapped IS NULL
RETURNING erased_at;

-- name: letters
-- why:  Dead letters hold what was sent as it was sent; those of a subject are looked for in chunks.
SELECT id, raw FROM dead_letters
 WHERE tenant_id = %(tenant)s AND id > %(after)s AND length(raw) > 0 ORDER BY id LIMIT 500;

-- name: blank_letters
-- why:  The letter stays in the account; what it said is gone, and so is what was said about it.
UPDATE dead_letters SET raw = '', detail = 'erased: it held the data of a subject who was erased', pointer = ''
 WHERE id = ANY (%(ids)s::text[]);

-- name: rewrite
-- why:  A changed row leaves its old version behind; this writes the table anew without it.
VACUUM (FULL) {table};

-- name: sweep
-- why:  When somebody is at the table all the time, at least what was changed is given free.
VACUUM {table};

-- name: soon
-- why:  Sweeping may wait for readers, but nobody waits for it long.
SELECT set_config('lock_timeout', '2s', false);

-- name: patiently
-- why:  The connection goes back to the pool as it was.
SELECT set_config('lock_timeout', '0', false);
