DROP TRIGGER subtract_bytes_of_options ON webhooks;
DROP FUNCTION subtract_bytes_of_options();
