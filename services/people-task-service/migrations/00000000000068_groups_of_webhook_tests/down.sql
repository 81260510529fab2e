ALTER TABLE webhook_tests DROP COLUMN account_group;
