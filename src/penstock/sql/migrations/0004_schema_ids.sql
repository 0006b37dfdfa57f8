-- A number for every schema version, and the history of the registry.
--
-- Tools that speak the Confluent dialect know a schema by one number; it never changes and is never
-- given twice.
ALTER TABLE event_schema_registry ADD COLUMN id integer GENERATED ALWAYS AS IDENTITY UNIQUE;

-- Every state that a version was ever in. The registry as of an instant is, of each version, the last
-- change by then. Written by a trigger, so that no way to change the registry can forget it.
CREATE TABLE event_schema_history (
  change      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id          integer     NOT NULL,
  event_type  text        COLLATE "C" NOT NULL,
  version     integer     NOT NULL,
  status      text        NOT NULL,
  schema      json        NOT NULL,
  schema_hash text        COLLATE "C" NOT NULL,
  metadata    jsonb       NOT NULL,
  created_at  timestamptz NOT NULL,
  created_by  text        NOT NULL,
  updated_at  timestamptz NOT NULL,
  updated_by  text        NOT NULL
);
CREATE INDEX event_schema_history_version ON event_schema_history (event_type, version, change);
CREATE TRIGGER event_schema_history_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON event_schema_history
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION keep_schema_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event_schema_history (id, event_type, version, status, schema, schema_hash, metadata,
                                    created_at, created_by, updated_at, updated_by)
  VALUES (NEW.id, NEW.event_type, NEW.version, NEW.status, NEW.schema, NEW.schema_hash, NEW.metadata,
          NEW.created_at, NEW.created_by, NEW.updated_at, NEW.updated_by);
  RETURN NULL;
END $$;
CREATE TRIGGER event_schema_registry_history AFTER INSERT OR UPDATE ON event_schema_registry
  FOR EACH ROW EXECUTE FUNCTION keep_schema_history();

-- What is there already: how it came to be was not kept, so it counts as it is since its creation.
INSERT INTO event_schema_history (id, event_type, version, status, schema, schema_hash, metadata,
                                  created_at, created_by, updated_at, updated_by)
SELECT id, event_type, version, status, schema, schema_hash, metadata,
       created_at, created_by, created_at, created_by
  FROM event_schema_registry
 ORDER BY created_at, event_type, version;
