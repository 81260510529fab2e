-- Requests for codes, so that nobody's mailbox is flooded and nobody floods mailboxes. A row stands
-- while requests count; the account and the client address are hashes, so unknown addresses look like
-- known ones.

CREATE TABLE code_requests (
    counted text NOT NULL CHECK (counted IN ('account', 'client')),
    subject bytea NOT NULL CHECK (octet_length(subject) = 32),
    -- The moment at which none of the requests counts any more. Each one puts it off.
    forgotten_at timestamptz NOT NULL,
    PRIMARY KEY (counted, subject)
);

CREATE INDEX code_requests_by_forgotten_at ON code_requests (forgotten_at);
