-- Triggers: definitions with every version, the passes that judged events, deliveries, limits, pauses.
--
-- A pass is one transaction under the lock of `trigger_cursor`. Everything it consumed (positions,
-- acts, ended runs, versions, settings) is recorded with its number, and so is everything it decided.
-- The same pure code over the records gives the same decisions; triggers/host keeps that promise.

-- One row: the lock that lets passes take turns, how far they came, and the instant of the last one.
CREATE TABLE trigger_cursor (
  one         boolean     PRIMARY KEY DEFAULT true CHECK (one),
  position    bigint      NOT NULL,
  pass        bigint      NOT NULL,
  judged_at   timestamptz NOT NULL,   -- never goes back, whatever the clock does
  next_due_at timestamptz             -- when something that waits is due; NULL: nothing waits
) WITH (fillfactor = 10);
-- Triggers act on what happens from now on: history before this migration is not judged.
INSERT INTO trigger_cursor SELECT true, position, 0, 'epoch', NULL FROM head;

CREATE TABLE trigger_passes (
  pass           bigint      PRIMARY KEY,
  judged_at      timestamptz NOT NULL,
  after_position bigint      NOT NULL,
  to_position    bigint      NOT NULL,
  due_limit      integer     NOT NULL,   -- how much of what waited it would take; 0: acts and ends of runs only
  released       bigint[]                -- held events that it judged, in that order, before the new ones
) WITH (fillfactor = 100);
CREATE INDEX trigger_passes_position  ON trigger_passes (to_position, pass);
CREATE INDEX trigger_passes_judged_at ON trigger_passes (judged_at);

-- The limits that were in force from a pass on, as they were configured.
CREATE TABLE trigger_settings (
  first_pass bigint PRIMARY KEY,
  settings   json   NOT NULL
);

-- What operators did, in the pass that heard it.
CREATE TABLE trigger_acts (
  id   bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pass bigint      NOT NULL,
  act  json        NOT NULL,
  by   text        NOT NULL,
  at   timestamptz NOT NULL
);
CREATE INDEX trigger_acts_pass ON trigger_acts (pass);

-- Ends of runs that triggers launched, written in the transaction that ends the run. A pass takes
-- what is there, so the order in which ends are committed does not matter.
CREATE TABLE trigger_run_ends (
  id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id  text        COLLATE "C" NOT NULL,
  run_id     text        COLLATE "C" NOT NULL,
  trigger_id text        COLLATE "C" NOT NULL,
  status     text        COLLATE "C" NOT NULL,
  ended_at   timestamptz NOT NULL DEFAULT now(),
  pass       bigint                               -- NULL until a pass has taken it
) WITH (fillfactor = 70);
CREATE INDEX trigger_run_ends_new  ON trigger_run_ends (id) WHERE pass IS NULL;
CREATE INDEX trigger_run_ends_pass ON trigger_run_ends (pass) WHERE pass IS NOT NULL;

-- Where a launch did not simply become its own run: attached to another, or refused.
CREATE TABLE trigger_launch_outcomes (
  pass        bigint NOT NULL,
  delivery_id text   COLLATE "C" NOT NULL,   -- the triggering one
  attached    text   COLLATE "C",            -- the run it was attached to
  refused     text,                          -- or why there is none
  PRIMARY KEY (pass, delivery_id)
);

CREATE TABLE workflow_event_triggers (
  id            text        COLLATE "C" PRIMARY KEY,
  tenant_id     text        COLLATE "C" NOT NULL,
  workflow_slug text        COLLATE "C" NOT NULL,
  version       integer     NOT NULL CHECK (version > 0),
  status        text        COLLATE "C" NOT NULL CHECK (status IN ('active', 'shadow', 'disabled')),
  name          text        NOT NULL,
  event_type    text        COLLATE "C" NOT NULL,
  event_source  text        COLLATE "C",
  spec          json        NOT NULL,
  created_at    timestamptz NOT NULL,
  created_by    text        NOT NULL,
  updated_at    timestamptz NOT NULL,
  updated_by    text        NOT NULL,
  deleted_at    timestamptz
);
CREATE INDEX workflow_event_triggers_workflow ON workflow_event_triggers (tenant_id, workflow_slug, created_at, id);

-- Every version for ever; deleting a trigger is its last one. A version counts from the pass that
-- first saw it, so a change that is made while a pass runs belongs to the next.
CREATE TABLE workflow_event_trigger_versions (
  trigger_id    text        COLLATE "C" NOT NULL REFERENCES workflow_event_triggers,
  version       integer     NOT NULL CHECK (version > 0),
  tenant_id     text        COLLATE "C" NOT NULL,
  workflow_slug text        COLLATE "C" NOT NULL,
  status        text        COLLATE "C" NOT NULL CHECK (status IN ('active', 'shadow', 'disabled', 'deleted')),
  spec          json        NOT NULL,
  created_at    timestamptz NOT NULL,
  created_by    text        NOT NULL,
  first_pass    bigint,
  PRIMARY KEY (trigger_id, version)
);
CREATE INDEX workflow_event_trigger_versions_new ON workflow_event_trigger_versions (trigger_id) WHERE first_pass IS NULL;
CREATE TABLE trigger_revision (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  revision bigint  NOT NULL
) WITH (fillfactor = 10);
INSERT INTO trigger_revision VALUES (true, 0);
CREATE FUNCTION bump_trigger_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE trigger_revision SET revision = revision + 1;
  PERFORM pg_notify('penstock_triggers', '');
  RETURN NULL;
END $$;
CREATE TRIGGER workflow_event_trigger_versions_revision AFTER INSERT ON workflow_event_trigger_versions
  FOR EACH STATEMENT EXECUTE FUNCTION bump_trigger_revision();

-- One event at one trigger, as the newest pass that touched it left it.
CREATE TABLE workflow_trigger_deliveries (
  id              text        COLLATE "C" PRIMARY KEY,
  tenant_id       text        COLLATE "C" NOT NULL,
  trigger_id      text        COLLATE "C" NOT NULL,
  trigger_version integer     NOT NULL,   -- the version that judged it last
  workflow_slug   text        COLLATE "C" NOT NULL,
  event_id        text        COLLATE "C" NOT NULL,
  event_position  bigint      NOT NULL,
  event_type      text        COLLATE "C" NOT NULL,
  event_source    text        COLLATE "C" NOT NULL,
  correlation_id  text        COLLATE "C",
  status          text        COLLATE "C" NOT NULL,
  stage           text        COLLATE "C" NOT NULL,
  reason          text        COLLATE "C",
  created_at      timestamptz NOT NULL,
  updated_at      timestamptz NOT NULL,
  first_pass      bigint      NOT NULL,
  last_pass       bigint      NOT NULL,
  ticket          bigint      NOT NULL,   -- its place in line
  shadow          boolean     NOT NULL,
  role            text        COLLATE "C",
  attempts        integer     NOT NULL,
  last_error      text,
  workflow_run_id text        COLLATE "C",
  run_key         text        COLLATE "C",
  parameters      json,
  dedupe_key      text        COLLATE "C",
  group_key       text        COLLATE "C",
  group_id        text        COLLATE "C",
  next_attempt_at timestamptz,
  throttled_until timestamptz,
  retry_state     text        COLLATE "C" NOT NULL,
  retry_attempts  integer     NOT NULL,
  retry_metadata  json        NOT NULL
) WITH (fillfactor = 85);
-- Once per trigger and event; also the way to the newest deliveries of a trigger.
CREATE UNIQUE INDEX workflow_trigger_deliveries_once ON workflow_trigger_deliveries (trigger_id, event_position);
CREATE INDEX workflow_trigger_deliveries_event ON workflow_trigger_deliveries (tenant_id, event_id);
-- A key is held by one delivery at a time, whatever the evaluator thinks.
CREATE UNIQUE INDEX workflow_trigger_deliveries_key ON workflow_trigger_deliveries (trigger_id, shadow, dedupe_key)
  WHERE dedupe_key IS NOT NULL AND status IN ('pending', 'matched', 'throttled', 'launched');
-- What waits, which a host reads when it starts.
CREATE INDEX workflow_trigger_deliveries_waiting ON workflow_trigger_deliveries (trigger_id, ticket) WHERE status IN ('pending', 'throttled', 'failed');
-- The loop guard counts launches of a trigger in one correlation, and tells of a loop once.
CREATE INDEX workflow_trigger_deliveries_chain ON workflow_trigger_deliveries (trigger_id, correlation_id)
  WHERE correlation_id IS NOT NULL AND (status IN ('launched', 'matched') OR reason = 'loop');
-- The throttle asks when a trigger launched; one delivery of every launch tells.
CREATE INDEX workflow_trigger_deliveries_times ON workflow_trigger_deliveries (trigger_id, updated_at)
  WHERE role IN ('triggered', 'attached') AND status IN ('launched', 'matched');

CREATE TABLE workflow_trigger_delivery_history (
  delivery_id     text        COLLATE "C" NOT NULL,
  pass            bigint      NOT NULL,
  judged_at       timestamptz NOT NULL,
  trigger_version integer     NOT NULL,
  attempt         integer     NOT NULL,
  status          text        COLLATE "C" NOT NULL,
  stage           text        COLLATE "C" NOT NULL,
  reason          text        COLLATE "C",
  detail          json        NOT NULL,
  PRIMARY KEY (delivery_id, pass)
);

-- Events that no trigger has seen yet, because their source must wait. Rows stay when they are
-- released: they tell which pass judged the event.
CREATE TABLE event_ingress_retries (
  position        bigint      PRIMARY KEY,
  event_id        text        COLLATE "C" NOT NULL,
  tenant_id       text        COLLATE "C" NOT NULL,
  source          text        COLLATE "C" NOT NULL,
  held_pass       bigint      NOT NULL,
  created_at      timestamptz NOT NULL,
  last_error      text        NOT NULL,   -- rate_limit, or what the operator said
  next_attempt_at timestamptz,
  attempts        integer     NOT NULL,
  retry_state     text        COLLATE "C" NOT NULL,
  released_pass   bigint,
  metadata        json        NOT NULL,
  updated_at      timestamptz NOT NULL
) WITH (fillfactor = 85);
CREATE INDEX event_ingress_retries_waiting ON event_ingress_retries (position) WHERE released_pass IS NULL AND retry_state IN ('scheduled', 'pending');
CREATE INDEX event_ingress_retries_event ON event_ingress_retries (tenant_id, event_id);

-- Runs that triggers launched and that have not ended.
CREATE TABLE trigger_active_runs (
  run_id     text COLLATE "C" PRIMARY KEY,
  trigger_id text COLLATE "C" NOT NULL,
  group_key  text COLLATE "C"
);

-- What must wait, and what was counted to decide so.
CREATE TABLE event_scheduler_source_pauses (
  tenant_id    text        COLLATE "C" NOT NULL,
  source       text        COLLATE "C" NOT NULL,
  paused_at    timestamptz NOT NULL,
  paused_until timestamptz,            -- NULL: until somebody resumes it
  reason       text        NOT NULL,
  details      json        NOT NULL,
  by           text,                   -- NULL: the rate limit did it
  PRIMARY KEY (tenant_id, source)
);
CREATE TABLE event_scheduler_source_windows (
  tenant_id text          COLLATE "C" NOT NULL,
  source    text          COLLATE "C" NOT NULL,
  at        timestamptz[] NOT NULL,
  counts    integer[]     NOT NULL,
  PRIMARY KEY (tenant_id, source)
) WITH (fillfactor = 50);
CREATE TABLE event_scheduler_trigger_pauses (
  trigger_id   text        COLLATE "C" PRIMARY KEY,
  paused_at    timestamptz NOT NULL,
  paused_until timestamptz,            -- NULL: until somebody resumes it
  reason       text        NOT NULL,
  failures     integer     NOT NULL,
  by           text                    -- NULL: the breaker did it
);
CREATE TABLE event_scheduler_trigger_failures (
  id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  trigger_id   text        COLLATE "C" NOT NULL,
  failure_time timestamptz NOT NULL,
  reason       text        NOT NULL
);
CREATE INDEX event_scheduler_trigger_failures_trigger ON event_scheduler_trigger_failures (trigger_id, id);

-- Counters since the beginning, for health and metrics.
CREATE TABLE event_scheduler_source_metrics (
  tenant_id     text        COLLATE "C" NOT NULL,
  source        text        COLLATE "C" NOT NULL,
  total         bigint      NOT NULL,
  throttled     bigint      NOT NULL,
  dropped       bigint      NOT NULL,
  failures      bigint      NOT NULL,
  total_lag_ms  bigint      NOT NULL,
  last_lag_ms   bigint      NOT NULL,
  max_lag_ms    bigint      NOT NULL,
  last_event_at timestamptz,
  PRIMARY KEY (tenant_id, source)
) WITH (fillfactor = 50);
CREATE TABLE event_scheduler_trigger_metrics (
  trigger_id             text        COLLATE "C" PRIMARY KEY,
  workflow_definition_id text        COLLATE "C" NOT NULL,   -- the slug of the workflow
  count_filtered         bigint      NOT NULL,
  count_matched          bigint      NOT NULL,
  count_launched         bigint      NOT NULL,
  count_throttled        bigint      NOT NULL,
  count_skipped          bigint      NOT NULL,
  count_failed           bigint      NOT NULL,
  count_paused           bigint      NOT NULL,
  count_dead             bigint      NOT NULL,
  last_status            text        COLLATE "C",
  last_updated_at        timestamptz NOT NULL,
  last_error             text
) WITH (fillfactor = 50);

ALTER TABLE workflow_event_triggers         ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_event_trigger_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_trigger_deliveries     ENABLE ROW LEVEL SECURITY;
ALTER TABLE event_ingress_retries           ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON workflow_event_triggers         FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON workflow_event_trigger_versions FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON workflow_trigger_deliveries     FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON event_ingress_retries           FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
GRANT SELECT ON workflow_event_triggers, workflow_event_trigger_versions, workflow_trigger_deliveries, event_ingress_retries, trigger_cursor TO penstock_reader;
