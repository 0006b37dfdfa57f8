-- name: parts
-- why:  Ages are told by the database's clock, the one that also stamped the reports.
SELECT part, report, reported_at, greatest(0, extract(epoch FROM now() - reported_at))::float8 AS age_s
  FROM process_reports ORDER BY part;

-- name: dead_letters
-- why:  What waits in quarantine, by reason; redriven letters are settled.
SELECT reason, count(*) FROM dead_letters WHERE redriven_at IS NULL GROUP BY reason ORDER BY reason;

-- name: report
-- why:  One row per part: only the latest word counts, stamped by the database's clock.
INSERT INTO process_reports (part, report, reported_at) VALUES (%(part)s, %(report)s::jsonb, now())
ON CONFLICT (part) DO UPDATE SET report = excluded.report, reported_at = excluded.reported_at;
