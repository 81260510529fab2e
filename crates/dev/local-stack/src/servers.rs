//! Postgres and RabbitMQ, started and stopped together.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    Description, Durability, Error, Options, Parts, Postgres, RabbitMq, Result, RolePasswords,
    Stop, description::PostgresDescription, packages, ports, rabbitmq, random,
};

/// A private Postgres and a private RabbitMQ.
#[derive(Debug)]
pub struct Servers {
    /// The database server.
    pub postgres: Postgres,
    /// The broker.
    pub rabbitmq: RabbitMq,
    passwords: RolePasswords,
}

/// The state that must survive a restart.
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
    /// Starts the servers in `options.folder`, unless they are running, and waits until they are ready.
    /// Missing packages are installed. Ports, passwords and data are kept from the last start, but a port
    /// that another program has taken is replaced.
    ///
    /// # Errors
    /// When packages cannot be installed or a server does not become ready. Then nothing is left running.
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
        let mut servers = Self::new(&options.folder, &state)?;
        if servers.replace_taken_ports(&mut state)? {
            servers = Self::new(&options.folder, &state)?;
        }
        state.write(&options.folder)?;
        let started = servers.start_parts(options.parts);
        if started.is_err() {
            servers.stop(Stop::Kill)?;
        }
        started.map(|()| servers)
    }

    /// Returns the servers of a folder, running or not. `None` when none was ever started there.
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
        Self::new(&folder, &state).map(Some)
    }

    /// Stops both servers, their children and the port mapper. Does nothing to what is not running.
    ///
    /// # Errors
    /// When a process does not end. The other server is stopped anyway.
    pub fn stop(&self, how: Stop) -> Result<()> {
        let postgres = self.postgres.stop(how);
        let rabbitmq = self.rabbitmq.stop(how);
        postgres.and(rabbitmq)
    }

    /// Kills the servers of `folder` and removes the folder with all data.
    ///
    /// # Errors
    /// When a process does not end or a file cannot be removed.
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

    /// Returns their URLs and credentials.
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

    fn new(folder: &Path, state: &State) -> Result<Self> {
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

    /// Replaces ports that other programs have taken. Returns whether any was replaced.
    fn replace_taken_ports(&self, state: &mut State) -> Result<bool> {
        let mut replaced = false;
        let mut ensure_free = |port: &mut u16| -> Result<()> {
            let free = ports::prefer(*port)?;
            replaced |= free != *port;
            *port = free;
            Ok(())
        };
        if !self.postgres.is_running() {
            ensure_free(&mut state.postgres_port)?;
        }
        if !self.rabbitmq.is_running() {
            // A port mapper that outlived its server may hold the port.
            self.rabbitmq.stop(Stop::Kill)?;
            let ports = &mut state.rabbitmq_ports;
            for port in [
                &mut ports.amqp,
                &mut ports.management,
                &mut ports.distribution,
                &mut ports.epmd,
            ] {
                ensure_free(port)?;
            }
        }
        Ok(replaced)
    }

    fn start_parts(&self, parts: Parts) -> Result<()> {
        // The broker takes longer, so it starts first and is awaited last.
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
