//! The statements that know the tables of the services. All others use the API.

/// The deliveries that are not finished, without those to webhooks whose arrivals are not recorded, and the bytes of
/// the write-ahead log.
pub(crate) const STATE: &str = "\
    SELECT (SELECT count(*) FROM people_task.deliveries
                JOIN people_task.webhooks ON webhooks.id = deliveries.webhook_id
            WHERE webhooks.url LIKE '%?seq=%'),
        pg_current_wal_insert_lsn() - pg_lsn '0/0'";

/// Removes all tasks with their webhooks and deliveries.
pub(crate) const REMOVE_TASKS: &str = "TRUNCATE people_task.tasks, people_task.task_states, \
    people_task.webhooks, people_task.deliveries, people_task.finished_deliveries";

/// Makes statistics and visibility those of a database that has had its tables for a while.
pub(crate) const VACUUM_TASKS: &str = "VACUUM (ANALYZE) people_task.tasks, people_task.task_states";

/// The people of generated tasks.
pub(crate) struct People<'people> {
    /// The identifier of the user whose lists are measured, in hex digits.
    pub(crate) user: &'people str,
    /// The user's address.
    pub(crate) address: &'people str,
}

/// Returns the statement that adds `count` tasks. The user created a third of them, is to decide another third, and
/// requested the last one. Half are pending.
pub(crate) fn add_tasks(count: usize, people: &People<'_>) -> String {
    let People { user, address } = people;
    let other = "other@example.com";
    let stranger = "ffffffffffffffffffffffff";
    let role = |role: usize, own: &str, other: &str| {
        format!("CASE WHEN n % 3 = {role} THEN '{own}' ELSE '{other}' END")
    };
    let creator = role(0, user, stranger);
    let approver = role(1, address, other);
    let requester = role(2, address, other);
    format!(
        "WITH added AS (
        INSERT INTO people_task.tasks (id, creator, requester, approver, requester_key, approver_key, title,
            description, public, approver_secret, requester_secret, created)
        SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), decode({creator}, 'hex'),
            {requester}, {approver}, {requester}, {approver},
            'Purchase ' || n, 'A chair for the office, the old one jams.',
            false, sha256(('a' || n)::bytea), sha256(('r' || n)::bytea),
            now() - interval '1 second' * ({count} - n)
        FROM generate_series(1, {count}) AS n
        RETURNING *
        )
        INSERT INTO people_task.task_states (task_id, status, mtime, decision_made, public, creator, created,
            approver_key, requester_key, title_key)
        SELECT id, CASE WHEN is_pending THEN 'pending' ELSE 'approved' END, created,
            CASE WHEN is_pending THEN NULL ELSE created END, public, creator, created, approver_key, requester_key,
            lower(title)
        FROM (SELECT *, get_byte(id, 11) % 2 = 0 AS is_pending FROM added) AS states"
    )
}
