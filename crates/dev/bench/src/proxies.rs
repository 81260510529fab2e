//! HAProxy and nginx in front of a small response.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use local_stack::packages;
use local_stack::ports;
use local_stack::process::{Detached, EndOnDrop, tail};
use rig::instance::{self, MARKER};
use rig::interrupt;
use rig::workspace::Workspace;

use crate::http::connection::{Connection, request};

pub(crate) const HAPROXY: &str = "haproxy";
pub(crate) const NGINX: &str = "nginx";
const READY_LIMIT: Duration = Duration::from_secs(10);
const UNAUTHORIZED: u16 = 401;

/// A token that is signed with ES256 and valid until 2100. It has about as many claims as a token of the system.
pub(crate) const TOKEN: &str = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IjAxMjM0NTY3ODlhYmNk\
    ZWYwMTIzNDU2Nzg5YWJjZGVmIn0.eyJpc3MiOiJiZW5jaCIsImF1ZCI6ImJlbmNoIiwic3ViIjoiMDEyMzQ1Njc4OWF\
    iY2RlZjAxMjM0NTY3Iiwic2NvcGUiOlsidXNlciJdLCJlcG9jaCI6MCwiaWF0IjoxNzY3MjI1NjAwLCJleHAiOjQxMDI\
    0NDQ4MDB9.8IrQ3LKAXGyNbOmKrKhsuzvIQO_SNepSgCxX886jaIDgOaMPAFLvINML_qa8VQR3g4M5uDNTfsvpbEEWsGbYtg";
/// The key that verifies it. The key that signed it was not kept.
const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEMkjdoldPvYyJA3xaFAbM7uz7ScO
TFECtn74vjma/LOdUzpV/JDm35lGpne7c0Q0FS/Q7n5lsG1tGacv32cE/A==
-----END PUBLIC KEY-----
";
/// As many as the gateway has on two cores.
const THREADS: usize = 2;

/// The running proxies. Dropping it ends them.
pub(crate) struct Proxies {
    pub(crate) addresses: Addresses,
    nginx: EndOnDrop,
    haproxy: EndOnDrop,
}

impl Proxies {
    /// Starts the origin and all proxies to it, and checks that one of them verifies tokens.
    pub(crate) async fn start(workspace: &Workspace) -> anyhow::Result<Self> {
        let folder = workspace.local.join("proxies");
        fs::create_dir_all(&folder)?;
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let [origin, nginx, haproxy, verifying] = ports::free()?.map(address);
        let addresses = Addresses {
            origin,
            nginx,
            haproxy,
            verifying,
        };
        fs::write(folder.join("token.pem"), PUBLIC_KEY)?;
        let nginx_file = folder.join("nginx.conf");
        fs::write(&nginx_file, nginx_configuration(&folder, addresses))?;
        let haproxy_file = folder.join("haproxy.cfg");
        fs::write(&haproxy_file, haproxy_configuration(&folder, addresses))?;
        let proxies = Self {
            addresses,
            nginx: start(workspace, NGINX, &["-c"], &nginx_file)?,
            haproxy: start(workspace, HAPROXY, &["-db", "-f"], &haproxy_file)?,
        };
        for (address, name) in [
            (origin, NGINX),
            (nginx, NGINX),
            (haproxy, HAPROXY),
            (verifying, HAPROXY),
        ] {
            let connect = || TcpStream::connect(address).ok();
            let listens = interrupt::wait_until(READY_LIMIT, connect)?.is_some();
            let log = || tail(&folder.join(format!("{name}.log")), 10);
            ensure!(listens, "no proxy listens: {}", log());
        }
        ensure_verifying(verifying).await?;
        Ok(proxies)
    }

    pub(crate) fn processes(&self) -> BTreeMap<String, i32> {
        BTreeMap::from([
            (NGINX.to_owned(), self.nginx.0.pid),
            (HAPROXY.to_owned(), self.haproxy.0.pid),
        ])
    }
}

/// Fails unless a request without a token is refused, and one whose token has another signature.
async fn ensure_verifying(address: SocketAddr) -> anyhow::Result<()> {
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

fn start(
    workspace: &Workspace,
    name: &str,
    options: &[&str],
    file: &Path,
) -> anyhow::Result<EndOnDrop> {
    let program = packages::system_program(name)?;
    let log = file.with_file_name(format!("{name}.log"));
    let mut detached = Detached::new(&program, &log);
    let command = &mut detached.command;
    command.args(options).arg(file);
    // One that survives is found by it when the run ends.
    command.env(MARKER, instance::mark(workspace)?);
    detached.spawn().map(EndOnDrop)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    /// nginx with a constant response.
    pub(crate) origin: SocketAddr,
    pub(crate) nginx: SocketAddr,
    pub(crate) haproxy: SocketAddr,
    /// HAProxy that verifies tokens.
    pub(crate) verifying: SocketAddr,
}

/// The origin and a proxy to it. Only root may name a user, and without one nginx would drop to another.
fn nginx_configuration(folder: &Path, addresses: Addresses) -> String {
    let is_root = nix::unistd::geteuid().is_root();
    let user = if is_root { "user root;" } else { "" };
    let folder = folder.display();
    let Addresses { origin, nginx, .. } = addresses;
    format!(
        r#"{user}
daemon off;
worker_processes {THREADS};
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 10000000;
    upstream origin {{ server {origin}; keepalive 64; keepalive_requests 10000000; }}
    server {{
        listen {origin};
        location / {{ default_type application/json; return 200 '{{"status":"pending"}}'; }}
    }}
    server {{
        listen {nginx};
        location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header connection ""; }}
    }}
}}
"#
    )
}

/// A frontend that only proxies, and one that refuses requests without a valid ES256 token. HAProxy 2.6 verifies no
/// Ed25519.
fn haproxy_configuration(folder: &Path, addresses: Addresses) -> String {
    let folder = folder.display();
    let Addresses {
        origin,
        haproxy,
        verifying,
        ..
    } = addresses;
    format!(
        r#"global
    nbthread {THREADS}
    maxconn 2048
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend proxy
    bind {haproxy}
    default_backend origin
frontend verifying
    bind {verifying}
    http-request set-var(txn.bearer) http_auth_bearer
    http-request set-var(txn.alg) var(txn.bearer),jwt_header_query('$.alg')
    http-request set-var(txn.iss) var(txn.bearer),jwt_payload_query('$.iss')
    http-request set-var(txn.exp) var(txn.bearer),jwt_payload_query('$.exp','int')
    http-request set-var(txn.now) date()
    http-request deny deny_status 401 unless {{ var(txn.alg) -m str ES256 }}
    http-request deny deny_status 401 unless {{ var(txn.iss) -m str bench }}
    http-request deny deny_status 401 if {{ var(txn.exp),sub(txn.now) -m int lt 0 }}
    http-request deny deny_status 401 unless {{ var(txn.bearer),jwt_verify(txn.alg,"{folder}/token.pem") -m int 1 }}
    default_backend origin
backend origin
    server origin {origin}
"#
    )
}
