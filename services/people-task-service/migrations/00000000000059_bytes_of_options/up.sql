-- The bytes of options count as stored by the user who registered the webhook. Webhooks without options pay for the
-- condition only.

-- The function below runs with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE FUNCTION subtract_bytes_of_options() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.options) WHERE user_id = OLD.registered_by;
    RETURN NULL;
END $$;
CREATE TRIGGER subtract_bytes_of_options AFTER DELETE ON webhooks
    FOR EACH ROW WHEN (OLD.options IS NOT NULL) EXECUTE FUNCTION subtract_bytes_of_options();
