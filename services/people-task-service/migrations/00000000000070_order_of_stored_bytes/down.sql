-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

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

CREATE OR REPLACE FUNCTION subtract_bytes_of_answers() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE stored_bytes SET bytes = stored_bytes.bytes - freed.bytes
    FROM (SELECT user_id, sum(octet_length(answer))::bigint AS bytes FROM deleted GROUP BY user_id) AS freed
    WHERE stored_bytes.user_id = freed.user_id;
    RETURN NULL;
END $$;
