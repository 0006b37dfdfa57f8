-- name: try_lock
-- why:  A session lock goes with its process, so nobody has to clean up after a kill.
SELECT pg_try_advisory_lock(%(key)s);

-- name: raise_epoch
-- why:  Whoever held the lease before carries a lower number from now on.
UPDATE ingress_epoch SET epoch = epoch + 1 RETURNING epoch;

-- name: alive
-- why:  A lost session is a lost lock.
SELECT 1;
