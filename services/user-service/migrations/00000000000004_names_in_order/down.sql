CREATE FUNCTION claim_sign_in_name(wanted text, claimant bytea, violated text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    holder bytea;
BEGIN
    INSERT INTO sign_in_names AS n (name, user_id) VALUES (wanted, claimant)
    ON CONFLICT (name) DO UPDATE SET user_id = n.user_id
    RETURNING n.user_id INTO holder;
    IF holder <> claimant THEN
        RAISE unique_violation USING CONSTRAINT = violated, MESSAGE = 'the name is taken';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION claim_sign_in_names() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM sign_in_names
    WHERE user_id = NEW.id AND name NOT IN (NEW.username_key, NEW.email_key);
    PERFORM claim_sign_in_name(NEW.username_key, NEW.id, 'users_username_taken');
    PERFORM claim_sign_in_name(NEW.email_key, NEW.id, 'users_email_taken');
    RETURN NULL;
END $$;
