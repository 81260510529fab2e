-- They are not kept.
SELECT 1;
