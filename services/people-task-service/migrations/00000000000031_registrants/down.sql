DROP TABLE changed_users;
ALTER TABLE webhooks DROP COLUMN registered_as, DROP COLUMN registrant_email, DROP COLUMN registrant_secret;
