-- Earlier versions park deliveries with fewer lost trials.
SELECT 1;
