//! A private Postgres server.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::unistd::{User, chown, geteuid};

use crate::pid_file::PidFile;
use crate::private::{self, failed};
use crate::process::{Detached, Identity, holds_within, output_of, succeeds};
use crate::{Durability, Stop, bootstrap, client, packages, random};

const READY_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(20);
const STREAMING_LIMIT: Duration = Duration::from_secs(30);
const MEMORY: &str = "/dev/shm";
/// The least size in bytes of a file system in memory that holds data.
const LEAST_MEMORY: u64 = 6 << 30;
/// The language of translated messages. gettext reads it from the environment for any locale but C, so that tests need
/// no German locale on the machine.
const MESSAGES_LANGUAGE: &str = "de";
const SETTINGS: [&str; 9] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=400",
    "timezone=UTC",
    "log_timezone=UTC",
    "logging_collector=off",
    "log_min_messages=warning",
    // A standby that was stopped for a while can still stream.
    "wal_keep_size=256MB",
    "wal_retrieve_retry_interval=1s",
];
/// Data is lost only if the machine fails. A commit still waits until the operating system has it (`synchronous_commit` stays
/// on), so a killed server loses nothing.
const DISCARDABLE: [&str; 4] = [
    "fsync=off",
    "full_page_writes=off",
    // Shared memory of a killed server goes with its data.
    "dynamic_shared_memory_type=mmap",
    // English, except in a database that sets it to another locale, such as C.UTF-8.
    "lc_messages=C",
];
/// The only row is `t` or `f`.
const IS_STREAMING: &str =
    "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')";

/// A private Postgres server. The superuser is `postgres`, and it listens only on 127.0.0.1.
#[derive(Debug, Clone)]
pub struct Postgres {
    /// Holds the log and the pid file.
    folder: PathBuf,
    /// Holds the data: see `data_folder`.
    data: PathBuf,
    pub port: u16,
    password: String,
    durability: Durability,
    /// The user of the server, if it is not the present one. Postgres refuses to run as root, so root starts it as Debian's
    /// user `postgres`.
    user: Option<User>,
}

impl Postgres {
    pub(crate) fn new(
        folder: &Path,
        port: u16,
        password: &str,
        durability: Durability,
    ) -> Result<Self> {
        private::create_reachable_folder(folder)?;
        // Without this user the Debian package is missing, too, and `initialise` fails with an error that says so.
        let find_user = || User::from_name("postgres").ok().flatten();
        let user = geteuid().is_root().then(find_user).flatten();
        Ok(Self {
            folder: folder.to_owned(),
            data: data_folder(folder, user.as_ref(), durability)?,
            port,
            password: password.to_owned(),
            durability,
            user,
        })
    }

    /// Returns the superuser's URL for the database `postgres`. It turns off TLS and Kerberos, which the server
    /// does not have, to save time at each connection.
    pub fn admin_url(&self) -> String {
        format!(
            "postgres://postgres:{}@127.0.0.1:{}/postgres?sslmode=disable&gssencmode=disable",
            self.password, self.port
        )
    }

    /// Returns the server's first process, if it is running. The others are its descendants.
    pub fn process(&self) -> Option<Identity> {
        self.pid_file().running()
    }

    /// Starts the server without waiting until it is ready. The first start creates its data.
    pub fn spawn(&self) -> Result<()> {
        self.pid_file().start(|log| {
            // An `initdb` that was killed leaves both files.
            if !self.data.join("PG_VERSION").is_file() || self.password_file().exists() {
                self.initialise()?;
            }
            let mut server = Detached::new(&packages::postgres_programs()?.join("postgres"), log);
            let command = &mut server.command;
            command.arg("-D").arg(&self.data);
            command.arg("-c").arg(format!("port={}", self.port));
            command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
            self.as_user(command);
            if self.durability == Durability::Discardable {
                command.args(DISCARDABLE.iter().flat_map(|setting| ["-c", setting]));
                command.env("LANGUAGE", MESSAGES_LANGUAGE);
            }
            Ok(server)
        })
    }

    /// Waits until the server accepts connections, at most a minute. The error has the end of its log.
    pub fn wait_ready(&self) -> Result<()> {
        let accepts = || {
            packages::postgres_client("pg_isready").is_ok_and(|program| {
                let mut command = Command::new(program);
                command.args(["--quiet", "--host=127.0.0.1", "--timeout=2"]);
                succeeds(command.arg(format!("--port={}", self.port)))
            })
        };
        self.pid_file().wait_ready("Postgres", READY_LIMIT, accepts)
    }

    /// Stops the server. Does nothing when it is not running.
    pub fn stop(&self, how: Stop) -> Result<()> {
        // A "fast" shutdown disconnects clients and writes the data.
        self.pid_file().stop(how, Signal::SIGINT, STOP_LIMIT)?;
        // A killed server leaves this file. No other server uses these data, because it was just stopped.
        let _ = fs::remove_file(self.data.join("postmaster.pid"));
        Ok(())
    }

    /// Removes the data. The server must have been stopped.
    pub fn discard(&self) -> Result<()> {
        for folder in [&self.data, &self.files_copy()] {
            private::remove_folder(folder)?;
        }
        // Usually it is missing.
        let _ = fs::remove_file(self.password_file());
        if let Some(parent) = self.data.parent().filter(|parent| *parent != self.folder) {
            // The folder among the temporary files is empty now.
            let _ = fs::remove_dir(parent);
        }
        Ok(())
    }

    /// Copies all files of the server, which must have been stopped. Replaces an earlier copy.
    pub fn copy_files(&self) -> Result<()> {
        copy(&self.data, &self.files_copy())
    }

    /// Replaces all files of the server, which must have been stopped, by the copy. It continues as after a power failure.
    pub fn restore_files(&self) -> Result<()> {
        copy(&self.files_copy(), &self.data)
    }

    /// The same, and it continues by recovery to a point in time: on a new timeline.
    pub fn recover_files(&self) -> Result<()> {
        self.restore_files()?;
        let signal = self.data.join("recovery.signal");
        fs::write(&signal, "").with_context(failed("writing", &signal))?;
        self.give_to_user(&signal)?;
        // There is no archive: recovery ends with the copy.
        let settings = self.data.join("postgresql.auto.conf");
        OpenOptions::new()
            .append(true)
            .open(&settings)
            .and_then(|mut file| file.write_all(b"restore_command = 'false'\n"))
            .with_context(failed("writing", &settings))
    }

    fn files_copy(&self) -> PathBuf {
        self.data.with_extension("copy")
    }

    /// Exists until the data are complete.
    fn password_file(&self) -> PathBuf {
        self.data.with_extension("password")
    }

    /// Replaces this server's data by a base backup of `primary`, and starts it as a standby. Returns when it
    /// streams.
    pub fn follow(&self, primary: &Self) -> Result<()> {
        self.stop(Stop::Kill)?;
        self.discard()?;
        private::create_folder(&self.data)?;
        self.give_to_user(&self.data)?;
        let mut command = client::command("pg_basebackup", &primary.admin_url())?;
        command.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]);
        command.arg("--pgdata").arg(&self.data);
        self.as_user(&mut command);
        // The settings of the environment are removed, and so is the password if the environment has one, too.
        command.env("PGPASSWORD", &primary.password);
        output_of(&mut command)?;
        self.spawn()?;
        self.wait_ready()?;
        primary.wait_streaming()
    }

    /// Waits until a standby of this server streams.
    pub fn wait_streaming(&self) -> Result<()> {
        let rows = || client::query(&self.admin_url(), IS_STREAMING);
        let streams = holds_within(STREAMING_LIMIT, || rows().is_ok_and(|rows| rows == "t"));
        ensure!(streams, "no standby streams");
        Ok(())
    }

    /// Makes this standby the primary. Returns when it accepts writes. Its former primary must have been stopped.
    pub fn promote(&self) -> Result<()> {
        let promote = "SELECT pg_promote(wait => true, wait_seconds => 60)";
        let promoted = client::query(&self.admin_url(), promote)?;
        ensure!(promoted == "t", "the standby was not promoted");
        Ok(())
    }

    /// Sets whether each commit on this server waits until a standby has written it to disk.
    pub fn set_synchronous(&self, synchronous: bool) -> Result<()> {
        let names = if synchronous { "*" } else { "" };
        // `ALTER SYSTEM` cannot run in the transaction that two statements of one `--command` would be.
        let script = format!(
            "ALTER SYSTEM SET synchronous_standby_names = '{names}';\nSELECT pg_reload_conf();\n"
        );
        bootstrap::execute(&self.admin_url(), &script)
    }

    fn pid_file(&self) -> PidFile {
        let log = self.folder.join("postgres.log");
        PidFile::new(self.folder.join("postgres.pid"), log)
    }

    fn initialise(&self) -> Result<()> {
        ensure!(
            self.user.is_some() || !geteuid().is_root(),
            "cannot find the user postgres, as which root must start the database server"
        );
        // An interrupted run leaves a folder that initdb refuses.
        self.discard()?;
        private::create_folder(&self.data)?;
        let password_file = self.password_file();
        private::write(&password_file, self.password.as_bytes())?;
        for path in [&self.data, &password_file] {
            self.give_to_user(path)?;
        }
        let mut command = Command::new(packages::postgres_programs()?.join("initdb"));
        command
            .arg("-D")
            .arg(&self.data)
            .arg("--pwfile")
            .arg(&password_file)
            .args(self.authentication())
            .args(["--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"])
            .arg("--no-sync");
        self.as_user(&mut command);
        output_of(&mut command)?;
        fs::remove_file(&password_file).with_context(failed("removing", &password_file))
    }

    /// How roles authenticate. The server listens only on the loopback address.
    ///
    /// libpq crashes when a process exits while SCRAM uses OpenSSL, and tests end while connections are being
    /// opened, so servers for tests ask for the password itself. They compare its MD5: the thousands of rounds of SCRAM
    /// would take a tenth of the processor during the tests.
    fn authentication(&self) -> [&'static str; 2] {
        match self.durability {
            // Sockets are off. Their method makes `initdb` choose how passwords are stored.
            Durability::Discardable => ["--auth-local=md5", "--auth-host=password"],
            Durability::Durable => ["--auth-local=scram-sha-256", "--auth-host=scram-sha-256"],
        }
    }

    fn give_to_user(&self, path: &Path) -> Result<()> {
        let Some(user) = &self.user else {
            return Ok(());
        };
        chown(path, Some(user.uid), Some(user.gid))
            .with_context(failed("changing the owner of", path))
    }

    fn as_user(&self, command: &mut Command) {
        command.current_dir(&self.data).env("LC_ALL", "C.UTF-8");
        // These are meant for another server.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG"))
        {
            command.env_remove(name);
        }
        run_as(command, self.user.as_ref());
    }
}

fn run_as<'command>(command: &'command mut Command, user: Option<&User>) -> &'command mut Command {
    match user {
        Some(user) => command.uid(user.uid.as_raw()).gid(user.gid.as_raw()),
        None => command,
    }
}

/// Copies a folder with owners and permissions, in place of an existing one.
fn copy(from: &Path, to: &Path) -> Result<()> {
    private::remove_folder(to)?;
    output_of(Command::new("cp").arg("--archive").args([from, to])).map(drop)
}

/// Returns `folder/data`, or a folder among the temporary files when the server's user has no access to
/// `folder`, such as to a project in root's home. Data of tests is in memory, if there is enough: each of their
/// databases has hundreds of files, which some file systems take longer to create than the test takes.
fn data_folder(folder: &Path, user: Option<&User>, durability: Durability) -> Result<PathBuf> {
    let parent = if durability == Durability::Discardable && has_memory() {
        PathBuf::from(MEMORY)
    } else if user.is_none() || succeeds(run_as(Command::new("test").arg("-x").arg(folder), user)) {
        return Ok(folder.join("data"));
    } else {
        std::env::temp_dir()
    };
    let folder = parent.join(format!("local-postgres-{}", random::short_hash(folder)));
    private::create_reachable_folder(&folder)?;
    let owner = fs::symlink_metadata(&folder).with_context(failed("reading", &folder))?;
    let is_own = owner.is_dir() && owner.uid() == geteuid().as_raw();
    ensure!(is_own, "another user owns the folder {}", folder.display());
    Ok(folder.join("data"))
}

/// Whether the file system in memory may hold the data of tests. Its size decides, which does not change, so that the data
/// is found again.
fn has_memory() -> bool {
    statfs(MEMORY).is_ok_and(|memory| {
        let block = u64::try_from(memory.block_size()).unwrap_or_default();
        memory.filesystem_type() == TMPFS_MAGIC && memory.blocks() * block >= LEAST_MEMORY
    })
}
