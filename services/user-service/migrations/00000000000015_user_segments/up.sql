-- Lists of users filter and count by segments: users with the same values of is_active, plan, scope and vendor. There
-- are few segments, and the index of each sort has the segment of a user, so that a list reads only an index up to the
-- end of the page, whatever its filters are. Adding the column copies the table.

-- The first 64 bits of a hash, so that a restored dump has the same segments. jsonb has one text for equal values.
CREATE FUNCTION user_segment(is_active boolean, plan text, scope text[], vendor jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' || left(encode(sha256(convert_to(
        jsonb_build_array(is_active, plan, scope, vendor)::text, 'UTF8')), 'hex'), 16))::bit(64)::bigint
$$;

ALTER TABLE users ADD COLUMN segment bigint NOT NULL
GENERATED ALWAYS AS (user_segment(is_active, plan, scope, vendor)) STORED;

CREATE TABLE user_segments (
    id bigint PRIMARY KEY,
    is_active boolean NOT NULL,
    plan text NOT NULL,
    scope text[] NOT NULL,
    vendor jsonb,
    -- How many users the segment has.
    users bigint NOT NULL,
    CHECK (id = user_segment(is_active, plan, scope, vendor))
);

INSERT INTO user_segments (id, is_active, plan, scope, vendor, users)
SELECT segment, is_active, plan, scope, vendor, count(*) FROM users
GROUP BY segment, is_active, plan, scope, vendor;

-- Counts users that are added, removed or moved. The rows of segments are locked in order, and after the names of the
-- users, so that two transactions cannot deadlock. A segment without users is deleted; a concurrent transaction that
-- waits for it inserts it again.
CREATE FUNCTION count_in_segments() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO user_segments AS s (id, is_active, plan, scope, vendor, users)
        SELECT segment, is_active, plan, scope, vendor, count(*) FROM added
        GROUP BY segment, is_active, plan, scope, vendor ORDER BY segment
        ON CONFLICT (id) DO UPDATE SET users = s.users + excluded.users;
        RETURN NULL;
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO user_segments AS s (id, is_active, plan, scope, vendor, users)
        SELECT segment, is_active, plan, scope, vendor, sum(change) FROM (
            SELECT segment, is_active, plan, scope, vendor, 1 AS change FROM added
            UNION ALL SELECT segment, is_active, plan, scope, vendor, -1 FROM removed
        ) AS changes
        GROUP BY segment, is_active, plan, scope, vendor HAVING sum(change) <> 0 ORDER BY segment
        ON CONFLICT (id) DO UPDATE SET users = s.users + excluded.users;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    ELSE
        INSERT INTO user_segments AS s (id, is_active, plan, scope, vendor, users)
        SELECT segment, is_active, plan, scope, vendor, -count(*) FROM removed
        GROUP BY segment, is_active, plan, scope, vendor ORDER BY segment
        ON CONFLICT (id) DO UPDATE SET users = s.users + excluded.users;
    END IF;
    DELETE FROM user_segments WHERE users = 0 AND id IN (SELECT segment FROM removed);
    RETURN NULL;
END $$;

CREATE TRIGGER users_count_added AFTER INSERT ON users REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_in_segments();
CREATE TRIGGER users_count_moved AFTER UPDATE ON users REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_in_segments();
CREATE TRIGGER users_count_removed AFTER DELETE ON users REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION count_in_segments();

-- users_scope stays, for finding administrators.
DROP INDEX users_by_created, users_by_mtime, users_by_username, users_by_email, users_by_plan, users_by_is_active,
    users_by_last_sign_in, users_by_last_sign_in_descending, users_vendor;

CREATE INDEX users_by_created ON users (created, id) INCLUDE (segment);
CREATE INDEX users_by_mtime ON users (mtime, id) INCLUDE (segment);
CREATE INDEX users_by_username ON users (username_key, id) INCLUDE (segment);
CREATE INDEX users_by_email ON users (email_key, id) INCLUDE (segment);
-- Postgres reads an index on an expression alone only if the index has the expression's columns, too.
CREATE INDEX users_by_plan ON users (lower(plan), id) INCLUDE (segment, plan);
CREATE INDEX users_by_is_active ON users (is_active, id) INCLUDE (segment);
CREATE INDEX users_by_last_sign_in ON users (last_sign_in, id) INCLUDE (segment);
CREATE INDEX users_by_last_sign_in_descending ON users (last_sign_in DESC NULLS LAST, id DESC) INCLUDE (segment);
CREATE INDEX users_by_segment ON users (segment);

-- An index is read alone only where the table was vacuumed.
ALTER TABLE users SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
