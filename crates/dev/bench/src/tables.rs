//! The statements that know the tables of the services. All others use the API.

use rig::Person;

/// The deliveries that are not finished, without those to webhooks whose arrivals are not recorded, and the bytes of
/// the write-ahead log.
pub(crate) const STATE: &str = "\
    SELECT (SELECT count(*) FROM people_task.deliveries
                JOIN people_task.webhooks ON webhooks.id = deliveries.webhook_id
            WHERE webhooks.url LIKE '%?seq=%'),
        pg_current_wal_insert_lsn() - pg_lsn '0/0'";

pub(crate) const REMOVE_TASKS: &str = "TRUNCATE people_task.tasks, people_task.task_states, \
    people_task.webhooks, people_task.deliveries, people_task.finished_deliveries";

/// Makes statistics and visibility those of a database that has had its tables for a while.
pub(crate) const VACUUM_TASKS: &str = "VACUUM (ANALYZE) people_task.tasks, people_task.task_states";

pub(crate) const REMOVE_USERS: &str = concat!(
    include_str!("tables/remove_users.sql"),
    include_str!("tables/count_segments.sql")
);

/// Makes statistics and visibility those of a database that has had its tables for a while.
pub(crate) const VACUUM_USERS: &str = "VACUUM (ANALYZE) users.users, users.last_sign_ins, \
    users.user_segments, users.sign_in_names";

/// What the user is to generated tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Roles {
    /// The creator of all.
    Creator,
    /// The creator of a third, the approver of another, and the requester of the last one.
    Shared,
}

/// Returns the statement that adds tasks with descriptions of this length.
pub(crate) fn add_tasks(count: usize, user: &Person, roles: Roles, description: usize) -> String {
    let other = "other@example.com";
    let stranger = "ffffffffffffffffffffffff";
    let role = |role: usize, own: &str, other: &str| match roles {
        Roles::Shared => format!("CASE WHEN n % 3 = {role} THEN '{own}' ELSE '{other}' END"),
        Roles::Creator if role == 0 => format!("'{own}'"),
        Roles::Creator => format!("'{other}'"),
    };
    format!(
        include_str!("tables/add_tasks.sql"),
        creator = role(0, &user.id, stranger),
        approver = role(1, &user.email, other),
        requester = role(2, &user.email, other),
        count = count,
        description = description
    )
}

pub(crate) fn delete_states(user: &str) -> String {
    format!(
        "DELETE FROM people_task.task_states USING people_task.tasks
        WHERE task_id = tasks.id AND tasks.creator = decode('{user}', 'hex')"
    )
}

pub(crate) fn delete_tasks(user: &str) -> String {
    format!("DELETE FROM people_task.tasks WHERE creator = decode('{user}', 'hex')")
}

/// Returns the statements that add users.
pub(crate) fn add_users(count: usize) -> String {
    let add = format!(include_str!("tables/add_users.sql"), count = count);
    add + include_str!("tables/count_segments.sql")
}
