-- A line for each object of the current schema.
SELECT format('relation %s %s %s %s', relname, relkind, relacl, reloptions) AS line FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'S')
UNION ALL
SELECT format('column %s.%s %s %s %s', table_name, column_name, udt_name, is_nullable, column_default)
FROM information_schema.columns WHERE table_schema = current_schema()
UNION ALL
SELECT format('view %s %s', viewname, definition) FROM pg_views WHERE schemaname = current_schema()
UNION ALL
SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname = current_schema()
UNION ALL
SELECT format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
WHERE connamespace = current_schema()::regnamespace
UNION ALL
SELECT format('trigger %s', pg_get_triggerdef(pg_trigger.oid)) FROM pg_trigger
JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = current_schema()::regnamespace AND NOT tgisinternal
UNION ALL
SELECT format('function %s %s', proacl, pg_get_functiondef(oid)) FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace AND prokind IN ('f', 'p')
