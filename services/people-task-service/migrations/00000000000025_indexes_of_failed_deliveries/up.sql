-- Builds the indexes of the last migration partition by partition, each in a transaction of its own, because Postgres
-- cannot build them concurrently on a partitioned table. Only the partition of today is written to: while it is scanned,
-- for about a second per million deliveries, workers wait to record results. It can be repeated after an interruption.
DO $$
DECLARE
    partition name;
    partitions name[] := ARRAY(
        SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'finished_deliveries'::regclass ORDER BY relname
    );
    parent text;
    index name;
BEGIN
    FOREACH partition IN ARRAY partitions LOOP
        -- Workers drop old partitions.
        CONTINUE WHEN to_regclass(quote_ident(partition)) IS NULL;
        EXECUTE format('UPDATE %I AS finished SET host = webhooks.host FROM webhooks
            WHERE webhooks.id = webhook_id AND finished.status = %L AND finished.host IS NULL', partition, 'fail');
        COMMIT;
        FOREACH parent IN ARRAY ARRAY['finished_deliveries_failed', 'finished_deliveries_failed_by_host'] LOOP
            -- A partition that was attached after the last migration has them.
            CONTINUE WHEN EXISTS (
                SELECT FROM pg_inherits JOIN pg_index ON indexrelid = inhrelid
                WHERE inhparent = parent::regclass AND indrelid = quote_ident(partition)::regclass
            );
            index = replace(partition, 'finished_deliveries', parent);
            EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON %I (%s) WHERE status = %L', index, partition,
                CASE parent WHEN 'finished_deliveries_failed' THEN 'id' ELSE 'host, id' END, 'fail');
            EXECUTE format('ALTER INDEX %I ATTACH PARTITION %I', parent, index);
            COMMIT;
        END LOOP;
    END LOOP;
    -- Reads all rows, and blocks none.
    ALTER TABLE audit_log VALIDATE CONSTRAINT audit_log_action_check;
END $$;
