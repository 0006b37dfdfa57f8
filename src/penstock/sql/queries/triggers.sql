-- Definitions of triggers. `workflow_event_triggers` shows the newest version, the versions table all.

-- name: create
-- why:  A definition and its first version are one act at one instant, so the clock is read once.
WITH clock AS (SELECT clock_timestamp() AS at), made AS (
  INSERT INTO workflow_event_triggers (id, tenant_id, workflow_slug, version, status, name, event_type, event_source, spec,
                                       created_at, created_by, updated_at, updated_by)
  SELECT %(id)s, %(tenant)s, %(workflow)s, 1, %(status)s, %(name)s, %(event_type)s, %(event_source)s, %(spec)s::json,
         clock.at, %(by)s, clock.at, %(by)s FROM clock
  RETURNING *
)
INSERT INTO workflow_event_trigger_versions (trigger_id, version, tenant_id, workflow_slug, status, spec, created_at, created_by)
SELECT made.id, made.version, made.tenant_id, made.workflow_slug, made.status, made.spec, made.updated_at, made.updated_by FROM made
RETURNING created_at;

-- name: lock
-- why:  Two people who change one trigger take turns, and the second sees what the first did.
SELECT t.id, t.tenant_id, t.workflow_slug, t.version, t.spec::text, t.created_at, t.created_by, t.updated_at, t.updated_by
  FROM workflow_event_triggers AS t
 WHERE t.tenant_id = %(tenant)s AND t.id = %(id)s AND t.deleted_at IS NULL
   FOR UPDATE;

-- name: change
-- why:  The new version stands in both tables; instants of versions never go back.
WITH changed AS (
  UPDATE workflow_event_triggers AS t
     SET version = t.version + 1, status = %(status)s, name = %(name)s, event_type = %(event_type)s,
         event_source = %(event_source)s, spec = %(spec)s::json,
         updated_at = greatest(clock_timestamp(), t.updated_at + interval '1 microsecond'), updated_by = %(by)s
   WHERE t.tenant_id = %(tenant)s AND t.id = %(id)s
  RETURNING t.*
)
INSERT INTO workflow_event_trigger_versions (trigger_id, version, tenant_id, workflow_slug, status, spec, created_at, created_by)
SELECT changed.id, changed.version, changed.tenant_id, changed.workflow_slug, changed.status, changed.spec, changed.updated_at, changed.updated_by
  FROM changed
RETURNING created_at;

-- name: delete
-- why:  A deleted trigger leaves its versions and deliveries; that it is gone is a version too.
WITH clock AS (SELECT clock_timestamp() AS at), gone AS (
  UPDATE workflow_event_triggers AS t
     SET version = t.version + 1, status = 'disabled', updated_by = %(by)s,
         updated_at = greatest(clock.at, t.updated_at + interval '1 microsecond'),
         deleted_at = greatest(clock.at, t.updated_at + interval '1 microsecond')
    FROM clock
   WHERE t.tenant_id = %(tenant)s AND t.id = %(id)s AND t.deleted_at IS NULL
  RETURNING t.*
)
INSERT INTO workflow_event_trigger_versions (trigger_id, version, tenant_id, workflow_slug, status, spec, created_at, created_by)
SELECT gone.id, gone.version, gone.tenant_id, gone.workflow_slug, 'deleted', gone.spec, gone.updated_at, gone.updated_by FROM gone
RETURNING version;

-- name: get
-- why:  An id is unique, and shows itself only to its own tenant.
SELECT t.id, t.tenant_id, t.workflow_slug, t.version, t.spec::text, t.created_at, t.created_by, t.updated_at, t.updated_by
  FROM workflow_event_triggers AS t
 WHERE t.tenant_id = %(tenant)s AND t.id = %(id)s AND t.deleted_at IS NULL
   AND (%(workflow)s::text IS NULL OR t.workflow_slug = %(workflow)s);

-- name: list
-- why:  Oldest first, the order in which triggers judge an event.
SELECT t.id, t.tenant_id, t.workflow_slug, t.version, t.spec::text, t.created_at, t.created_by, t.updated_at, t.updated_by
  FROM workflow_event_triggers AS t
 WHERE t.deleted_at IS NULL AND (%(tenant)s::text IS NULL OR t.tenant_id = %(tenant)s)
   AND (%(workflow)s::text IS NULL OR t.workflow_slug = %(workflow)s)
   AND (%(status)s::text IS NULL OR t.status = %(status)s)
   AND (%(event_type)s::text IS NULL OR t.event_type = %(event_type)s)
   AND (%(event_source)s::text IS NULL OR t.event_source = %(event_source)s)
 ORDER BY t.created_at, t.id;

-- name: versions
-- why:  Versions are kept for ever, those of deleted triggers too.
SELECT v.trigger_id, v.tenant_id, v.workflow_slug, v.version, v.spec::text, t.created_at, t.created_by, v.created_at, v.created_by, v.status
  FROM workflow_event_trigger_versions AS v
  JOIN workflow_event_triggers AS t ON t.id = v.trigger_id
 WHERE v.tenant_id = %(tenant)s AND v.trigger_id = %(id)s
 ORDER BY v.version;

-- name: as_of
-- why:  At an instant, each trigger is the newest version made by then, unless that says it is gone.
SELECT v.trigger_id, v.tenant_id, v.workflow_slug, v.version, v.spec::text, t.created_at, t.created_by, v.created_at, v.created_by, v.status
  FROM workflow_event_triggers AS t
 CROSS JOIN LATERAL (
       SELECT v.* FROM workflow_event_trigger_versions AS v
        WHERE v.trigger_id = t.id AND v.created_at <= %(instant)s::timestamptz
        ORDER BY v.version DESC LIMIT 1) AS v
 WHERE t.tenant_id = %(tenant)s AND v.status <> 'deleted'
   AND (%(workflow)s::text IS NULL OR v.workflow_slug = %(workflow)s)
   AND (%(id)s::text IS NULL OR v.trigger_id = %(id)s)
 ORDER BY t.created_at, t.id;
