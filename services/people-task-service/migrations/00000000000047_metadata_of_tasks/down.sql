CREATE OR REPLACE FUNCTION subtract_stored_bytes() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE stored_bytes SET bytes = stored_bytes.bytes - freed.bytes
    FROM (
        SELECT creator, sum(octet_length(title) + octet_length(description))::bigint AS bytes FROM deleted GROUP BY creator
    ) AS freed
    WHERE user_id = freed.creator;
    RETURN NULL;
END $$;
ALTER TABLE tasks DROP COLUMN metadata;
