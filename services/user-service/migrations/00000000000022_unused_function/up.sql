-- Nothing has called it since 0.2.0. Schemas that begin with the baseline do not have it.
DROP FUNCTION IF EXISTS claim_sign_in_name(text, bytea, text);
