-- Moves a column. Stop every process of an earlier version first: it reads and writes that column.

-- When each user signed in last; null before the first time. A sign-in writes this narrow row and not a new version of
-- the row in users, which has many indexes.
CREATE TABLE last_sign_ins (
    user_id bytea PRIMARY KEY,
    at timestamptz,
    -- That of the user, for lists that are sorted by this time.
    segment bigint NOT NULL
);

INSERT INTO last_sign_ins (user_id, at, segment) SELECT id, last_sign_in, segment FROM users;

ALTER TABLE last_sign_ins ADD FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE;
-- Nulls come last in both directions.
CREATE INDEX last_sign_ins_by_at ON last_sign_ins (at, user_id) INCLUDE (segment);
CREATE INDEX last_sign_ins_by_at_descending ON last_sign_ins (at DESC NULLS LAST, user_id DESC) INCLUDE (segment);

-- With its indexes.
ALTER TABLE users DROP COLUMN last_sign_in;

-- Every user has a row, with the user's segment.
CREATE FUNCTION insert_last_sign_in() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO last_sign_ins (user_id, segment) SELECT id, segment FROM added;
    RETURN NULL;
END $$;

CREATE TRIGGER users_insert_last_sign_in AFTER INSERT ON users REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION insert_last_sign_in();

CREATE FUNCTION move_last_sign_in() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE last_sign_ins SET segment = NEW.segment WHERE user_id = NEW.id;
    RETURN NULL;
END $$;

CREATE TRIGGER users_move_last_sign_in AFTER UPDATE ON users
FOR EACH ROW WHEN (NEW.segment <> OLD.segment) EXECUTE FUNCTION move_last_sign_in();

-- Old versions of rows are removed early, because the indexes are read alone only where the table was vacuumed.
ALTER TABLE last_sign_ins SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
