-- Accounts that strangers made from one client network share a group, which counts as one wherever creators share something.
ALTER TABLE users ADD COLUMN account_group bytea;

CREATE TABLE sign_up_networks (
    -- The hash of the network.
    network_hash bytea PRIMARY KEY CHECK (octet_length(network_hash) = 32),
    account_group bytea NOT NULL CHECK (octet_length(account_group) = 12),
    last_sign_up timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX sign_up_networks_by_last_sign_up ON sign_up_networks (last_sign_up);
