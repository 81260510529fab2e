-- How many bytes the titles and descriptions of a user's tasks have. The processes add to it every few seconds.
CREATE TABLE stored_bytes (
    user_id bytea PRIMARY KEY CHECK (octet_length(user_id) = 12),
    bytes bigint NOT NULL
) WITH (fillfactor = 50);

INSERT INTO stored_bytes (user_id, bytes)
SELECT creator, sum(octet_length(title) + octet_length(description)) FROM tasks GROUP BY creator;

CREATE FUNCTION subtract_stored_bytes() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE stored_bytes SET bytes = stored_bytes.bytes - freed.bytes
    FROM (
        SELECT creator, sum(octet_length(title) + octet_length(description))::bigint AS bytes FROM deleted GROUP BY creator
    ) AS freed
    WHERE user_id = freed.creator;
    RETURN NULL;
END $$;
CREATE TRIGGER subtract_stored_bytes AFTER DELETE ON tasks REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION subtract_stored_bytes();
