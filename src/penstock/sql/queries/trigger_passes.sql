-- Passes over events: one transaction each, under the lock of the cursor.

-- name: settle_in
-- why:  One plan for good, since each is one walk through known indexes; and nobody waits for ever.
SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false),
       set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),
       set_config('enable_mergejoin', 'off', false), set_config('lock_timeout', '30s', false),
       set_config('idle_in_transaction_session_timeout', '30s', false), set_config('statement_timeout', '120s', false);

-- name: listen_events
-- why:  An event was stored.
LISTEN penstock_events;

-- name: listen_triggers
-- why:  A definition changed, or an operator acted.
LISTEN penstock_triggers;

-- name: listen_run_ends
-- why:  A run that a trigger launched ended.
LISTEN penstock_run_ends;

-- name: lock
-- why:  Passes take turns; whoever gets the lock sees everything that the one before committed.
SELECT pass FROM trigger_cursor FOR UPDATE;

-- name: lock_if_free
-- why:  Whoever finds a pass going on leaves the rest to it: turns would cost each host its memory of the last pass.
SELECT pass FROM trigger_cursor FOR UPDATE SKIP LOCKED;

-- name: look
-- why:  After the lock a statement of its own: its snapshot and its clock are younger than the last commit. Before it, a look that waits for nobody.
SELECT c.pass, c.position, greatest(c.judged_at, clock_timestamp()), c.next_due_at, r.revision, h.position,
       EXISTS (SELECT FROM trigger_run_ends AS e WHERE e.pass IS NULL),
       EXISTS (SELECT FROM workflow_event_trigger_versions AS v WHERE v.first_pass IS NULL),
       (SELECT max(s.first_pass) FROM trigger_settings AS s),
       EXISTS (SELECT FROM trigger_acts AS a WHERE a.pass = c.pass)
  FROM trigger_cursor AS c CROSS JOIN trigger_revision AS r CROSS JOIN head AS h;

-- name: do_not_wait
-- why:  A pass that decides nothing is done again should it be lost, so no disk is waited for, and whoever appends beside it
--       does not wait for its turn at the disk either.
SELECT set_config('synchronous_commit', 'off', true);

-- name: settings
-- why:  Which limits were in force at a pass.
SELECT first_pass, settings::text FROM trigger_settings WHERE first_pass <= %(pass)s ORDER BY first_pass DESC LIMIT 1;

-- name: keep_settings
-- why:  Limits are an input of every pass; they are written down when they change.
INSERT INTO trigger_settings (first_pass, settings) VALUES (%(pass)s, %(settings)s::json);

-- name: take_versions
-- why:  A version counts from the pass that first saw it.
UPDATE workflow_event_trigger_versions SET first_pass = %(pass)s WHERE first_pass IS NULL;

-- name: definitions
-- why:  The newest version that a pass had seen of every trigger, oldest trigger first; deleted ones say so.
SELECT v.trigger_id, v.tenant_id, v.workflow_slug, v.version, v.spec::text, t.created_at, t.created_by, v.created_at, v.created_by, v.status
  FROM workflow_event_triggers AS t
 CROSS JOIN LATERAL (
       SELECT v.* FROM workflow_event_trigger_versions AS v
        WHERE v.trigger_id = t.id AND v.first_pass <= %(pass)s
        ORDER BY v.version DESC LIMIT 1) AS v
 WHERE %(id)s::text IS NULL OR t.id = %(id)s
 ORDER BY t.created_at, t.id;

-- name: take_run_ends
-- why:  Ends are taken as they are found; the order of their ids is the order in which they are heard.
WITH taken AS (
  UPDATE trigger_run_ends SET pass = %(pass)s WHERE pass IS NULL
  RETURNING id, run_id, trigger_id, status, ended_at
)
SELECT run_id, trigger_id, status, ended_at FROM taken ORDER BY id;

-- name: keep_acts
-- why:  What operators did is an input of the pass, and is kept like one.
INSERT INTO trigger_acts (pass, act, by, at)
SELECT %(pass)s, a.act::json, a.by, a.at
  FROM unnest(%(acts)s::text[], %(bys)s::text[], %(ats)s::timestamptz[]) WITH ORDINALITY AS a (act, by, at, n)
 ORDER BY a.n;

-- name: keep_outcomes
-- why:  A launch that did not become its own run is an input too: it was decided elsewhere.
INSERT INTO trigger_launch_outcomes (pass, delivery_id, attached, refused)
SELECT %(pass)s, o.delivery_id, o.attached, o.refused
  FROM unnest(%(delivery_ids)s::text[], %(attached)s::text[], %(refused)s::text[]) AS o (delivery_id, attached, refused);

-- name: record
-- why:  The pass, with what it read, so that it can be run again.
INSERT INTO trigger_passes (pass, judged_at, after_position, to_position, due_limit, released)
VALUES (%(pass)s, %(judged_at)s, %(after)s, %(to)s, %(due_limit)s, %(released)s::bigint[]);

-- name: advance
-- why:  The cursor moves in the transaction of everything it stands for.
UPDATE trigger_cursor SET position = %(to)s, pass = %(pass)s, judged_at = %(judged_at)s, next_due_at = %(next_due_at)s;

-- name: notify
-- why:  Streams and other workers hear what changed; they read, so the payload is a hint.
SELECT pg_notify('penstock_triggers', %(payload)s);
