//! A private RabbitMQ server with its own port mapper and the management plugin.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::description::RabbitMqDescription;
use crate::pid_file::PidFile;
use crate::process::{Detached, Identity, output_of, tail, wait_until};
use crate::{Durability, Stop, packages, private};

const READY_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const USERNAME: &str = "countersign";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    pub(crate) amqp: u16,
    pub(crate) management: u16,
    pub(crate) distribution: u16,
    pub(crate) epmd: u16,
}

impl Ports {
    pub(crate) fn take(mut next: impl FnMut() -> Result<u16>) -> Result<Self> {
        Ok(Self {
            amqp: next()?,
            management: next()?,
            distribution: next()?,
            epmd: next()?,
        })
    }
}

/// A private RabbitMQ server. All its ports are on 127.0.0.1, including that of Erlang's port mapper.
#[derive(Debug, Clone)]
pub struct RabbitMq {
    pub(crate) folder: PathBuf,
    pub(crate) ports: Ports,
    pub(crate) password: String,
    pub(crate) node: String,
    pub(crate) durability: Durability,
    /// The names of all nodes. Several are a cluster. The first one is started before the others, which use its port mapper.
    pub(crate) nodes: Vec<String>,
    /// The secret by which the nodes of a cluster know each other.
    pub(crate) cookie: String,
}

impl RabbitMq {
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

    pub fn amqp_port(&self) -> u16 {
        self.ports.amqp
    }

    /// Returns the server's first process, if it is running. The others are its descendants.
    pub fn process(&self) -> Option<Identity> {
        self.pid_file().running()
    }

    /// Starts the server without waiting until it is ready.
    pub fn spawn(&self) -> Result<()> {
        self.pid_file().start(|log| {
            self.write_configuration()?;
            self.spawn_port_mapper()?;
            let mut server = Detached::new(&packages::rabbitmq_server()?, log);
            self.set_environment(&mut server.command);
            Ok(server)
        })
    }

    /// Waits until AMQP and the management API are available, at most two minutes. The error has the end of its log.
    pub fn wait_ready(&self) -> Result<()> {
        let authorization = self.description().authorization();
        let request = format!(
            "GET /api/vhosts HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {authorization}\r\nConnection: close\r\n\r\n"
        );
        // The first answer to the protocol header of AMQP is a frame on channel 0.
        let accepts = || {
            answers(self.ports.amqp, b"AMQP\x00\x00\x09\x01", &[1, 0, 0])
                && answers(self.ports.management, request.as_bytes(), b"HTTP/1.1 200")
        };
        self.pid_file().wait_ready("RabbitMQ", READY_LIMIT, accepts)
    }

    /// Stops the server, and its port mapper unless it is a node of a cluster. Does nothing when they are not running.
    pub fn stop(&self, how: Stop) -> Result<()> {
        self.pid_file().stop(how, Signal::SIGTERM, STOP_LIMIT)?;
        if self.is_in_cluster() {
            return Ok(());
        }
        self.stop_port_mapper()
    }

    /// Removes all queues and messages. The server must have been stopped.
    pub fn discard(&self) -> Result<()> {
        private::remove_folder(&self.folder.join("mnesia"))
    }

    fn is_in_cluster(&self) -> bool {
        self.nodes.len() > 1
    }

    pub(crate) fn stop_port_mapper(&self) -> Result<()> {
        let mapper = self.port_mapper_pid_file();
        mapper.stop(Stop::Kill, Signal::SIGTERM, STOP_LIMIT)
    }

    /// Cuts the node off from the others of its cluster, as a broken network would. It stays reachable for clients until it
    /// notices that it is in the minority.
    pub fn cut_off(&self) -> Result<()> {
        // With another cookie, nodes refuse each other.
        self.for_each_peer("erlang:set_cookie(Peer, cut_off), erlang:disconnect_node(Peer)")
    }

    /// Ends [`RabbitMq::cut_off`]. The node joins the others again by itself.
    pub fn reconnect(&self) -> Result<()> {
        self.for_each_peer("erlang:set_cookie(Peer, erlang:get_cookie())")
    }

    fn for_each_peer(&self, expressions: &str) -> Result<()> {
        let nodes = self.nodes.iter().filter(|node| **node != self.node);
        let peers: Vec<_> = nodes.map(|node| format!("'{node}'")).collect();
        let peers = peers.join(", ");
        let call = format!("[begin {expressions} end || Peer <- [{peers}]].");
        let program = packages::rabbitmq_server()?.with_file_name("rabbitmqctl");
        let mut control = Command::new(program);
        self.set_environment(&mut control);
        output_of(control.args(["--node", &self.node, "eval", &call])).map(drop)
    }

    /// Starts a port mapper. Erlang would start one itself and never stop it. This one is stopped with the
    /// server.
    fn spawn_port_mapper(&self) -> Result<()> {
        let owns_mapper = self.nodes.first() == Some(&self.node);
        let pid_file = self.port_mapper_pid_file();
        if !owns_mapper || pid_file.running().is_some() {
            return Ok(());
        }
        let port = self.ports.epmd;
        pid_file.start(|log| {
            let program = packages::on_path("epmd");
            let program = program.context("cannot find epmd, Erlang's port mapper")?;
            let mut mapper = Detached::new(&program, log);
            let command = mapper.command.env_clear().current_dir(&self.folder);
            command.args(["-address", "127.0.0.1", "-port", &port.to_string()]);
            Ok(mapper)
        })?;
        let listens = wait_until(Duration::from_secs(10), || connect(port).map(drop));
        let end = || tail(&self.log(), 10);
        listens.with_context(|| format!("epmd did not listen within ten seconds:\n{}", end()))
    }

    fn log(&self) -> PathBuf {
        self.folder.join("rabbitmq.log")
    }

    fn pid_file(&self) -> PidFile {
        PidFile::new(self.folder.join("rabbitmq.pid"), self.log())
    }

    fn port_mapper_pid_file(&self) -> PidFile {
        PidFile::new(self.folder.join("epmd.pid"), self.log())
    }

    fn write_configuration(&self) -> Result<()> {
        private::create_folder(&self.folder)?;
        for folder in ["home", "mnesia", "log", "conf.d"] {
            private::create_folder(&self.folder.join(folder))?;
        }
        let cookie = self.folder.join("home/.erlang.cookie");
        if self.is_in_cluster() && !cookie.exists() {
            private::write(&cookie, self.cookie.as_bytes())?;
        }
        let advanced = if self.is_in_cluster() {
            // Nodes that do not respond are noticed after some seconds instead of a minute.
            "[{kernel, [{net_ticktime, 8}]}].\n"
        } else {
            "[].\n"
        };
        for (name, content) in [
            ("rabbitmq.conf", self.configuration()),
            ("advanced.config", advanced.to_owned()),
            ("rabbitmq-env.conf", String::new()),
            ("enabled_plugins", "[rabbitmq_management].\n".to_owned()),
        ] {
            // One of them has the password.
            private::write(&self.folder.join(name), content.as_bytes())?;
        }
        Ok(())
    }

    fn cluster_configuration(&self) -> String {
        if !self.is_in_cluster() {
            return String::new();
        }
        let mut lines = "cluster_partition_handling = pause_minority\n\
            cluster_formation.peer_discovery_backend = classic_config\n"
            .to_owned();
        for (number, node) in (1..).zip(&self.nodes) {
            lines += &format!("cluster_formation.classic_config.nodes.{number} = {node}\n");
        }
        lines
    }

    fn configuration(&self) -> String {
        // Discardable data may be on a disk that is almost full.
        let disk_limit = if self.durability == Durability::Discardable {
            "10MB"
        } else {
            "100MB"
        };
        format!(
            include_str!("rabbitmq.conf"),
            amqp = self.ports.amqp,
            management = self.ports.management,
            username = USERNAME,
            password = self.password,
            disk_limit = disk_limit,
            cluster = self.cluster_configuration()
        )
    }

    /// What the programs of the server need to find its folder and its ports.
    fn set_environment(&self, command: &mut Command) {
        let inside = |name: &str| self.folder.join(name).display().to_string();
        command.env_clear().current_dir(&self.folder).envs([
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
        ]);
    }
}

/// Whether the response to what is sent begins with these bytes.
fn answers(port: u16, request: &[u8], expected: &[u8]) -> bool {
    connect(port).is_some_and(|mut stream| {
        let mut start = vec![0; expected.len()];
        stream.write_all(request).is_ok()
            && stream.read_exact(&mut start).is_ok()
            && start == expected
    })
}

fn connect(port: u16) -> Option<TcpStream> {
    let limit = Duration::from_secs(2);
    let stream =
        TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    Some(stream)
}
