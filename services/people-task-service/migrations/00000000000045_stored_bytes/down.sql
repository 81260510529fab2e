DROP TRIGGER subtract_stored_bytes ON tasks;
DROP FUNCTION subtract_stored_bytes;
DROP TABLE stored_bytes;
