-- What the creator of a task keeps with it: an object of JSON, as it is returned. Null if there is none.

-- The function below runs with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

ALTER TABLE tasks ADD COLUMN metadata text;
-- All rows have null, so there is nothing to validate.
ALTER TABLE tasks ADD CONSTRAINT tasks_metadata_check CHECK (octet_length(metadata) <= 4096) NOT VALID;

CREATE OR REPLACE FUNCTION subtract_stored_bytes() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE stored_bytes SET bytes = stored_bytes.bytes - freed.bytes
    FROM (
        SELECT creator,
            sum(octet_length(title) + octet_length(description) + coalesce(octet_length(metadata), 0))::bigint AS bytes
        FROM deleted GROUP BY creator
    ) AS freed
    WHERE user_id = freed.creator;
    RETURN NULL;
END $$;
