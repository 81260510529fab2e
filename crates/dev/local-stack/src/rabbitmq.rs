//! A private RabbitMQ server with its own port mapper and the management plugin.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::{
    Durability, Error, Result, Stop,
    description::RabbitMqDescription,
    packages,
    pid_file::PidFile,
    process::{Detached, Identity, tail, wait_until},
};

const READY_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const USERNAME: &str = "countersign";

/// The four ports of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    pub(crate) amqp: u16,
    pub(crate) management: u16,
    pub(crate) distribution: u16,
    pub(crate) epmd: u16,
}

/// A private RabbitMQ server. All its ports are on 127.0.0.1, including that of Erlang's port mapper.
#[derive(Debug, Clone)]
pub struct RabbitMq {
    folder: PathBuf,
    ports: Ports,
    password: String,
    node: String,
    durability: Durability,
}

impl RabbitMq {
    pub(crate) fn new(
        folder: &Path,
        ports: Ports,
        password: &str,
        node: &str,
        durability: Durability,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            ports,
            password: password.to_owned(),
            node: node.to_owned(),
            durability,
        }
    }

    /// Returns the URLs and credentials of the server.
    #[must_use]
    pub fn description(&self) -> RabbitMqDescription {
        RabbitMqDescription {
            amqp_url: format!(
                "amqp://{USERNAME}:{}@127.0.0.1:{}/%2f",
                self.password, self.ports.amqp
            ),
            management_url: format!("http://127.0.0.1:{}", self.ports.management),
            username: USERNAME.to_owned(),
            password: self.password.clone(),
        }
    }

    /// Returns whether the server is running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process().is_some()
    }

    /// Returns the server's first process, if it is running. The others are its descendants.
    #[must_use]
    pub fn process(&self) -> Option<Identity> {
        self.pid_file().running()
    }

    /// Starts the server without waiting until it is ready.
    ///
    /// # Errors
    /// When its files cannot be written or a program does not start.
    pub fn spawn(&self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        self.write_configuration()?;
        self.spawn_port_mapper()?;
        let mut server = Detached::new(&packages::rabbitmq_server()?, &self.log());
        let command = server.command();
        command
            .env_clear()
            .current_dir(&self.folder)
            .envs(self.environment());
        self.pid_file().write(server.spawn()?)
    }

    /// Waits until AMQP and the management API are available.
    ///
    /// # Errors
    /// When the server ends or is not ready within two minutes. The error has the end of its log.
    pub fn wait_ready(&self) -> Result<()> {
        let accepts = || self.is_amqp_ready() && self.is_management_ready();
        self.pid_file()
            .wait_ready("RabbitMQ", READY_LIMIT, self.log(), accepts)
    }

    /// Stops the server and its port mapper. Does nothing when they are not running.
    ///
    /// # Errors
    /// When a process does not end.
    pub fn stop(&self, how: Stop) -> Result<()> {
        if let Some(process) = self.pid_file().running() {
            match how {
                Stop::Graceful => process.stop(Signal::SIGTERM, STOP_LIMIT)?,
                Stop::Kill => process.kill()?,
            }
        }
        self.pid_file().remove();
        if let Some(process) = self.port_mapper_pid_file().running() {
            process.kill()?;
        }
        self.port_mapper_pid_file().remove();
        Ok(())
    }

    /// Starts a port mapper. Erlang would start one itself and never stop it. This one is stopped with the
    /// server.
    fn spawn_port_mapper(&self) -> Result<()> {
        if self.port_mapper_pid_file().running().is_some() {
            return Ok(());
        }
        let program = packages::on_path("epmd").ok_or_else(|| Error::NotFound {
            what: "epmd, Erlang's port mapper".to_owned(),
        })?;
        let mut mapper = Detached::new(&program, &self.log());
        mapper
            .command()
            .env_clear()
            .current_dir(&self.folder)
            .args([
                "-address",
                "127.0.0.1",
                "-port",
                &self.ports.epmd.to_string(),
            ]);
        let process = mapper.spawn()?;
        self.port_mapper_pid_file().write(process)?;
        let listens = wait_until(Duration::from_secs(10), || {
            connect(self.ports.epmd).map(drop)
        });
        listens.ok_or_else(|| Error::NotReady {
            server: "Erlang's port mapper",
            what: "did not listen within ten seconds".to_owned(),
            log: self.log(),
            tail: tail(&self.log(), 10),
        })
    }

    fn log(&self) -> PathBuf {
        self.folder.join("rabbitmq.log")
    }

    fn pid_file(&self) -> PidFile {
        PidFile::new(self.folder.join("rabbitmq.pid"))
    }

    fn port_mapper_pid_file(&self) -> PidFile {
        PidFile::new(self.folder.join("epmd.pid"))
    }

    fn write_configuration(&self) -> Result<()> {
        for folder in ["home", "mnesia", "log", "conf.d"] {
            let folder = self.folder.join(folder);
            fs::create_dir_all(&folder).map_err(Error::file("creating", &folder))?;
        }
        for (name, content) in [
            ("rabbitmq.conf", self.configuration()),
            ("advanced.config", "[].\n".to_owned()),
            ("rabbitmq-env.conf", String::new()),
            ("enabled_plugins", "[rabbitmq_management].\n".to_owned()),
        ] {
            let file = self.folder.join(name);
            fs::write(&file, content).map_err(Error::file("writing", &file))?;
        }
        Ok(())
    }

    fn configuration(&self) -> String {
        // Discardable data may be on a disk that is almost full.
        let disk_limit = if self.durability == Durability::Discardable {
            "10MB"
        } else {
            "100MB"
        };
        format!(
            "listeners.tcp.1 = 127.0.0.1:{amqp}\n\
             management.tcp.ip = 127.0.0.1\n\
             management.tcp.port = {management}\n\
             default_user = {USERNAME}\n\
             default_pass = {password}\n\
             vm_memory_high_watermark.absolute = 1GB\n\
             disk_free_limit.absolute = {disk_limit}\n\
             raft.wal_max_size_bytes = 67108864\n\
             log.file = false\n\
             log.console = true\n\
             log.console.level = warning\n",
            amqp = self.ports.amqp,
            management = self.ports.management,
            password = self.password,
        )
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let inside = |name: &str| self.folder.join(name).display().to_string();
        vec![
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("LANG", "C.UTF-8".to_owned()),
            ("HOME", inside("home")),
            ("ERL_EPMD_PORT", self.ports.epmd.to_string()),
            ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
            ("RABBITMQ_NODENAME", self.node.clone()),
            ("RABBITMQ_DIST_PORT", self.ports.distribution.to_string()),
            ("RABBITMQ_CONF_ENV_FILE", inside("rabbitmq-env.conf")),
            ("RABBITMQ_CONFIG_FILE", inside("rabbitmq.conf")),
            ("RABBITMQ_CONFIG_FILES", inside("conf.d")),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", inside("advanced.config")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", inside("enabled_plugins")),
            ("RABBITMQ_MNESIA_BASE", inside("mnesia")),
            ("RABBITMQ_LOG_BASE", inside("log")),
            ("RABBITMQ_PID_FILE", inside("mnesia/node.pid")),
            (
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1}".to_owned(),
            ),
            // Makes the start script replace itself by the server instead of waiting for it.
            ("RUNNING_UNDER_SYSTEMD", "true".to_owned()),
        ]
    }

    /// Sends the protocol header and expects any frame on channel 0.
    fn is_amqp_ready(&self) -> bool {
        let Some(mut stream) = connect(self.ports.amqp) else {
            return false;
        };
        let mut start = [0; 3];
        stream.write_all(b"AMQP\x00\x00\x09\x01").is_ok()
            && stream.read_exact(&mut start).is_ok()
            && start == [1, 0, 0]
    }

    fn is_management_ready(&self) -> bool {
        let Some(mut stream) = connect(self.ports.management) else {
            return false;
        };
        let credentials = STANDARD.encode(format!("{USERNAME}:{}", self.password));
        let request = format!(
            "GET /api/vhosts HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {credentials}\r\nConnection: close\r\n\r\n"
        );
        let mut start = [0; 12];
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_exact(&mut start).is_ok()
            && start == *b"HTTP/1.1 200"
    }
}

fn connect(port: u16) -> Option<TcpStream> {
    let limit = Duration::from_secs(2);
    let stream =
        TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    Some(stream)
}
