-- Lanes mean nothing to earlier versions.
SELECT 1;
