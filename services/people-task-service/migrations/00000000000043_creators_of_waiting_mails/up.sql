-- Gives creators to the mails that wait, a limited number in each transaction, so that no lock is held for long. It can be
-- repeated after an interruption.
DO $$
DECLARE
    after bytea := '';
    ids bytea[];
BEGIN
    LOOP
        ids = ARRAY(SELECT id FROM task_mails WHERE id > after ORDER BY id LIMIT 5000);
        EXIT WHEN cardinality(ids) = 0;
        UPDATE task_mails SET creator = tasks.creator FROM tasks
        WHERE task_mails.id = ANY (ids) AND task_mails.creator = '' AND tasks.id = task_id;
        after = ids[cardinality(ids)];
        COMMIT;
    END LOOP;
END $$;
