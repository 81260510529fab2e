-- Counts of a person's tasks read nothing but the number of entries, and an index of one column has all entries of a
-- value in a few pages. The conditions always hold. Statements that name them use these indexes, and those that need
-- the order of the others cannot.
CREATE INDEX tasks_counted_by_creator ON tasks (creator) WHERE octet_length(creator) > 0;
CREATE INDEX tasks_counted_by_approver ON tasks (approver_key) WHERE octet_length(approver_key) > 0;
CREATE INDEX tasks_counted_by_requester ON tasks (requester_key) WHERE octet_length(requester_key) > 0;
