DROP FUNCTION prune_audit_log, forget_audit_addresses;
DROP TABLE audit_log;
