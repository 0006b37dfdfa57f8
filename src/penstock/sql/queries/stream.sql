-- name: become_reader
-- why:  The connection that listens may do no more than a reader may.
SET ROLE penstock_reader;

-- name: listen
-- why:  One short message per commit wakes the live stream; it then reads by position, so losing one costs a second at most.
LISTEN penstock_events;

-- name: listen_triggers
-- why:  A pass that carries an operator's act tells of the retries it touched.
LISTEN penstock_triggers;

-- name: listen_retries
-- why:  So do the steps of workflows.
LISTEN penstock_retries;
