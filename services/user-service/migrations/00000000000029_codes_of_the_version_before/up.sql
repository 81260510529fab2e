-- The function below runs with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Processes of an earlier version raise the generation of a user's codes by one, for a request and for a change that ends all
-- codes. Only the latter sets `mtime`. Codes of the last three generations are valid. They know no API keys, which end with a new
-- password here.
CREATE FUNCTION end_codes_of_user() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.code_generation = OLD.code_generation + 3;
    IF NEW.password_hash <> OLD.password_hash THEN
        DELETE FROM credentials WHERE user_id = NEW.id AND kind = 'key' AND NOT NEW.is_service;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER users_end_codes BEFORE UPDATE OF code_generation ON users
    FOR EACH ROW WHEN (NEW.code_generation = OLD.code_generation + 1 AND NEW.mtime <> OLD.mtime)
    EXECUTE FUNCTION end_codes_of_user();
