-- Schemas that begin with the baseline do not have it.
-- squawk-ignore ban-drop-function -- 0.2.0 and later do not call it
DROP FUNCTION IF EXISTS claim_sign_in_name(text, bytea, text);
