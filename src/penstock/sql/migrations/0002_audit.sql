-- Audit: what was sealed, so that a later change of the log shows. Personal data: one key a subject.

-- The hashes of consecutive events, 32 bytes each, in the order of their positions. The tree over
-- all of them is what checkpoints sign; store/audit/entry.py says what a hash is over.
CREATE TABLE audit_seals (
  last_position  bigint PRIMARY KEY,
  first_position bigint NOT NULL UNIQUE,
  leaves         bytea  NOT NULL
);
ALTER TABLE audit_seals ALTER COLUMN leaves SET STORAGE EXTERNAL;   -- hashes do not compress

-- Roots of full subtrees: level 1 is over 256 leaves, level 2 over 256 of level 1, and so on. With
-- them a proof reads a few hundred hashes, however long the log is.
CREATE TABLE audit_nodes (
  level smallint NOT NULL,
  index bigint   NOT NULL,
  hash  bytea    NOT NULL,
  PRIMARY KEY (level, index)
);

-- The newest signed tree head. All that are kept stand in files outside the database.
CREATE TABLE audit_checkpoint (
  one  boolean PRIMARY KEY DEFAULT true CHECK (one),
  note text    NOT NULL
);

CREATE TRIGGER audit_seals_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_seals
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_nodes_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_nodes
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The key of one subject, wrapped; `subject` is a pseudonym. Erasing takes the key away and leaves
-- when. A subject that comes back gets the next number, and what was erased stays unreadable.
CREATE TABLE subject_keys (
  tenant_id  text        COLLATE "C" NOT NULL,
  subject    text        COLLATE "C" NOT NULL,
  number     integer     NOT NULL CHECK (number > 0),
  wrapped    bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  erased_at  timestamptz,
  PRIMARY KEY (tenant_id, subject, number),
  CHECK ((wrapped IS NULL) = (erased_at IS NOT NULL))
);

-- Which root key wrapped them: one for the life of the database.
CREATE TABLE privacy_root (
  one         boolean PRIMARY KEY DEFAULT true CHECK (one),
  fingerprint bytea   NOT NULL
);

GRANT SELECT ON audit_seals, audit_nodes, audit_checkpoint TO penstock_ingest;
GRANT SELECT, INSERT ON subject_keys, privacy_root TO penstock_ingest;
