-- name: become_reader
-- why:  The connection that listens may do no more than a reader may.
SET ROLE penstock_reader;

-- name: listen
-- why:  One short message per commit wakes the live stream; it then reads by position, so losing one costs a second at most.
LISTEN penstock_events;
