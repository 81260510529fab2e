-- Earlier versions read no creators.
SELECT 1;
