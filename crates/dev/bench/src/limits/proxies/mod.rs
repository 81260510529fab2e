//! HAProxy and nginx in front of a small response.

mod configuration;
mod token;

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use local_stack::packages::{self, Need};
use local_stack::ports;
use local_stack::process::{Detached, Identity, tail};
use rig::environment::MARKER;
use rig::instance;
use rig::output::say;
use rig::workspace::Workspace;

use self::configuration::Addresses;
use self::token::{ISSUER, SignedToken};
use crate::http::connection::Connection;
use crate::http::request::request;

/// The name of HAProxy's process.
pub(crate) const HAPROXY: &str = "haproxy";
/// The name of nginx's processes.
pub(crate) const NGINX: &str = "nginx";
const READY_LIMIT: Duration = Duration::from_secs(10);
const UNAUTHORIZED: u16 = 401;

/// The running proxies. Dropping it ends them.
pub(crate) struct Proxies {
    pub(crate) addresses: Addresses,
    /// A token that the verifying HAProxy accepts.
    pub(crate) token: String,
    nginx: Process,
    haproxy: Process,
}

/// A proxy's process. Dropping it ends the process and its children.
struct Process(Identity);

impl Drop for Process {
    fn drop(&mut self) {
        // One that survives is found by the marker when the run ends.
        let _ = self.0.kill();
    }
}

/// Installs the proxies if they are missing.
pub(crate) fn install() -> anyhow::Result<()> {
    packages::ensure(&[Need::HaProxy, Need::Nginx], &say)
}

impl Proxies {
    /// Starts the origin and all proxies to it, and checks that one of them verifies tokens.
    pub(crate) async fn start(workspace: &Workspace) -> anyhow::Result<Self> {
        let folder = workspace.local().join("proxies");
        fs::create_dir_all(&folder)?;
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let [origin, nginx, haproxy, verifying] = ports::free()?.map(address);
        let addresses = Addresses {
            origin,
            nginx,
            haproxy,
            verifying,
        };
        let signed = SignedToken::create()?;
        fs::write(folder.join("token.pem"), &signed.public_key)?;
        let nginx_file = folder.join("nginx.conf");
        fs::write(&nginx_file, configuration::nginx(&folder, addresses))?;
        let haproxy_file = folder.join("haproxy.cfg");
        let haproxy_text = configuration::haproxy(&folder, addresses, ISSUER);
        fs::write(&haproxy_file, haproxy_text)?;
        let proxies = Self {
            addresses,
            token: signed.token.clone(),
            nginx: start(workspace, NGINX, &["-c"], &nginx_file)?,
            haproxy: start(workspace, HAPROXY, &["-db", "-f"], &haproxy_file)?,
        };
        for (address, name) in [
            (origin, NGINX),
            (nginx, NGINX),
            (haproxy, HAPROXY),
            (verifying, HAPROXY),
        ] {
            wait_until_listening(address, &folder.join(format!("{name}.log"))).await?;
        }
        for refused in [None, Some(signed.forged())] {
            let status = status(verifying, refused.as_deref()).await?;
            ensure!(status == UNAUTHORIZED, "HAProxy verifies no tokens");
        }
        Ok(proxies)
    }

    /// The processes by name.
    pub(crate) fn processes(&self) -> BTreeMap<String, i32> {
        BTreeMap::from([
            (NGINX.to_owned(), self.nginx.0.pid),
            (HAPROXY.to_owned(), self.haproxy.0.pid),
        ])
    }
}

async fn status(address: SocketAddr, token: Option<&str>) -> anyhow::Result<u16> {
    let mut connection = Connection::open(address).await?;
    let response = connection.call(&request("GET", "/", token, None)).await?;
    Ok(response.status)
}

fn start(
    workspace: &Workspace,
    name: &str,
    options: &[&str],
    file: &Path,
) -> anyhow::Result<Process> {
    let program = packages::system_program(name)?;
    let log = file.with_file_name(format!("{name}.log"));
    let mut detached = Detached::new(&program, &log);
    let command = detached.command();
    command.args(options).arg(file);
    command.env(MARKER, instance::mark(workspace)?);
    Ok(Process(detached.spawn()?))
}

async fn wait_until_listening(address: SocketAddr, log: &Path) -> anyhow::Result<()> {
    let end = Instant::now() + READY_LIMIT;
    while tokio::net::TcpStream::connect(address).await.is_err() {
        let log = || tail(log, 10);
        ensure!(Instant::now() < end, "no proxy listens: {}", log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// The versions of both programs, for the report.
pub(crate) fn versions() -> anyhow::Result<Vec<String>> {
    let mut versions = Vec::new();
    for (name, option) in [(HAPROXY, "-v"), (NGINX, "-v")] {
        let Ok(program) = packages::system_program(name) else {
            continue;
        };
        let output = std::process::Command::new(program)
            .arg(option)
            .output()
            .with_context(|| format!("running {name}"))?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        versions.extend(text.lines().next().map(str::to_owned));
    }
    Ok(versions)
}
