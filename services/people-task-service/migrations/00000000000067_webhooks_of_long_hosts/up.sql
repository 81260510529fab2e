-- Removes webhooks whose hosts no name server knows: such a host does not fit into the indexes of deliveries, so it kept its
-- task from being decided. A limited number is read in each transaction, so that no lock is held for long. It can be repeated
-- after an interruption.
DO $$
DECLARE
    after bytea := '';
    ids bytea[];
BEGIN
    LOOP
        ids = ARRAY(SELECT id FROM webhooks WHERE id > after ORDER BY id LIMIT 5000);
        EXIT WHEN cardinality(ids) = 0;
        DELETE FROM webhooks WHERE id = ANY (ids) AND octet_length(host) > 253;
        after = ids[cardinality(ids)];
        COMMIT;
    END LOOP;
END $$;
