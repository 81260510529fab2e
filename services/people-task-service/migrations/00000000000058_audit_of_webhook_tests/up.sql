-- Reads all rows, and blocks none.
ALTER TABLE audit_log VALIDATE CONSTRAINT audit_log_action_check;
