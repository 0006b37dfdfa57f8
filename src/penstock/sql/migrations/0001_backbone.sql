-- The backbone: the event log with its order, dead letters, the ledger, the registry, access.
--
-- Roles are shared by every database of a server, so they are made only when missing. COPY needs a
-- role that row security does not apply to; where we may not make one, the owner of the tables
-- writes instead, and the triggers below still refuse every change.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'penstock_reader') THEN
    BEGIN
      CREATE ROLE penstock_reader NOLOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'penstock_ingest') THEN
    BEGIN
      CREATE ROLE penstock_ingest NOLOGIN BYPASSRLS;
    EXCEPTION
      WHEN duplicate_object OR unique_violation THEN NULL;
      WHEN insufficient_privilege THEN CREATE ROLE penstock_ingest NOLOGIN;
    END;
  END IF;
END $$;
GRANT penstock_reader, penstock_ingest TO CURRENT_USER;

-- One row: the lock that orders all writers, the last position given out, and when. received_at
-- never goes back, whatever the clock does, so an instant names a position.
CREATE TABLE head (
  one         boolean     PRIMARY KEY DEFAULT true CHECK (one),
  position    bigint      NOT NULL,
  received_at timestamptz NOT NULL
) WITH (fillfactor = 10);
INSERT INTO head VALUES (true, 0, 'epoch');

CREATE TABLE workflow_events (
  position       bigint      PRIMARY KEY,
  tenant_id      text        COLLATE "C" NOT NULL,
  id             text        COLLATE "C" NOT NULL,
  type           text        COLLATE "C" NOT NULL,
  source         text        COLLATE "C" NOT NULL,
  occurred_at    timestamptz NOT NULL,
  received_at    timestamptz NOT NULL DEFAULT now(),
  payload        jsonb       NOT NULL DEFAULT '{}'::jsonb,
  tags           jsonb       NOT NULL DEFAULT '{}'::jsonb,
  correlation_id text        COLLATE "C",
  causation_id   text        COLLATE "C",
  traceparent    text        COLLATE "C",
  ttl_ms         bigint,
  metadata       jsonb       NOT NULL DEFAULT '{}'::jsonb,
  schema_version integer,
  schema_hash    text        COLLATE "C",
  severity       text        COLLATE "C" NOT NULL,
  severity_rule  text        COLLATE "C" NOT NULL,
  content_hash   bytea       NOT NULL,   -- of what the publisher claimed: equal means duplicate
  hash           bytea       NOT NULL    -- of the row as stored: store/leaf.py says over what
);
CREATE UNIQUE INDEX workflow_events_id          ON workflow_events (tenant_id, id);
CREATE INDEX workflow_events_type               ON workflow_events (tenant_id, type, position);
CREATE INDEX workflow_events_source             ON workflow_events (tenant_id, source, position);
CREATE INDEX workflow_events_correlation        ON workflow_events (tenant_id, correlation_id, position) WHERE correlation_id IS NOT NULL;
CREATE INDEX workflow_events_severity           ON workflow_events (tenant_id, severity, position) WHERE severity <> 'info';
CREATE INDEX workflow_events_occurred_at        ON workflow_events USING brin (occurred_at) WITH (pages_per_range = 16, autosummarize = on);

-- tag is key:value; a key has no colon, so the first colon splits it.
CREATE TABLE event_tags (
  tenant_id text   COLLATE "C" NOT NULL,
  tag       text   COLLATE "C" NOT NULL,
  position  bigint NOT NULL,
  PRIMARY KEY (tenant_id, tag, position)
);

-- The log under the column names of a DCB event store.
CREATE VIEW events WITH (security_invoker = true) AS
  SELECT position, id AS event_id, type AS event_type, occurred_at AS timestamp, tags, metadata,
         payload AS data, received_at AS created_at, tenant_id
    FROM workflow_events;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'PS001';
END $$;
CREATE TRIGGER workflow_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON workflow_events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER event_tags_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON event_tags
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE dead_letters (
  id            text        COLLATE "C" PRIMARY KEY,
  tenant_id     text        COLLATE "C" NOT NULL,
  reason        text        COLLATE "C" NOT NULL,
  detail        text        NOT NULL,
  pointer       text        NOT NULL DEFAULT '',
  type          text        COLLATE "C",
  source        text        COLLATE "C",
  event_id      text        COLLATE "C",
  raw           bytea       NOT NULL,
  via           text        COLLATE "C" NOT NULL,
  first_seen_at timestamptz NOT NULL,
  last_seen_at  timestamptz NOT NULL,
  count         bigint      NOT NULL DEFAULT 1,
  redriven_at   timestamptz,
  redriven_id   text        COLLATE "C"
);
CREATE INDEX dead_letters_newest ON dead_letters (tenant_id, last_seen_at DESC, id DESC);

-- The ledger. A segment row says a segment was settled and must not be settled again; a writer row
-- holds the running totals that /admin/ledger compares with the log's own head.
CREATE TABLE ledger_segments (
  segment    text        COLLATE "C" PRIMARY KEY,
  settled_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ledger_segments_age ON ledger_segments (settled_at);
CREATE TABLE ledger_writers (
  writer   text        COLLATE "C" PRIMARY KEY,
  accepted bigint      NOT NULL,   -- messages this writer has acknowledged, as far as settled segments tell
  settled  bigint      NOT NULL,   -- messages of this writer that were settled
  last_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE TABLE ledger_totals (
  one        boolean PRIMARY KEY DEFAULT true CHECK (one),
  stored     bigint  NOT NULL,
  duplicates bigint  NOT NULL,
  dead       bigint  NOT NULL
) WITH (fillfactor = 10);
INSERT INTO ledger_totals VALUES (true, 0, 0, 0);
CREATE TABLE ledger_sources (
  tenant_id     text        COLLATE "C" NOT NULL,
  source        text        COLLATE "C" NOT NULL,
  stored        bigint      NOT NULL DEFAULT 0,
  duplicates    bigint      NOT NULL DEFAULT 0,
  dead          bigint      NOT NULL DEFAULT 0,
  lag_total_ms  bigint      NOT NULL DEFAULT 0,
  lag_last_ms   bigint      NOT NULL DEFAULT 0,
  lag_max_ms    bigint      NOT NULL DEFAULT 0,
  last_event_at timestamptz,
  PRIMARY KEY (tenant_id, source)
) WITH (fillfactor = 50);
CREATE TABLE ledger_refused (
  tenant_id text   COLLATE "C" NOT NULL,
  via       text   COLLATE "C" NOT NULL,
  reason    text   COLLATE "C" NOT NULL,
  count     bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, via, reason)
);

-- Who may settle segments. A new ingress raises the epoch; an older one is then refused.
CREATE TABLE ingress_epoch (
  one   boolean PRIMARY KEY DEFAULT true CHECK (one),
  epoch bigint  NOT NULL
);
INSERT INTO ingress_epoch VALUES (true, 0);

-- What a running ingress last said about itself, for health and metrics.
CREATE TABLE process_reports (
  part        text        COLLATE "C" PRIMARY KEY,
  report      jsonb       NOT NULL,
  reported_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE event_schema_registry (
  event_type  text        COLLATE "C" NOT NULL,
  version     integer     NOT NULL CHECK (version > 0),
  status      text        NOT NULL CHECK (status IN ('draft', 'active', 'deprecated')),
  schema      json        NOT NULL,
  schema_hash text        COLLATE "C" NOT NULL,
  metadata    jsonb       NOT NULL DEFAULT '{}'::jsonb,
  created_at  timestamptz NOT NULL DEFAULT now(),
  created_by  text        NOT NULL,
  updated_at  timestamptz NOT NULL DEFAULT now(),
  updated_by  text        NOT NULL,
  PRIMARY KEY (event_type, version)
);
CREATE TABLE registry_revision (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  revision bigint  NOT NULL
);
INSERT INTO registry_revision VALUES (true, 0);
CREATE FUNCTION bump_registry_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE registry_revision SET revision = revision + 1;
  PERFORM pg_notify('penstock_registry', '');
  RETURN NULL;
END $$;
CREATE TRIGGER event_schema_registry_revision AFTER INSERT OR UPDATE OR DELETE ON event_schema_registry
  FOR EACH STATEMENT EXECUTE FUNCTION bump_registry_revision();

CREATE TABLE access_tokens (
  id           text        COLLATE "C" PRIMARY KEY,
  name         text        NOT NULL,
  token_hash   bytea       NOT NULL UNIQUE,
  tenant_id    text        COLLATE "C" NOT NULL,
  scopes       text[]      NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  created_by   text        NOT NULL,
  expires_at   timestamptz,
  revoked_at   timestamptz,
  last_used_at timestamptz
);
CREATE TABLE ws_tickets (
  ticket_hash bytea       PRIMARY KEY,
  token_id    text        COLLATE "C" NOT NULL REFERENCES access_tokens (id),
  expires_at  timestamptz NOT NULL
);

-- Readers see one tenant and nothing else, even if a filter of ours were wrong.
ALTER TABLE workflow_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE event_tags      ENABLE ROW LEVEL SECURITY;
ALTER TABLE dead_letters    ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON workflow_events FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON event_tags      FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON dead_letters    FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));

GRANT SELECT ON workflow_events, events, event_tags, dead_letters, head, event_schema_registry, registry_revision TO penstock_reader;
GRANT SELECT, INSERT ON workflow_events, event_tags, ledger_segments TO penstock_ingest;
GRANT SELECT, INSERT, UPDATE ON dead_letters, ledger_writers, ledger_totals, ledger_sources, ledger_refused, process_reports TO penstock_ingest;
GRANT SELECT, UPDATE ON head TO penstock_ingest;
GRANT SELECT ON ingress_epoch, event_schema_registry, registry_revision TO penstock_ingest;
