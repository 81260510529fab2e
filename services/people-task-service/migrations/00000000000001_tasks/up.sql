-- Tasks that a person approves or rejects, their webhooks, and the deliveries of decisions.
-- Identifiers are twelve bytes that start with the time, so they sort by age.

CREATE TABLE tasks (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    creator bytea NOT NULL CHECK (octet_length(creator) = 12),
    requester text NOT NULL,
    approver text NOT NULL,
    -- The addresses in lower case, which relations compare.
    requester_key text NOT NULL CHECK (requester_key = lower(requester)),
    approver_key text NOT NULL CHECK (approver_key = lower(approver)),
    title text NOT NULL CHECK (char_length(title) BETWEEN 1 AND 500),
    description text NOT NULL CHECK (char_length(description) <= 20000),
    decision_by timestamptz,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'rejected')),
    public boolean NOT NULL,
    -- SHA-256 hashes of the two secrets.
    approver_secret bytea NOT NULL UNIQUE CHECK (octet_length(approver_secret) = 32),
    requester_secret bytea NOT NULL UNIQUE CHECK (octet_length(requester_secret) = 32),
    created timestamptz NOT NULL DEFAULT now(),
    mtime timestamptz NOT NULL DEFAULT now(),
    decision_made timestamptz,
    CHECK ((status = 'pending') = (decision_made IS NULL))
);

-- A list is the union of three roles. Each has an index for the default sort.
CREATE INDEX tasks_by_creator ON tasks (creator, created, id);
CREATE INDEX tasks_by_requester ON tasks (requester_key, created, id);
CREATE INDEX tasks_by_approver ON tasks (approver_key, created, id);
-- The administrator's list of all tasks has an index for each sort.
CREATE INDEX tasks_by_created ON tasks (created, id);
CREATE INDEX tasks_by_mtime ON tasks (mtime, id);
CREATE INDEX tasks_by_title ON tasks (lower(title), id);
CREATE INDEX tasks_by_status ON tasks (status, id);
CREATE INDEX tasks_by_decision_by ON tasks (decision_by, id);
CREATE INDEX tasks_by_decision_by_descending ON tasks (decision_by DESC NULLS LAST, id DESC);
CREATE INDEX tasks_title_pattern ON tasks USING gin (lower(title) public.gin_trgm_ops);

CREATE TABLE webhooks (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    task_id bytea NOT NULL REFERENCES tasks ON DELETE CASCADE,
    registered_by bytea NOT NULL CHECK (octet_length(registered_by) = 12),
    url text NOT NULL CHECK (char_length(url) <= 2048),
    -- The signing secret in its whsec_ form. It is not hashed, because it signs.
    secret text,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'fail')),
    -- Whether bodies also have taskId, as on the Appmixer plugin paths.
    with_task_id boolean NOT NULL DEFAULT false,
    created timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX webhooks_by_task ON webhooks (task_id, id);
-- Erasure finds what a user registered for other tasks.
CREATE INDEX webhooks_by_registrant ON webhooks (registered_by, id);

-- One decision on its way to one webhook. The row is the outbox entry: it is inserted with the decision, claimed,
-- and finished. A message only says that it is due.
CREATE TABLE deliveries (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    -- A task is decided once, so a webhook has one delivery.
    webhook_id bytea NOT NULL UNIQUE REFERENCES webhooks ON DELETE CASCADE,
    task_id bytea NOT NULL REFERENCES tasks ON DELETE CASCADE,
    -- Scheme, host and port of the URL: the unit of fairness between receivers.
    origin text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'fail')),
    attempts integer NOT NULL DEFAULT 0,
    request_id text NOT NULL,
    traceparent text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    -- No attempt is made before this moment.
    next_attempt timestamptz NOT NULL DEFAULT now(),
    -- No sweep publishes the row before this moment.
    wake_at timestamptz NOT NULL,
    -- The current claim ends at this moment.
    lease_until timestamptz,
    -- Increases with every claim. A result with an older number is dropped.
    lease bigint NOT NULL DEFAULT 0,
    finished timestamptz,
    CHECK ((status = 'pending') = (finished IS NULL))
);

CREATE INDEX deliveries_by_task ON deliveries (task_id, id);
CREATE INDEX deliveries_by_wake_at ON deliveries (wake_at) WHERE status = 'pending';
CREATE INDEX deliveries_by_finished ON deliveries (finished) WHERE finished IS NOT NULL;

CREATE TABLE delivery_attempts (
    delivery_id bytea NOT NULL REFERENCES deliveries ON DELETE CASCADE,
    number integer NOT NULL CHECK (number > 0),
    at timestamptz NOT NULL,
    duration_ms integer NOT NULL CHECK (duration_ms >= 0),
    status_code integer,
    error text,
    -- The first KiB of the response's body.
    response text,
    PRIMARY KEY (delivery_id, number)
);
