-- The indexes go with those of the last migration.
SELECT 1;
