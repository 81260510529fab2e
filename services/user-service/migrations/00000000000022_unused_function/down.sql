-- No version needs the function.
SELECT 1;
