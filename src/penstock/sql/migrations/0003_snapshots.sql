-- Time travel: which position an instant names, and snapshots of states folded from events.

-- received_at never goes back along positions, so the place of an instant is found by halving the
-- log: twenty steps through the primary key for a million events, and no index to keep on every
-- insert. It looks at all tenants, hence the owner's rights; a position is all it gives away.
CREATE FUNCTION log_position_at(instant timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  low     bigint;        -- everything up to here was received by then
  high    bigint;        -- everything from here on was not
  middle  bigint;
  found_position bigint;
  found_at       timestamptz;
BEGIN
  SELECT coalesce(min(e.position) - 1, 0), coalesce(max(e.position) + 1, 1)
    INTO low, high FROM workflow_events AS e;
  WHILE high - low > 1 LOOP
    middle := low + (high - low) / 2;
    SELECT e.position, e.received_at INTO found_position, found_at
      FROM workflow_events AS e
     WHERE e.position > low AND e.position <= middle ORDER BY e.position DESC LIMIT 1;
    IF found_position IS NULL OR found_at <= instant THEN
      low := middle;
    ELSE
      high := found_position;
    END IF;
  END LOOP;
  SELECT max(e.position) INTO found_position FROM workflow_events AS e WHERE e.position <= low;
  RETURN coalesce(found_position, 0);
END $$;

-- When the log reached a position; NULL before the first event.
CREATE FUNCTION log_instant_of(place bigint) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT e.received_at FROM workflow_events AS e
   WHERE e.position <= place ORDER BY e.position DESC LIMIT 1
$$;

-- A boundary that somebody asks about: which events, folded by which reducer. Unused ones are
-- forgotten with their snapshots.
CREATE TABLE state_boundaries (
  tenant_id  text        COLLATE "C" NOT NULL,
  boundary   text        COLLATE "C" NOT NULL,   -- SHA-256 of the definition, in hex
  reducer    text        COLLATE "C" NOT NULL,   -- its name and version
  definition jsonb       NOT NULL,
  used_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, boundary, reducer)
);

-- What a boundary's events up to a position fold to. A cache: every row can be made again from the
-- log, and deleting them all changes no answer.
CREATE TABLE state_snapshots (
  tenant_id text        COLLATE "C" NOT NULL,
  boundary  text        COLLATE "C" NOT NULL,
  reducer   text        COLLATE "C" NOT NULL,
  position  bigint      NOT NULL,
  events    bigint      NOT NULL,   -- folded into the state
  state     jsonb       NOT NULL,
  made_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, boundary, reducer, position),
  FOREIGN KEY (tenant_id, boundary, reducer) REFERENCES state_boundaries ON DELETE CASCADE
);

ALTER TABLE state_boundaries ENABLE ROW LEVEL SECURITY;
ALTER TABLE state_snapshots  ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON state_boundaries FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));
CREATE POLICY one_tenant ON state_snapshots  FOR SELECT TO penstock_reader USING (tenant_id = current_setting('penstock.tenant', true));

REVOKE EXECUTE ON FUNCTION log_position_at(timestamptz), log_instant_of(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION log_position_at(timestamptz), log_instant_of(bigint) TO penstock_reader, penstock_ingest;
GRANT SELECT ON state_boundaries, state_snapshots TO penstock_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON state_boundaries, state_snapshots TO penstock_ingest;
