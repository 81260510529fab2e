-- The client networks from which users signed in. Attempts from them are not part of the count of failures from
-- anywhere, so that strangers cannot lock users out.
CREATE TABLE known_networks (
    user_id bytea NOT NULL REFERENCES users ON DELETE CASCADE,
    -- The hash of the user's identifier and the network.
    network_hash bytea NOT NULL CHECK (octet_length(network_hash) = 32),
    last_sign_in timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, network_hash)
);

CREATE INDEX known_networks_by_last_sign_in ON known_networks (last_sign_in);

-- The highest bcrypt cost of all hashes (`$2b$12$…`). Every check of a password takes as long as one of this cost.
CREATE INDEX users_by_password_cost ON users (substring(password_hash FROM 5 FOR 2));
