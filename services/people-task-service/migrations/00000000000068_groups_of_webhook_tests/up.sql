-- The group of the requester's account, if a stranger made it: the accounts of one group share how many calls they may make.
ALTER TABLE webhook_tests ADD COLUMN account_group bytea;
