-- Requests for codes, limited by mailbox and by client. A row exists while its requests count. The account and the
-- client address are hashes, so unknown addresses look like known ones.

CREATE TABLE code_requests (
    counted text NOT NULL CHECK (counted IN ('account', 'client')),
    subject bytea NOT NULL CHECK (octet_length(subject) = 32),
    -- When none of the requests counts any more. Each request postpones it.
    forgotten_at timestamptz NOT NULL,
    PRIMARY KEY (counted, subject)
);

CREATE INDEX code_requests_by_forgotten_at ON code_requests (forgotten_at);
