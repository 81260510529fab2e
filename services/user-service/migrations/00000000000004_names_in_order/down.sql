CREATE OR REPLACE FUNCTION claim_sign_in_names() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM sign_in_names
    WHERE user_id = NEW.id AND name NOT IN (NEW.username_key, NEW.email_key);
    PERFORM claim_sign_in_name(NEW.username_key, NEW.id, 'users_username_taken');
    PERFORM claim_sign_in_name(NEW.email_key, NEW.id, 'users_email_taken');
    RETURN NULL;
END $$;
