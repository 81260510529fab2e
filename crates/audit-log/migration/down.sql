DROP FUNCTION prune_audit_log, forget_audit_addresses, pseudonymise_audit_log;
DROP TABLE audit_log;
