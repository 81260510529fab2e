-- Deletes the codes that were invalid in an earlier version, which kept them: by now, codes of the last three generations are
-- valid. A limited number is read in each transaction, so that no lock is held for long. It can be repeated after an
-- interruption.
DO $$
DECLARE
    after bytea := '';
    ids bytea[];
BEGIN
    LOOP
        ids = ARRAY(SELECT fingerprint FROM codes WHERE fingerprint > after ORDER BY fingerprint LIMIT 5000);
        EXIT WHEN cardinality(ids) = 0;
        DELETE FROM codes USING users
        WHERE fingerprint = ANY (ids) AND purpose = 'forgot-password' AND users.id = user_id AND generation <> code_generation;
        after = ids[cardinality(ids)];
        COMMIT;
    END LOOP;
END $$;
