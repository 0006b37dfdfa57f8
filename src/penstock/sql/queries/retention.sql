-- name: old
-- why:  received_at never goes back along positions, so an instant names the last old one.
SELECT log_position_at(%(cutoff)s::timestamptz),
       (SELECT coalesce(max(last_position), 0) FROM audit_seals);
