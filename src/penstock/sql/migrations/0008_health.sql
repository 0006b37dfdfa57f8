-- Health: alerts that were sent, and totals of what is too much to be counted whenever somebody asks.

-- When an alert was last sent. Another about the same thing waits until its window is over.
CREATE TABLE alerts_sent (
  key     text        COLLATE "C" PRIMARY KEY,   -- the kind of alert and what it is about
  event   text        COLLATE "C" NOT NULL,
  sent_at timestamptz NOT NULL
);

-- Totals of everything that ended up to `until`; what ended later is counted by whoever asks.
CREATE TABLE health_edges (
  metric text        COLLATE "C" PRIMARY KEY,
  until  timestamptz NOT NULL
) WITH (fillfactor = 10);
INSERT INTO health_edges VALUES ('workflow_runs', 'epoch'), ('deliveries', 'epoch');
CREATE TABLE health_totals (
  metric  text             COLLATE "C" NOT NULL REFERENCES health_edges,
  label   text             COLLATE "C" NOT NULL,
  bucket  integer          NOT NULL,   -- of how long it took; health/totals.py has the bounds
  count   bigint           NOT NULL,
  seconds double precision NOT NULL,
  PRIMARY KEY (metric, label, bucket)
) WITH (fillfactor = 50);

-- Runs that ended lately, for totals and alerts; this kind of index costs a run's updates nothing.
CREATE INDEX workflow_runs_completed ON workflow_runs USING brin (completed_at) WITH (pages_per_range = 16, autosummarize = on);
