-- A constraint stays valid until the last migration is undone.
SELECT 1;
