-- Gives lanes to the deliveries that wait, a limited number in each transaction, so that no lock is held for long. It can
-- be repeated after an interruption.
DO $$
DECLARE
    after bytea := '';
    ids bytea[];
BEGIN
    LOOP
        ids = ARRAY(SELECT id FROM deliveries WHERE id > after ORDER BY id LIMIT 5000);
        EXIT WHEN cardinality(ids) = 0;
        UPDATE deliveries SET lane = host || ' ' || encode(tasks.creator, 'hex') FROM tasks
        WHERE deliveries.id = ANY (ids) AND lane = '' AND tasks.id = task_id;
        after = ids[cardinality(ids)];
        COMMIT;
    END LOOP;
END $$;
