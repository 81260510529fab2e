//! Both servers of one folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    Description, Error, Postgres, RabbitMq, Result, RolePasswords,
    description::PostgresDescription,
    packages::{self, Need},
    ports,
    process::Identity,
    rabbitmq, random,
};

/// What becomes of the data when the machine fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Every commit is on the disk.
    Durable,
    /// The data are thrown away anyway, so nothing waits for the disk.
    Discardable,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is asked to stop and given time.
    Graceful,
    /// SIGKILL.
    Kill,
}

/// Which servers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Postgres and RabbitMQ.
    Both,
    /// The database alone, when there is a broker elsewhere.
    Postgres,
    /// The broker alone, when there is a database elsewhere.
    RabbitMq,
}

impl Parts {
    /// The packages that they come from.
    #[must_use]
    pub fn needs(self) -> &'static [Need] {
        match self {
            Self::Both => &[Need::Postgres, Need::RabbitMq, Need::Psql],
            Self::Postgres => &[Need::Postgres, Need::Psql],
            Self::RabbitMq => &[Need::RabbitMq],
        }
    }
}

/// Where servers run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Everything of theirs is in this folder.
    pub folder: PathBuf,
    /// What becomes of their data.
    pub durability: Durability,
    /// Which of them.
    pub parts: Parts,
}

/// A private Postgres and a private RabbitMQ.
#[derive(Debug)]
pub struct Servers {
    /// The database server.
    pub postgres: Postgres,
    /// The broker.
    pub rabbitmq: RabbitMq,
    passwords: RolePasswords,
}

/// What has to be the same after a restart.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    durability: Durability,
    postgres_port: u16,
    postgres_password: String,
    rabbitmq_ports: rabbitmq::Ports,
    rabbitmq_password: String,
    rabbitmq_node: String,
    role_passwords: RolePasswords,
}

impl State {
    fn new(options: &Options) -> Result<Self> {
        let [postgres_port, amqp, management, distribution, epmd] = ports::free()?;
        Ok(Self {
            durability: options.durability,
            postgres_port,
            postgres_password: random::password()?,
            rabbitmq_ports: rabbitmq::Ports {
                amqp,
                management,
                distribution,
                epmd,
            },
            rabbitmq_password: random::password()?,
            rabbitmq_node: format!("local-{}@localhost", random::short_hash(&options.folder)),
            role_passwords: RolePasswords::random()?,
        })
    }

    fn read(folder: &Path) -> Result<Option<Self>> {
        let path = Self::path(folder);
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|source| Error::State { path, source }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file("reading", path)(error)),
        }
    }

    fn write(&self, folder: &Path) -> Result<()> {
        let path = Self::path(folder);
        let text = serde_json::to_string_pretty(self).map_err(|source| Error::State {
            path: path.clone(),
            source,
        })?;
        random::write_private(&path, text.as_bytes())
    }

    fn path(folder: &Path) -> PathBuf {
        folder.join("servers.json")
    }
}

impl Servers {
    /// Starts them on `options.folder`, or finds them running there, and waits until they are ready.
    /// Packages that are missing are installed. Ports, passwords and data are those of the last time;
    /// a port that somebody else has taken is replaced.
    ///
    /// # Errors
    /// When packages cannot be installed or a server does not become ready; nothing is left running then.
    pub fn start(options: &Options, say: &dyn Fn(&str)) -> Result<Self> {
        packages::ensure(options.parts.needs(), say)?;
        fs::create_dir_all(&options.folder).map_err(Error::file("creating", &options.folder))?;
        let folder = options
            .folder
            .canonicalize()
            .map_err(Error::file("finding", &options.folder))?;
        let options = Options {
            folder,
            ..options.clone()
        };
        let mut state = match State::read(&options.folder)? {
            Some(state) => state,
            None => State::new(&options)?,
        };
        state.durability = options.durability;
        let mut servers = Self::of(&options.folder, &state)?;
        if servers.move_from_taken_ports(&mut state)? {
            servers = Self::of(&options.folder, &state)?;
        }
        state.write(&options.folder)?;
        let started = servers.start_parts(options.parts);
        if started.is_err() {
            servers.stop(Stop::Kill)?;
        }
        started.map(|()| servers)
    }

    /// The servers of a folder, running or not; `None` when there never were any.
    ///
    /// # Errors
    /// When the folder's state is damaged or the programs are not installed.
    pub fn find(folder: &Path) -> Result<Option<Self>> {
        let Some(state) = State::read(folder)? else {
            return Ok(None);
        };
        let folder = folder
            .canonicalize()
            .map_err(Error::file("finding", folder))?;
        Self::of(&folder, &state).map(Some)
    }

    /// Stops both, their children and the port mapper; what does not run is no mistake.
    ///
    /// # Errors
    /// When a process stays; the other server was stopped nevertheless.
    pub fn stop(&self, how: Stop) -> Result<()> {
        let postgres = self.postgres.stop(how);
        let rabbitmq = self.rabbitmq.stop(how);
        postgres.and(rabbitmq)
    }

    /// Kills whatever runs in `folder` and removes the folder with all data.
    ///
    /// # Errors
    /// When a process stays or a file cannot be removed.
    pub fn discard(folder: &Path) -> Result<()> {
        if let Ok(Some(servers)) = Self::find(folder) {
            servers.stop(Stop::Kill)?;
            servers.postgres.discard()?;
        }
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file("removing", folder)(error))
            }
            _ => Ok(()),
        }
    }

    /// Where they are, with credentials.
    #[must_use]
    pub fn description(&self) -> Description {
        Description {
            postgres: PostgresDescription {
                admin_url: self.postgres.admin_url(),
                passwords: self.passwords.clone(),
            },
            rabbitmq: self.rabbitmq.description(),
        }
    }

    fn of(folder: &Path, state: &State) -> Result<Self> {
        Ok(Self {
            postgres: Postgres::new(
                &folder.join("postgres"),
                state.postgres_port,
                &state.postgres_password,
                state.durability,
            )?,
            rabbitmq: RabbitMq::new(
                &folder.join("rabbitmq"),
                state.rabbitmq_ports,
                &state.rabbitmq_password,
                &state.rabbitmq_node,
                state.durability,
            ),
            passwords: state.role_passwords.clone(),
        })
    }

    /// Says whether a port was changed.
    fn move_from_taken_ports(&self, state: &mut State) -> Result<bool> {
        let mut moved = false;
        let mut settle = |port: &mut u16| -> Result<()> {
            let free = ports::preferably(*port)?;
            moved |= free != *port;
            *port = free;
            Ok(())
        };
        if !self.postgres.is_running() {
            settle(&mut state.postgres_port)?;
        }
        if !self.rabbitmq.is_running() {
            // A port mapper without its server is of no use and may hold the port.
            self.rabbitmq.stop(Stop::Kill)?;
            let ports = &mut state.rabbitmq_ports;
            for port in [
                &mut ports.amqp,
                &mut ports.management,
                &mut ports.distribution,
                &mut ports.epmd,
            ] {
                settle(port)?;
            }
        }
        Ok(moved)
    }

    fn start_parts(&self, parts: Parts) -> Result<()> {
        // The broker takes longer, so it starts first and is waited for last.
        if parts != Parts::Postgres {
            self.rabbitmq.spawn()?;
        }
        if parts != Parts::RabbitMq {
            self.postgres.spawn()?;
            self.postgres.wait_ready()?;
        }
        if parts != Parts::Postgres {
            self.rabbitmq.wait_ready()?;
        }
        Ok(())
    }
}

/// Remembers one process across programs.
#[derive(Debug)]
pub(crate) struct PidFile {
    path: PathBuf,
}

impl PidFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The remembered process, if it still runs.
    pub(crate) fn running(&self) -> Option<Identity> {
        let text = fs::read_to_string(&self.path).ok()?;
        serde_json::from_str::<Identity>(&text)
            .ok()
            .filter(Identity::is_alive)
    }

    pub(crate) fn write(&self, process: Identity) -> Result<()> {
        let text = serde_json::to_string(&process).map_err(|source| Error::State {
            path: self.path.clone(),
            source,
        })?;
        fs::write(&self.path, text).map_err(Error::file("writing", &self.path))
    }

    pub(crate) fn remove(&self) {
        // One that is not there is as good as removed; one that stays names an ended process.
        let _ = fs::remove_file(&self.path);
    }
}
