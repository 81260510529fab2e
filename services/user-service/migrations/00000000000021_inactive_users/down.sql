-- The rows go with their table.
SELECT 1;
