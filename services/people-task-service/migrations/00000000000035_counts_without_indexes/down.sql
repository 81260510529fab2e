CREATE INDEX tasks_counted_by_creator ON tasks (creator) WHERE octet_length(creator) > 0;
CREATE INDEX tasks_counted_by_approver ON tasks (approver_key) WHERE octet_length(approver_key) > 0;
CREATE INDEX tasks_counted_by_requester ON tasks (requester_key) WHERE octet_length(requester_key) > 0;
