use std::sync::OnceLock;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use diesel::connection::SimpleConnection as _;
use diesel::r2d2::{ManageConnection, Pool, PooledConnection};
use diesel::sql_types::Text;
use diesel::{Connection as _, ConnectionError, PgConnection, QueryableByName, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness as _};
use local_stack::{Roles, bootstrap};
use values::Secret;

use crate::servers::servers;

/// The lock for creating a template, so that concurrent tests create it once.
const TEMPLATE_LOCK: i64 = 0x7465_6d70_6c61_7465;

/// A connection of a test. Dropped, it holds no lock and is used again, so that a test that asks until a condition holds
/// does not start a process of Postgres each time.
pub type TestConnection = PooledConnection<Connections>;

/// Opens connections of one role to one database.
#[derive(Debug)]
pub struct Connections {
    url: String,
}

impl Connections {
    fn pool(url: String) -> Pool<Self> {
        let connections = Pool::builder().max_size(20).min_idle(Some(0));
        connections.build_unchecked(Self { url })
    }
}

impl ManageConnection for Connections {
    type Connection = PgConnection;
    type Error = ConnectionError;

    fn connect(&self) -> Result<PgConnection, ConnectionError> {
        PgConnection::establish(&self.url)
    }

    /// Only the server knows, and r2d2 asks before each use.
    fn is_valid(&self, connection: &mut PgConnection) -> Result<(), ConnectionError> {
        let answer = connection.batch_execute("SELECT 1");
        answer.map_err(ConnectionError::CouldntSetupConfiguration)
    }

    /// Asked of each connection that is dropped: ends what the test left.
    fn has_broken(&self, connection: &mut PgConnection) -> bool {
        let left = ["ROLLBACK", "RESET ALL; SELECT pg_advisory_unlock_all()"];
        thread::panicking()
            || left
                .into_iter()
                .any(|end| connection.batch_execute(end).is_err())
    }
}

/// A private database with both schemas, dropped at the end of the test.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    superusers: Pool<Connections>,
    people_task: Pool<Connections>,
    /// The URLs of the four roles.
    pub urls: Roles,
}

impl TestDatabase {
    /// Creates a database with roles and empty schemas, as an operator prepares it.
    pub fn empty() -> Self {
        Self::clone_of("empty", |_| {})
    }

    /// Creates a database whose schema `users` is migrated. All tests of a program must pass the same migrations, because
    /// they share a template.
    pub fn users(migrations: EmbeddedMigrations) -> Self {
        Self::clone_of("users", |urls| migrate(&urls.users_owner, migrations))
    }

    /// Creates a database whose schema `people_task` is migrated, like [`TestDatabase::users`].
    pub fn people_task(migrations: EmbeddedMigrations) -> Self {
        Self::clone_of("people_task", |urls| {
            migrate(&urls.people_task_owner, migrations);
        })
    }

    /// Creates a database whose schemas are both migrated, like [`TestDatabase::users`].
    pub fn migrated(users: EmbeddedMigrations, people_task: EmbeddedMigrations) -> Self {
        Self::clone_of("migrated", |urls| {
            migrate(&urls.users_owner, users);
            migrate(&urls.people_task_owner, people_task);
        })
    }

    fn clone_of(kind: &str, migrate: impl FnOnce(&Roles)) -> Self {
        let mut server = server();
        let template = template(&mut server, kind, migrate);
        let name = format!("test_{}", hex::encode(rand::random::<[u8; 8]>()));
        let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
        execute(&mut server, &create);
        let urls = servers().postgres.roles_of(&name).unwrap();
        Self {
            superusers: Connections::pool(servers().postgres.admin_url_of(&name).unwrap()),
            people_task: Connections::pool(urls.people_task_service.clone()),
            name,
            urls,
        }
    }

    /// Returns `DATABASE_URL` of the user service and its workers.
    pub fn users_url(&self) -> Secret {
        Secret::new(&*self.urls.users_service)
    }

    /// Returns `DATABASE_OWNER_URL` of the user service and its workers.
    pub fn users_owner_url(&self) -> Secret {
        Secret::new(&*self.urls.users_owner)
    }

    /// Returns `DATABASE_URL` of the people-task service and its worker.
    pub fn people_task_url(&self) -> Secret {
        Secret::new(&*self.urls.people_task_service)
    }

    /// Returns `DATABASE_OWNER_URL` of the people-task service and its worker.
    pub fn people_task_owner_url(&self) -> Secret {
        Secret::new(&*self.urls.people_task_owner)
    }

    /// Returns a connection as superuser, to inspect and damage rows.
    pub fn admin(&self) -> TestConnection {
        take(&self.superusers)
    }

    /// Returns a connection as the people-task service has them.
    pub fn people_task_connection(&self) -> TestConnection {
        take(&self.people_task)
    }

    /// Makes the database unavailable, by closing all connections and refusing new ones, or available again.
    pub fn set_reachable(&self, reachable: bool) {
        self.alter(&format!("ALLOW_CONNECTIONS {reachable}"));
        if !reachable {
            // A process of Postgres that begins locks its database until it is in pg_stat_activity, which is read second.
            let close = format!(
                "SELECT pg_terminate_backend(pid) FROM (
                    SELECT pid FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_database'::regclass
                        AND objid = (SELECT oid FROM pg_database WHERE datname = '{name}')
                    UNION ALL SELECT pid FROM pg_stat_activity WHERE datname = '{name}'
                ) AS processes",
                name = self.name
            );
            execute(&mut server(), &close);
        }
    }

    /// Returns the superuser's URL, for client programs.
    pub fn admin_url(&self) -> String {
        servers().postgres.admin_url_of(&self.name).unwrap()
    }

    /// Changes the database by the rest of a statement `ALTER DATABASE`.
    pub fn alter(&self, change: &str) {
        let alter = format!("ALTER DATABASE {} {change}", self.name);
        execute(&mut server(), &alter);
    }

    /// Returns all rows of a schema that contain a text, as `table: row`, to prove that nothing is left. Rows of
    /// partitions are rows of the partitioned table.
    pub fn rows_that_hold(&self, schema: &str, text: &str) -> Vec<String> {
        let mut admin = self.admin();
        let text = quoted(&text.to_lowercase());
        let tables = lines(
            &mut admin,
            &format!(
                "SELECT relname::text AS line FROM pg_class
                WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition"
            ),
        );
        let rows = tables.iter().flat_map(|table| {
            let rows = format!(
                "SELECT '{table}: ' || t::text AS line FROM {schema}.{table} AS t
                WHERE lower(t::text) LIKE '%' || {text} || '%'"
            );
            lines(&mut admin, &rows)
        });
        rows.collect()
    }

    /// Returns the columns of both schemas, as `schema.table.column`, that contain a text or its bytes, to prove
    /// that secrets are not stored.
    pub fn columns_that_hold(&self, text: &str) -> Vec<String> {
        let mut admin = self.admin();
        let (text, bytes) = (quoted(text), quoted(&hex::encode(text)));
        let columns = lines(
            &mut admin,
            "SELECT format('%s.%s.%s', table_schema, table_name, column_name) AS line
            FROM information_schema.columns WHERE table_schema IN ('users', 'people_task')
                AND NOT (SELECT relispartition FROM pg_class WHERE oid = format('%I.%I', table_schema, table_name)::regclass)
            ORDER BY 1",
        );
        let found = columns.iter().flat_map(|name| {
            let (table, column) = name.rsplit_once('.').unwrap();
            let found = format!(
                "SELECT '{name}' AS line WHERE EXISTS (SELECT FROM {table}
                WHERE position({text} IN \"{column}\"::text) > 0 OR position({bytes} IN \"{column}\"::text) > 0)"
            );
            lines(&mut admin, &found)
        });
        found.collect()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // A failing test must show its own failure, so a failure here is ignored. The server is temporary.
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        if let Ok(mut server) = server_pool().get() {
            let _ = diesel::sql_query(drop).execute(&mut server);
        }
    }
}

fn take(pool: &Pool<Connections>) -> TestConnection {
    pool.get().expect("the test server must be reachable")
}

/// The connections to the database that every server has.
fn server_pool() -> &'static Pool<Connections> {
    static POOL: OnceLock<Pool<Connections>> = OnceLock::new();
    POOL.get_or_init(|| Connections::pool(servers().postgres.admin_url.clone()))
}

fn server() -> TestConnection {
    take(server_pool())
}

fn execute(connection: &mut PgConnection, sql: &str) {
    diesel::sql_query(sql).execute(connection).unwrap();
}

fn migrate(owner: &str, migrations: EmbeddedMigrations) {
    let mut connection = PgConnection::establish(owner).unwrap();
    connection.run_pending_migrations(migrations).unwrap();
}

/// Returns the template of this kind and of this build of the test program. The first test creates it.
fn template(admin: &mut PgConnection, kind: &str, migrate: impl FnOnce(&Roles)) -> String {
    let name = template_name(kind);
    execute(admin, &format!("SELECT pg_advisory_lock({TEMPLATE_LOCK})"));
    let existing =
        format!("SELECT datname::text AS line FROM pg_database WHERE datname = '{name}'");
    if lines(admin, &existing).is_empty() {
        create_template(admin, &name, migrate);
    }
    execute(
        admin,
        &format!("SELECT pg_advisory_unlock({TEMPLATE_LOCK})"),
    );
    name
}

/// Each build has its own template, because its migrations may differ, and so has each day (of UTC), because they create the
/// partitions of the months and days that follow.
fn template_name(kind: &str) -> String {
    let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let program = std::env::current_exe().unwrap();
    let built = program.metadata().and_then(|m| m.modified()).unwrap();
    let built = since_epoch(built).as_millis();
    let day = since_epoch(SystemTime::now()).as_secs() / 86_400;
    let stem = program.file_stem().unwrap().to_string_lossy().into_owned();
    let stem = stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    // Postgres cuts names after 63 bytes; this one has at most 57. The hash of the build is at the end of the stem.
    let stem = &stem[stem.len().saturating_sub(16)..];
    format!("template_{stem}_{kind}_{built}_{day}")
}

fn create_template(admin: &mut PgConnection, name: &str, migrate: impl FnOnce(&Roles)) {
    // The database is renamed when it is complete, so that a crash does not leave an incomplete template.
    let draft = format!("draft_{}", hex::encode(rand::random::<[u8; 8]>()));
    execute(admin, &format!("CREATE DATABASE {draft}"));
    let postgres = &servers().postgres;
    let url = postgres.admin_url_of(&draft).unwrap();
    migrate(&bootstrap::run(&url, &postgres.passwords).unwrap());
    execute(admin, &format!("ALTER DATABASE {draft} RENAME TO {name}"));
}

/// A text as a literal of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The column `line` of a query's rows.
pub fn lines(connection: &mut PgConnection, sql: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Line {
        #[diesel(sql_type = Text)]
        line: String,
    }
    let lines: Vec<Line> = diesel::sql_query(sql).load(connection).unwrap();
    lines.into_iter().map(|line| line.line).collect()
}

/// How many rows and index entries of some tables, separated by commas, this connection has read in its transaction.
pub fn rows_read(connection: &mut PgConnection, tables: &str) -> u64 {
    let read = format!(
        "SELECT sum(pg_stat_get_xact_tuples_returned(oid))::text AS line FROM (
            SELECT unnest('{{{tables}}}'::regclass[]) AS oid
            UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = ANY ('{{{tables}}}'::regclass[])
        ) AS relations"
    );
    lines(connection, &read)[0].parse().unwrap()
}
