-- name: create_token
-- why:  A secret that an operator configures is the same token after every start, even once revoked.
INSERT INTO access_tokens (id, name, token_hash, tenant_id, scopes, created_by, expires_at)
VALUES (%(id)s, %(name)s, %(hash)s, %(tenant_id)s, %(scopes)s, %(by)s, %(expires_at)s)
ON CONFLICT (token_hash) DO UPDATE
   SET name = excluded.name, tenant_id = excluded.tenant_id, scopes = excluded.scopes,
       expires_at = excluded.expires_at, revoked_at = NULL
RETURNING id, name, tenant_id, scopes, created_at, created_by, expires_at, revoked_at, last_used_at;

-- name: find_token
-- why:  Revoked and expired tokens are nobody; the use is noted once a minute, not at every request.
WITH used AS (
  UPDATE access_tokens SET last_used_at = now()
   WHERE token_hash = %(hash)s AND revoked_at IS NULL
     AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
)
SELECT id, name, tenant_id, scopes, expires_at
  FROM access_tokens
 WHERE token_hash = %(hash)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: is_alive
-- why:  A long-lived connection asks again whether the token it was opened with still counts.
SELECT EXISTS (
  SELECT FROM access_tokens
   WHERE id = %(id)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
);

-- name: list_tokens
-- why:  An admin of a tenant sees its tokens; the operator asks without a tenant and sees all.
SELECT id, name, tenant_id, scopes, created_at, created_by, expires_at, revoked_at, last_used_at
  FROM access_tokens
 WHERE %(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s
 ORDER BY created_at, id;

-- name: revoke_token
-- why:  A token is kept after it is revoked, so that what it did can still be named.
UPDATE access_tokens SET revoked_at = now()
 WHERE id = %(id)s AND revoked_at IS NULL AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
RETURNING id;

-- name: forget_tickets
-- why:  A ticket that nobody used in time is of no use to anybody.
DELETE FROM ws_tickets WHERE expires_at < now();

-- name: create_ticket
-- why:  The database's clock says when a ticket ends, the same that will judge it.
INSERT INTO ws_tickets (ticket_hash, token_id, expires_at)
VALUES (%(hash)s, %(token_id)s, now() + make_interval(secs => %(seconds)s));

-- name: redeem_ticket
-- why:  Deleting is taking: of two who present the same ticket only one gets the row.
WITH taken AS (DELETE FROM ws_tickets WHERE ticket_hash = %(hash)s RETURNING token_id, expires_at)
SELECT t.id, t.name, t.tenant_id, t.scopes
  FROM taken JOIN access_tokens t ON t.id = taken.token_id
 WHERE taken.expires_at > now() AND t.revoked_at IS NULL
   AND (t.expires_at IS NULL OR t.expires_at > now());
