-- Deliveries that 0.3.0 has parked stay parked: it needed three lost trials, and five are needed now. A limited number is
-- changed in each transaction, so that no lock is held for long. It can be repeated after an interruption.
DO $$
BEGIN
    LOOP
        UPDATE deliveries SET lost_trials = 5 WHERE id = ANY (ARRAY(
            SELECT id FROM deliveries WHERE (lost_claims >= 2 OR option_claims >= 2) AND lost_trials BETWEEN 3 AND 4
                AND NOT on_trial AND attempt_log -> -1 ->> 'error' LIKE 'parked: three workers%' LIMIT 1000
        ));
        EXIT WHEN NOT FOUND;
        COMMIT;
    END LOOP;
END $$;
