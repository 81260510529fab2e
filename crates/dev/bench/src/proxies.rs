//! HAProxy and nginx in front of a small response.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use local_stack::{Detached, EndOnDrop, packages, ports, tail};
use rig::instance::{self, MARKER};
use rig::{Workspace, interrupt};

use crate::http::{Connection, request};

pub(crate) const HAPROXY: &str = "haproxy";
pub(crate) const NGINX: &str = "nginx";
const READY_LIMIT: Duration = Duration::from_secs(10);
const UNAUTHORIZED: u16 = 401;
/// What stands for the addresses of [`Proxies`] in the files.
const NAMES: [&str; 4] = ["{origin}", "{nginx}", "{haproxy}", "{verifying}"];

/// A token that is signed with ES256 and valid until 2100. It has about as many claims as a token of the system. `token.pem` verifies it.
/// The key that signed it was not kept.
pub(crate) const TOKEN: &str = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IjAxMjM0NTY3ODlhYmNk\
    ZWYwMTIzNDU2Nzg5YWJjZGVmIn0.eyJpc3MiOiJiZW5jaCIsImF1ZCI6ImJlbmNoIiwic3ViIjoiMDEyMzQ1Njc4OWF\
    iY2RlZjAxMjM0NTY3Iiwic2NvcGUiOlsidXNlciJdLCJlcG9jaCI6MCwiaWF0IjoxNzY3MjI1NjAwLCJleHAiOjQxMDI\
    0NDQ4MDB9.8IrQ3LKAXGyNbOmKrKhsuzvIQO_SNepSgCxX886jaIDgOaMPAFLvINML_qa8VQR3g4M5uDNTfsvpbEEWsGbYtg";

/// The running proxies. Dropping it ends them.
pub(crate) struct Proxies {
    /// nginx with a constant response.
    pub(crate) origin: SocketAddr,
    pub(crate) nginx: SocketAddr,
    pub(crate) haproxy: SocketAddr,
    /// HAProxy that verifies tokens.
    pub(crate) verifying: SocketAddr,
    running: [(&'static str, EndOnDrop); 2],
}

impl Proxies {
    /// Starts the origin and all proxies to it, and checks that one of them verifies tokens.
    pub(crate) async fn start(workspace: &Workspace) -> Result<Self> {
        let folder = folder(workspace);
        fs::create_dir_all(&folder)?;
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let addresses = ports::free()?.map(address);
        configure(&folder, addresses)?;
        // Only root may name a user, and without one nginx would drop to another.
        let is_root = nix::unistd::geteuid().is_root();
        let user = if is_root { "user root;" } else { "" };
        let nginx_options = ["-p", ".", "-c", "nginx.conf", "-g", user];
        let haproxy_options = ["-db", "-f", "haproxy.cfg"];
        let running = [
            start(workspace, NGINX, &nginx_options)?,
            start(workspace, HAPROXY, &haproxy_options)?,
        ];
        await_listening(&folder, addresses)?;
        let [origin, nginx, haproxy, verifying] = addresses;
        ensure_verifying(verifying).await?;
        Ok(Self {
            origin,
            nginx,
            haproxy,
            verifying,
            running,
        })
    }

    pub(crate) fn processes(&self) -> BTreeMap<String, i32> {
        let running = self.running.iter();
        let running = running.map(|(name, process)| ((*name).to_owned(), process.0.pid));
        running.collect()
    }
}

/// Writes the files of both programs, with the addresses.
fn configure(folder: &Path, addresses: [SocketAddr; 4]) -> Result<()> {
    for (file, template) in [
        ("token.pem", include_str!("proxies/token.pem")),
        ("nginx.conf", include_str!("proxies/nginx.conf")),
        ("haproxy.cfg", include_str!("proxies/haproxy.cfg")),
    ] {
        let mut text = template.to_owned();
        for (name, address) in NAMES.into_iter().zip(addresses) {
            text = text.replace(name, &address.to_string());
        }
        fs::write(folder.join(file), text)?;
    }
    Ok(())
}

fn await_listening(folder: &Path, addresses: [SocketAddr; 4]) -> Result<()> {
    for address in addresses {
        let connect = || TcpStream::connect(address).ok();
        let listens = interrupt::wait_until(READY_LIMIT, connect)?.is_some();
        let logs = || [NGINX, HAPROXY].map(|name| tail(&folder.join(format!("{name}.log")), 10));
        ensure!(
            listens,
            "no proxy listens at {address}: {}",
            logs().join("\n")
        );
    }
    Ok(())
}

/// Fails unless a request without a token is refused, and one whose token has another signature.
async fn ensure_verifying(address: SocketAddr) -> Result<()> {
    let (message, _) = TOKEN.rsplit_once('.').unwrap_or_default();
    let forged = format!("{message}.{}AQ", "AQEB".repeat(21));
    for token in [None, Some(forged.as_str())] {
        let mut connection = Connection::open(address).await?;
        let response = connection.call(&request("GET", "/", token, None)).await?;
        let is_refused = response.status == UNAUTHORIZED;
        ensure!(is_refused, "HAProxy verifies no tokens");
    }
    Ok(())
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.local.join("proxies")
}

/// Starts a program in the folder of its files.
fn start(
    workspace: &Workspace,
    name: &'static str,
    options: &[&str],
) -> Result<(&'static str, EndOnDrop)> {
    let folder = folder(workspace);
    let program = packages::system_program(name)?;
    let mut detached = Detached::new(&program, &folder.join(format!("{name}.log")));
    let command = detached.command.current_dir(folder).args(options);
    // One that survives is found by it when the run ends.
    command.env(MARKER, instance::mark(workspace)?);
    Ok((name, EndOnDrop(detached.spawn()?)))
}
