-- Workflows: definitions with every version, runs and their steps, the queue, schedules, services.
--
-- `jobs` is transient: a row is one attempt of a step that waits or runs, and goes when it ends. What
-- happened is in workflow_runs, workflow_run_steps, job_runs and workflow_execution_history. Every
-- instant here comes from the database's clock. Locks are taken in one order: runs by id, then their
-- jobs; whoever begins at the jobs passes over what is locked.

CREATE TABLE workflow_definitions (
  id         text        COLLATE "C" PRIMARY KEY,
  tenant_id  text        COLLATE "C" NOT NULL,
  slug       text        COLLATE "C" NOT NULL,
  name       text        NOT NULL,
  version    integer     NOT NULL CHECK (version > 0),
  is_active  boolean     NOT NULL DEFAULT true,   -- a disabled workflow launches nothing new
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text        NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text        NOT NULL,
  deleted_at timestamptz
);
CREATE UNIQUE INDEX workflow_definitions_slug ON workflow_definitions (tenant_id, slug) WHERE deleted_at IS NULL;

-- Every version for ever: a run goes on under the version it began with.
CREATE TABLE workflow_definition_versions (
  definition_id text        COLLATE "C" NOT NULL REFERENCES workflow_definitions,
  version       integer     NOT NULL CHECK (version > 0),
  tenant_id     text        COLLATE "C" NOT NULL,
  definition    json        NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  created_by    text        NOT NULL,
  PRIMARY KEY (definition_id, version)
);

CREATE TABLE workflow_runs (
  id                 text        COLLATE "C" PRIMARY KEY,
  tenant_id          text        COLLATE "C" NOT NULL,
  definition_id      text        COLLATE "C" NOT NULL,
  definition_version integer     NOT NULL,
  workflow_slug      text        COLLATE "C" NOT NULL,
  status             text        COLLATE "C" NOT NULL CHECK (status IN ('pending', 'running', 'succeeded', 'failed', 'canceled')),
  rev                integer     NOT NULL DEFAULT 0,   -- goes up with every change of its steps
  watchers           text[]      COLLATE "C" NOT NULL DEFAULT '{}',   -- the triggers that want to hear of its end
  run_key            text        COLLATE "C",
  run_key_normalized text        COLLATE "C",
  parameters         json        NOT NULL,
  shared             json        NOT NULL,
  output             json,
  failure_reason     text        COLLATE "C",
  error_message      text,
  current_step_id    text        COLLATE "C",
  triggered_by       text        NOT NULL,
  trigger            json,
  trigger_id         text        COLLATE "C",
  partition_key      text        COLLATE "C",
  correlation_id     text        COLLATE "C" NOT NULL,
  causation_id       text        COLLATE "C",
  depth              integer     NOT NULL DEFAULT 0,
  replay_of          text        COLLATE "C",
  created_at         timestamptz NOT NULL DEFAULT now(),
  started_at         timestamptz,
  completed_at       timestamptz,
  updated_at         timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);
-- While it is active, a run has its key for itself.
CREATE UNIQUE INDEX workflow_runs_key ON workflow_runs (definition_id, run_key_normalized)
  WHERE run_key_normalized IS NOT NULL AND status IN ('pending', 'running');
CREATE INDEX workflow_runs_newest      ON workflow_runs (tenant_id, workflow_slug, created_at DESC, id DESC);
CREATE INDEX workflow_runs_correlation ON workflow_runs (tenant_id, correlation_id);
CREATE INDEX workflow_runs_active      ON workflow_runs (tenant_id, created_at) WHERE status IN ('pending', 'running');

-- What belongs to a run is only ever written by who holds the run's lock, so no foreign key says it
-- again: each would lock the run once more for every row.
-- A step is named by its run and its address: `load`, or `load[3]` for the fourth child of a fan-out.
CREATE TABLE workflow_run_steps (
  run_id           text        COLLATE "C" NOT NULL,
  address          text        COLLATE "C" NOT NULL,
  place            integer     NOT NULL,   -- in the order they were made
  tenant_id        text        COLLATE "C" NOT NULL,
  step_id          text        COLLATE "C" NOT NULL,
  fanout_index     integer,
  status           text        COLLATE "C" NOT NULL CHECK (status IN ('pending', 'running', 'succeeded', 'failed', 'skipped', 'canceled')),
  attempt          integer     NOT NULL DEFAULT 1,
  input            json,
  output           json,
  failure_reason   text        COLLATE "C",
  error_message    text,
  resolution_error boolean     NOT NULL DEFAULT false,
  job_run_id       text        COLLATE "C",
  next_attempt_at  timestamptz,
  retry_state      text        COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (retry_state IN ('pending', 'scheduled', 'completed', 'cancelled')),
  retry_attempts   integer     NOT NULL DEFAULT 0,
  retry_metadata   jsonb,
  created_at       timestamptz NOT NULL DEFAULT now(),
  started_at       timestamptz,
  completed_at     timestamptz,
  updated_at       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (run_id, address)
) WITH (fillfactor = 70);
CREATE INDEX workflow_run_steps_retries ON workflow_run_steps (tenant_id, next_attempt_at) WHERE retry_state = 'scheduled';

-- One execution of a step, written when it ends; a running one is a row of `jobs`.
CREATE TABLE job_runs (
  run_id         text        COLLATE "C" NOT NULL,
  address        text        COLLATE "C" NOT NULL,
  number         integer     NOT NULL,
  tenant_id      text        COLLATE "C" NOT NULL,
  job_slug       text        COLLATE "C" NOT NULL,
  kind           text        COLLATE "C" NOT NULL,
  attempt        integer     NOT NULL,
  status         text        COLLATE "C" NOT NULL CHECK (status IN ('succeeded', 'failed', 'canceled', 'expired')),
  failure_reason text        COLLATE "C",
  error_message  text,
  logs           text,
  worker         text        COLLATE "C",
  queued_at      timestamptz NOT NULL,
  started_at     timestamptz NOT NULL,
  completed_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (run_id, address, number)
);
CREATE INDEX job_runs_newest ON job_runs USING brin (completed_at) WITH (pages_per_range = 16, autosummarize = on);

CREATE TABLE workflow_execution_history (
  id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id  text        COLLATE "C" NOT NULL,
  run_id     text        COLLATE "C" NOT NULL,
  address    text        COLLATE "C",
  event_type text        COLLATE "C" NOT NULL,
  payload    jsonb       NOT NULL DEFAULT '{}'::jsonb,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX workflow_execution_history_run ON workflow_execution_history (run_id, id);

-- Who works. Its row says when it was last heard; the session lock on its id goes when it dies.
CREATE TABLE workflow_workers (
  id           integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         text        NOT NULL,
  started_at   timestamptz NOT NULL DEFAULT now(),
  heartbeat_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

CREATE TABLE jobs (
  id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id  text        COLLATE "C" NOT NULL,
  queue      text        COLLATE "C" NOT NULL DEFAULT 'workflow',
  priority   smallint    NOT NULL DEFAULT 0,      -- the lowest first
  run_at     timestamptz NOT NULL DEFAULT now(),
  state      "char"      NOT NULL DEFAULT 'w',    -- w: waits, a: active
  fence      integer     NOT NULL DEFAULT 0,      -- how often it was claimed; an older one is refused
  worker     integer,
  run_id     text        COLLATE "C" NOT NULL,
  address    text        COLLATE "C" NOT NULL,
  attempt    integer     NOT NULL,
  number     integer     NOT NULL DEFAULT 0,      -- of its job run; polls of one execution share it
  lost       smallint    NOT NULL DEFAULT 0,      -- how many workers died of it, or with it
  token      json,                                -- what its executor waits for
  queued_at  timestamptz NOT NULL DEFAULT now(),
  claimed_at timestamptz,
  started_at timestamptz                          -- of the execution, over all its polls
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_waiting ON jobs (queue, priority, run_at, id) WHERE state = 'w';
CREATE INDEX jobs_active  ON jobs (worker) WHERE state = 'a';
CREATE UNIQUE INDEX jobs_step ON jobs (run_id, address);

CREATE TABLE workflow_schedules (
  id                       text        COLLATE "C" PRIMARY KEY,
  tenant_id                text        COLLATE "C" NOT NULL,
  workflow_slug            text        COLLATE "C" NOT NULL,
  name                     text,
  description              text,
  cron                     text        NOT NULL,
  timezone                 text        NOT NULL DEFAULT 'UTC',
  parameters               json        NOT NULL,
  start_window             timestamptz,
  end_window               timestamptz,
  catch_up                 text        COLLATE "C" NOT NULL CHECK (catch_up IN ('none', 'last', 'all')),
  next_run_at              timestamptz,            -- NULL: it never fires again
  last_materialized_window jsonb,
  catchup_cursor           timestamptz,            -- the last slot that was dealt with
  is_active                boolean     NOT NULL DEFAULT true,
  last_error               text,
  version                  integer     NOT NULL DEFAULT 1,
  created_at               timestamptz NOT NULL DEFAULT now(),
  created_by               text        NOT NULL,
  updated_at               timestamptz NOT NULL DEFAULT now(),
  updated_by               text        NOT NULL
);
CREATE INDEX workflow_schedules_due      ON workflow_schedules (next_run_at) WHERE is_active AND next_run_at IS NOT NULL;
CREATE INDEX workflow_schedules_workflow ON workflow_schedules (tenant_id, workflow_slug);

CREATE TABLE services (
  tenant_id    text        COLLATE "C" NOT NULL,
  slug         text        COLLATE "C" NOT NULL,
  display_name text        NOT NULL DEFAULT '',
  kind         text        NOT NULL DEFAULT 'external',
  base_url     text        NOT NULL,
  status       text        COLLATE "C" NOT NULL DEFAULT 'unknown' CHECK (status IN ('unknown', 'healthy', 'degraded', 'unreachable')),
  health_path  text,
  headers      jsonb       NOT NULL DEFAULT '{}'::jsonb,
  metadata     jsonb       NOT NULL DEFAULT '{}'::jsonb,
  created_at   timestamptz NOT NULL DEFAULT now(),
  created_by   text        NOT NULL,
  updated_at   timestamptz NOT NULL DEFAULT now(),
  updated_by   text        NOT NULL,
  PRIMARY KEY (tenant_id, slug)
);

-- Events that commit with the change they tell of; the relay takes them to the log and deletes them.
-- That a run reached a state is noted as just that, and written out by the relay: what the event says
-- never changes once the state is reached, and a run's transactions stay short.
CREATE TABLE event_outbox (
  id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id  text        COLLATE "C" NOT NULL,
  event      jsonb,                               -- as it is published: the envelope in wire form
  run_id     text        COLLATE "C",             -- or: this run reached
  run_status text        COLLATE "C",             -- this state
  created_at timestamptz NOT NULL DEFAULT now(),
  refused    text,                                -- why the log would not take it; it stays for people
  CHECK (event IS NOT NULL OR (run_id IS NOT NULL AND run_status IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX event_outbox_new ON event_outbox (id) WHERE refused IS NULL;

-- An instant as the wire writes it.
CREATE FUNCTION wire_instant(at timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

-- The event that tells of a state that a run has reached. It is a function of the two and of nothing
-- that changes later, so however often it is sent it is one event.
CREATE FUNCTION run_event(run workflow_runs, state text) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
  'id', 'run-' || run.id || '-' || state,
  'type', 'workflow.run.' || state,
  'source', 'core.workflows',
  'occurredAt', wire_instant(CASE state WHEN 'pending' THEN run.created_at WHEN 'running' THEN run.started_at ELSE run.completed_at END),
  'correlationId', run.correlation_id,
  'causationId', run.causation_id)) || jsonb_build_object(
  'payload', jsonb_strip_nulls(jsonb_build_object(
    'workflowRunId', run.id,
    'workflowDefinitionId', run.definition_id,
    'workflowSlug', run.workflow_slug,
    'status', state,
    'runKey', run.run_key,
    'partitionKey', run.partition_key,
    'triggeredBy', run.triggered_by,
    'startedAt', CASE WHEN state <> 'pending' THEN wire_instant(run.started_at) END)) || CASE
      WHEN state IN ('pending', 'running') THEN '{}'::jsonb
      ELSE jsonb_strip_nulls(jsonb_build_object(
        'completedAt', wire_instant(run.completed_at),
        'durationMs', trunc(extract(epoch FROM run.completed_at - run.started_at) * 1000)::bigint,
        'currentStepId', run.current_step_id,
        'errorMessage', run.error_message)) END || CASE
      WHEN state = 'pending' AND octet_length(run.parameters::text) < 65536 THEN jsonb_build_object('parameters', run.parameters)
      WHEN state = 'succeeded' AND octet_length(run.output::text) < 65536 THEN jsonb_build_object('output', run.output)
      ELSE '{}'::jsonb END);

ALTER TABLE workflow_definitions         ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_definition_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_runs                ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_run_steps           ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_runs                     ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_execution_history   ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_schedules           ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON workflow_definitions         FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON workflow_definition_versions FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON workflow_runs                FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON workflow_run_steps           FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON job_runs                     FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON workflow_execution_history   FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON workflow_schedules           FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
GRANT SELECT ON workflow_definitions, workflow_definition_versions, workflow_runs, workflow_run_steps, job_runs, workflow_execution_history, workflow_schedules TO penstock_reader;
