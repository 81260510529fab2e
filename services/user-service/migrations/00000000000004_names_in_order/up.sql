-- Two transactions that claimed each other's names caused a deadlock, which Postgres resolved after a second. Now
-- every transaction locks the names that it claims or gives up in the same order.
CREATE OR REPLACE FUNCTION claim_sign_in_names() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    affected text;
    holder bytea;
    taken text[] := '{}';
    violated text;
BEGIN
    FOR affected IN
        SELECT DISTINCT name COLLATE "C" AS name FROM (
            SELECT n.name FROM sign_in_names AS n WHERE n.user_id = NEW.id
            UNION ALL VALUES (NEW.username_key), (NEW.email_key)
        ) AS names
        ORDER BY name
    LOOP
        IF affected NOT IN (NEW.username_key, NEW.email_key) THEN
            DELETE FROM sign_in_names WHERE name = affected AND user_id = NEW.id;
        ELSE
            -- A concurrent claim of the same name waits here for the other one's commit.
            INSERT INTO sign_in_names AS n (name, user_id) VALUES (affected, NEW.id)
            ON CONFLICT (name) DO UPDATE SET user_id = n.user_id
            RETURNING n.user_id INTO holder;
            IF holder <> NEW.id THEN
                taken := taken || affected;
            END IF;
        END IF;
    END LOOP;
    IF taken <> '{}' THEN
        violated := CASE WHEN NEW.username_key = ANY (taken)
            THEN 'users_username_taken' ELSE 'users_email_taken' END;
        RAISE unique_violation USING CONSTRAINT = violated, MESSAGE = 'the name is taken';
    END IF;
    RETURN NULL;
END $$;

-- claim_sign_in_name is not dropped: a transaction that began before this one may still call it.
