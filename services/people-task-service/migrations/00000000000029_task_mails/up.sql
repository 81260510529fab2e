-- Mails about tasks. Tasks that no mail is sent about have no row. The secrets of links are derived from a key that is
-- not in the database.

-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE TABLE mailed_tasks (
    task_id bytea PRIMARY KEY CHECK (octet_length(task_id) = 12),
    language text NOT NULL,
    -- What the secrets of the approver and of the requester are derived from, together with the key.
    approver_seed bytea NOT NULL CHECK (octet_length(approver_seed) = 16),
    requester_seed bytea NOT NULL CHECK (octet_length(requester_seed) = 16)
);

-- Mails that are to be sent. A row is deleted when its mail was sent or has become pointless.
CREATE TABLE task_mails (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    task_id bytea NOT NULL CHECK (octet_length(task_id) = 12),
    kind text NOT NULL CHECK (kind IN ('asked', 'reminder', 'due', 'decided')),
    -- The hash of the recipient's address.
    recipient bytea NOT NULL CHECK (octet_length(recipient) = 32),
    due_at timestamptz NOT NULL,
    -- Not sent before this time. A claim moves it to the claim's end.
    next_attempt timestamptz NOT NULL,
    -- Increases with every claim, so it is the number of the attempt.
    lease bigint NOT NULL DEFAULT 0,
    UNIQUE (task_id, kind, due_at)
);
CREATE INDEX task_mails_by_next_attempt ON task_mails (next_attempt);
CREATE INDEX task_mails_by_recipient ON task_mails (recipient);

-- How many mails went to a recipient, or were caused by a creator, in an hour. Both are hashes.
CREATE TABLE mail_counts (
    hour timestamptz NOT NULL,
    counted bytea NOT NULL CHECK (octet_length(counted) = 32),
    mails bigint NOT NULL,
    PRIMARY KEY (hour, counted)
);

-- The hashes of addresses that want no reminders.
CREATE TABLE mail_opt_outs (
    recipient bytea PRIMARY KEY CHECK (octet_length(recipient) = 32),
    since timestamptz NOT NULL DEFAULT now()
);

-- The hash of a normalized address.
CREATE FUNCTION mail_recipient(address text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(convert_to(address, 'UTF8'))
$$;

CREATE OR REPLACE FUNCTION delete_rows_of_tasks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    ids bytea[] := ARRAY(SELECT id FROM deleted);
    -- A delivery is finished after its task was created. The clock may have been set back since then.
    since timestamptz := (SELECT min(created) FROM deleted) - interval '1 day';
    until timestamptz := clock_timestamp() + interval '1 day';
BEGIN
    -- First, because a decision or a registration that is under way adds rows until it ends.
    DELETE FROM task_states WHERE task_id = ANY (ids);
    DELETE FROM deliveries WHERE task_id = ANY (ids);
    DELETE FROM finished_deliveries WHERE task_id = ANY (ids) AND finished BETWEEN since AND until;
    DELETE FROM webhooks WHERE task_id = ANY (ids);
    DELETE FROM mailed_tasks WHERE task_id = ANY (ids);
    DELETE FROM task_mails WHERE task_id = ANY (ids);
    RETURN NULL;
END $$;
