//! The statements that know the tables of the services. All others use the API.

use rig::client::Person;

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

/// Counts the users of each segment again, which triggers do otherwise.
const COUNT_SEGMENTS: &str = "TRUNCATE users.user_segments;
    INSERT INTO users.user_segments (id, is_active, plan, scope, vendor, users)
    SELECT segment, is_active, plan, scope, vendor, count(*) FROM users.users GROUP BY 1, 2, 3, 4, 5";

/// Returns the statements that remove the users of [`add_users`], whose identifiers begin with zero. Nothing refers to them,
/// so no row of another table is looked for.
pub(crate) fn remove_users() -> String {
    format!(
        "SET session_replication_role = replica;
        DELETE FROM users.sign_in_names WHERE user_id < decode(rpad('01', 24, '0'), 'hex');
        DELETE FROM users.last_sign_ins WHERE user_id < decode(rpad('01', 24, '0'), 'hex');
        DELETE FROM users.users WHERE id < decode(rpad('01', 24, '0'), 'hex');
        {COUNT_SEGMENTS}"
    )
}

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

/// Returns the statement that adds tasks with descriptions of this length. Half are pending, one in a thousand is rejected,
/// and the others are approved. Half are to be decided by a certain time.
pub(crate) fn add_tasks(count: usize, user: &Person, roles: Roles, description: usize) -> String {
    let rows = task_rows(count, user, roles, description);
    // The columns of each table stand only here.
    format!(
        "WITH rows AS MATERIALIZED ({rows}), added AS (
        INSERT INTO people_task.tasks (id, creator, requester, approver, requester_key, approver_key, title,
            description, decision_by, public, approver_secret, requester_secret, created)
        SELECT id, creator, requester, approver, requester, approver, title,
            description, decision_by, false, sha256('a' || id), sha256('r' || id), created
        FROM rows
        )
        INSERT INTO people_task.task_states (task_id, status, mtime, decision_made, public, creator, created, decision_by,
            approver_key, requester_key, title_key)
        SELECT id, status, created, decision_made, false, creator, created, decision_by, approver, requester, lower(title)
        FROM rows"
    )
}

fn task_rows(count: usize, user: &Person, roles: Roles, description: usize) -> String {
    let other = "other@example.com";
    let stranger = "ffffffffffffffffffffffff";
    let role = |role: usize, own: &str, other: &str| match roles {
        Roles::Shared => format!("CASE WHEN n % 3 = {role} THEN '{own}' ELSE '{other}' END"),
        Roles::Creator if role == 0 => format!("'{own}'"),
        Roles::Creator => format!("'{other}'"),
    };
    let creator = role(0, &user.id, stranger);
    let approver = role(1, &user.email, other);
    let requester = role(2, &user.email, other);
    format!(
        "SELECT decode(lpad(to_hex(n), 24, '0'), 'hex') AS id, decode({creator}, 'hex') AS creator,
            {requester} AS requester, {approver} AS approver, 'Purchase ' || n AS title,
            rpad('A chair for the office, the old one jams.', {description}, ' The old one jams.') AS description,
            status, created,
            CASE WHEN n % 4 < 2 THEN created + interval '7 days' END AS decision_by,
            CASE WHEN status <> 'pending' THEN created END AS decision_made
        FROM generate_series(1, {count}) AS n,
            LATERAL (SELECT now() - interval '1 second' * ({count} - n) AS created,
                CASE WHEN n % 2 = 0 THEN 'pending' WHEN n % 1000 = 7 THEN 'rejected' ELSE 'approved' END AS status
            ) AS states"
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

/// Returns the statements that add users, whose usernames are their addresses. One in ten has another plan, one in a
/// hundred a vendor or is inactive, and one in a thousand another scope. A third has never signed in.
pub(crate) fn add_users(count: usize) -> String {
    // Triggers would add the names one by one, and take most of the time. The columns of each table stand only here.
    format!(
        "SET session_replication_role = replica;
        INSERT INTO users.users (id, username, email, username_key, email_key, password_hash, is_active, plan, scope,
            vendor, created, mtime, email_confirmed)
        SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), name, name, name, name, '$2b$12$', n % 100 <> 1,
            CASE WHEN n % 10 = 0 THEN 'pro' ELSE 'free' END,
            CASE WHEN n % 1000 = 7 THEN '{{user,auditor}}'::text[] ELSE '{{user}}' END,
            CASE WHEN n % 100 = 2 THEN '\"acme\"'::jsonb END, created, created, created
        FROM generate_series(1, {count}) AS n,
            LATERAL (SELECT 'person' || n || '@example.org' AS name,
                now() - interval '1 second' * ({count} - n) AS created) AS names;
        INSERT INTO users.sign_in_names (name, user_id)
        SELECT email_key, id FROM users.users
        WHERE id < decode(rpad('01', 24, '0'), 'hex');
        INSERT INTO users.last_sign_ins (user_id, at, segment)
        SELECT id, CASE WHEN get_byte(id, 11) % 3 <> 0 THEN created + interval '1 hour' END, segment FROM users.users
        WHERE id < decode(rpad('01', 24, '0'), 'hex');
        {COUNT_SEGMENTS}"
    )
}
