CREATE OR REPLACE FUNCTION database_incarnation() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    cluster text;
    timeline text;
BEGIN
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
