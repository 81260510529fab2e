-- Gives creators to the due dates that wait, a limited number in each transaction, so that no lock is held for long. It can
-- be repeated after an interruption.
DO $$
DECLARE
    after bytea := '';
    ids bytea[];
BEGIN
    LOOP
        ids = ARRAY(SELECT webhook_id FROM due_dates WHERE webhook_id > after ORDER BY webhook_id LIMIT 5000);
        EXIT WHEN cardinality(ids) = 0;
        UPDATE due_dates SET creator = coalesce(creator_of_lane(webhooks.lane), tasks.creator)
        FROM webhooks JOIN tasks ON tasks.id = webhooks.task_id
        WHERE due_dates.webhook_id = ANY (ids) AND due_dates.creator = '' AND webhooks.id = due_dates.webhook_id;
        after = ids[cardinality(ids)];
        COMMIT;
    END LOOP;
END $$;
