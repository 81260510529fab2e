DROP TABLE sign_up_networks;
ALTER TABLE users DROP COLUMN account_group;
