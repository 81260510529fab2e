DROP TABLE sign_in_failures, deletion_steps, deletions, notifications, codes, sign_in_names, users;
DROP FUNCTION claim_sign_in_names, claim_sign_in_name, note_raised_epoch;
