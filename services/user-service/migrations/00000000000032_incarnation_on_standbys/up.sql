-- A standby knows no position in the log that it writes. It is refused like a change there, so that requests are told to try
-- again.
CREATE OR REPLACE FUNCTION database_incarnation() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    cluster text;
    timeline text;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE read_only_sql_transaction USING MESSAGE = 'the server is a standby';
    END IF;
    BEGIN
        SELECT system_identifier INTO cluster FROM pg_catalog.pg_control_system();
        timeline = left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8);
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
        -- Some managed servers refuse these functions.
        cluster = NULL;
    END;
    RETURN left(encode(sha256(convert_to(jsonb_build_array(
        cluster,
        timeline,
        (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()),
        to_regclass('users.users')::oid,
        (SELECT generation FROM users.token_generation)
    )::text, 'UTF8')), 'hex'), 16);
END $$;
