DROP FUNCTION record_audit_entry;
