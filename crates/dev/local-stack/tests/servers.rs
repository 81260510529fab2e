//! Starts, kills, restarts and stops the real servers.
#![expect(
    clippy::unwrap_used,
    reason = "what is shared by tests may panic like the tests themselves"
)]

use std::{
    ffi::OsString,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use local_stack::{Description, Layout, Servers, Stop, bootstrap, packages, private, wait_until};
use procfs::process::all_processes;
use procfs::{Current as _, SharedMemorySegments, Shm};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(10);

fn quiet(_: &str) {}

#[derive(Clone)]
struct Options {
    folder: PathBuf,
    layout: Layout,
}

impl Options {
    fn start(&self) -> Servers {
        Servers::start(&self.folder, self.layout, &quiet).unwrap()
    }
}

fn options(base: &Path, layout: Layout) -> Options {
    Options {
        folder: base.join("servers"),
        layout,
    }
}

/// A temporary folder that the database server's user can reach.
fn reachable_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Returns what `psql` prints for a query.
fn query(url: &str, sql: &str) -> Result<String, String> {
    let output = Command::new(packages::postgres_client("psql").unwrap())
        .args([
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            "--dbname",
            url,
            "--command",
            sql,
        ])
        .output()
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

/// Returns the processes whose command line, working directory or environment contains the folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let needle = folder.display().to_string();
    let contains_folder = |value: &OsString| value.to_string_lossy().contains(&needle);
    all_processes()
        .unwrap()
        .filter_map(|process| {
            let process = process.ok()?;
            let command = process.cmdline().ok()?.join(" ");
            let environment = process.environ().unwrap_or_default();
            let is_inside = process.cwd().is_ok_and(|cwd| cwd.starts_with(folder));
            (is_inside || command.contains(&needle) || environment.values().any(contains_folder))
                .then_some(command)
        })
        .collect()
}

/// Returns the identifiers of the selected segments of shared memory.
fn shared_memory(selected: impl Fn(&Shm) -> bool) -> Vec<u64> {
    let SharedMemorySegments(all) = SharedMemorySegments::current().unwrap();
    let selected = all.iter().filter(|segment| selected(segment));
    selected.map(|segment| segment.shmid).collect()
}

/// Stops the servers even if the test fails.
struct Discarded(Options);

impl Drop for Discarded {
    fn drop(&mut self) {
        let _ = Servers::discard(&self.0.folder);
    }
}

/// Checks that a database of another encoding is refused, and that nothing was changed.
fn assert_only_utf8_is_prepared(description: &Description) {
    let latin =
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
    let postgres = description.postgres.admin_url_of("postgres").unwrap();
    query(&postgres, latin).unwrap();
    let latin = description.postgres.admin_url_of("latin").unwrap();
    let refused = bootstrap::run(&latin, &description.postgres.passwords);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("must have UTF8"), "{refused}");
    let roles = query(
        &latin,
        "SELECT count(*) FROM pg_roles WHERE rolname LIKE '%\\_service'",
    );
    assert_eq!(roles.unwrap(), "0");
}

#[test]
fn servers_survive_a_crash_and_leave_nothing_behind_when_discarded() {
    let base = reachable_folder();
    let options = options(base.path(), Layout::SINGLE);
    let _discarded = Discarded(options.clone());
    let servers = options.start();
    let description = servers.description();

    let admin_url = description.postgres.admin_url_of("countersign").unwrap();
    assert_only_utf8_is_prepared(&description);
    bootstrap::run(&admin_url, &description.postgres.passwords).unwrap();
    let urls = bootstrap::run(&admin_url, &description.postgres.passwords).unwrap();
    assert_eq!(urls, description.postgres.roles_of("countersign").unwrap());
    assert_roles_are_separated(&urls);

    // Both servers are killed, and restarted with the committed data.
    servers.postgres.stop(Stop::Kill).unwrap();
    servers.rabbitmq.stop(Stop::Kill).unwrap();
    assert!(query(&admin_url, "SELECT 1").is_err());
    assert_eq!(processes_of(&options.folder), Vec::<String>::new());
    let again = options.start();
    assert_eq!(again.description(), description);
    assert_eq!(
        query(&urls.users_service, "SELECT name FROM t").unwrap(),
        "x"
    );

    // A description can be written and read back.
    let file = base.path().join("description.json");
    private::write_json(&file, &description).unwrap();
    let read: Option<Description> = private::read_json(&file).unwrap();
    assert_eq!(read, Some(description));

    let start = Instant::now();
    again.stop(Stop::Graceful).unwrap();
    assert!(start.elapsed() < Duration::from_secs(40));
    again.stop(Stop::Graceful).unwrap();
    assert_eq!(processes_of(&options.folder), Vec::<String>::new());

    Servers::discard(&options.folder).unwrap();
    assert!(!options.folder.exists());
}

#[test]
fn a_folder_of_the_name_of_a_removed_one_has_servers_of_its_own() {
    let base = reachable_folder();
    let layout = Layout {
        rabbitmq: false,
        ..Layout::SINGLE
    };
    let options = options(base.path(), layout);
    let _discarded = Discarded(options.clone());
    let servers = options.start();
    query(&servers.postgres.admin_url(), "CREATE TABLE t ()").unwrap();
    servers.stop(Stop::Kill).unwrap();
    fs::remove_dir_all(&options.folder).unwrap();

    let url = options.start().postgres.admin_url();
    let tables = query(&url, "SELECT to_regclass('t') IS NULL");
    assert_eq!(tables.as_deref(), Ok("t"));
}

#[test]
fn data_that_were_not_completed_are_made_again() {
    let base = reachable_folder();
    let layout = Layout {
        rabbitmq: false,
        ..Layout::SINGLE
    };
    let options = options(base.path(), layout);
    let _discarded = Discarded(options.clone());
    let servers = options.start();
    let data = query(&servers.postgres.admin_url(), "SHOW data_directory");
    let data = PathBuf::from(data.unwrap());
    servers.stop(Stop::Kill).unwrap();
    // What an `initdb` leaves that is killed.
    fs::remove_dir_all(data.join("global")).unwrap();
    let password_file = data.with_extension("password");
    fs::write(&password_file, "").unwrap();

    let url = options.start().postgres.admin_url();
    assert_eq!(query(&url, "SELECT 1").as_deref(), Ok("1"));
    assert!(!password_file.exists());
}

#[test]
fn a_promoted_standby_has_every_commit_and_the_killed_primary_follows_it() {
    let base = reachable_folder();
    let layout = Layout {
        rabbitmq: false,
        standby: true,
        ..Layout::SINGLE
    };
    let options = options(base.path(), layout);
    let _discarded = Discarded(options.clone());
    let servers = options.start();
    let (first, second) = (
        &servers.postgres,
        servers.postgres_standby.as_ref().unwrap(),
    );
    let (first_url, second_url) = (first.admin_url(), second.admin_url());
    query(&first_url, "CREATE TABLE t AS SELECT 1 AS n").unwrap();
    let synchronous = "SELECT sync_state FROM pg_stat_replication";
    assert_eq!(query(&first_url, synchronous).unwrap(), "sync");
    let refused = query(&second_url, "INSERT INTO t VALUES (2)").unwrap_err();
    assert!(refused.contains("read-only"), "{refused}");

    first.stop(Stop::Kill).unwrap();
    second.promote().unwrap();
    query(&second_url, "INSERT INTO t VALUES (2)").unwrap();
    first.follow(second).unwrap();
    second.set_synchronous(true).unwrap();
    query(&second_url, "INSERT INTO t VALUES (3)").unwrap();
    let rows = || query(&first_url, "SELECT string_agg(n::text, ',') FROM t").unwrap();
    let replayed = wait_until(LIMIT, || (rows() == "1,2,3").then_some(()));
    assert!(replayed.is_some(), "{}", rows());

    let pids = [first, second].map(|server| server.process().unwrap().pid);
    let memory = shared_memory(|segment| segment.nattch > 0 && pids.contains(&segment.cpid));
    assert_eq!(memory.len(), 2);
    Servers::discard(&options.folder).unwrap();
    assert_eq!(processes_of(&options.folder), Vec::<String>::new());
    let left = shared_memory(|segment| memory.contains(&segment.shmid));
    assert_eq!(left, Vec::<u64>::new());
}

fn assert_roles_are_separated(urls: &bootstrap::Roles) {
    query(
        &urls.users_owner,
        "CREATE TABLE t (name text); INSERT INTO t VALUES ('x')",
    )
    .unwrap();
    assert_eq!(
        query(&urls.users_service, "SELECT name FROM t").unwrap(),
        "x"
    );
    assert_eq!(
        query(&urls.users_service, "SHOW search_path").unwrap(),
        "users, public"
    );
    for (url, statement) in [
        (&urls.users_service, "CREATE TABLE mine (id int)"),
        (&urls.people_task_service, "SELECT name FROM users.t"),
        (&urls.people_task_owner, "SELECT name FROM users.t"),
        (&urls.users_owner, "CREATE TABLE people_task.t (id int)"),
        (&urls.users_owner, "CREATE TABLE public.t (id int)"),
    ] {
        let error = query(url, statement).unwrap_err();
        assert!(error.contains("permission denied"), "{statement}: {error}");
    }
}
