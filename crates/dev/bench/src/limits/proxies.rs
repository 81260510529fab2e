//! HAProxy and nginx in front of a small response.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use local_stack::packages::{self, Need};
use local_stack::ports;
use local_stack::process::{Detached, Identity, tail};
use xtask::environment::MARKER;
use xtask::output::say;
use xtask::workspace::Workspace;

use crate::http::load::{Pace, send};
use crate::http::request::request;
use crate::report::statistics;

const READY_LIMIT: Duration = Duration::from_secs(10);
/// As many as the gateway has.
const THREADS: usize = 2;

/// Requests per second through each proxy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    /// nginx itself, without a proxy.
    pub(crate) direct: f64,
    pub(crate) haproxy: f64,
    pub(crate) nginx: f64,
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
    Ok(packages::ensure(&[Need::HaProxy, Need::Nginx], &say)?)
}

/// Measures `requests` through each proxy, over as many connections as the gateway gets.
pub(crate) async fn measure(workspace: &Workspace, requests: usize) -> anyhow::Result<Rates> {
    let folder = workspace.local().join("proxies");
    fs::create_dir_all(&folder)?;
    let [origin, nginx, haproxy] = ports::free()?;
    let nginx_file = folder.join("nginx.conf");
    fs::write(&nginx_file, nginx_configuration(&folder, origin, nginx))?;
    let haproxy_file = folder.join("haproxy.cfg");
    fs::write(&haproxy_file, haproxy_configuration(origin, haproxy))?;
    let _nginx = start(workspace, "nginx", &["-c"], &nginx_file)?;
    let _haproxy = start(workspace, "haproxy", &["-db", "-f"], &haproxy_file)?;
    for (port, name) in [(origin, "nginx"), (nginx, "nginx"), (haproxy, "haproxy")] {
        wait_until_listening(port, &folder.join(format!("{name}.log"))).await?;
    }
    Ok(Rates {
        direct: rate(origin, requests).await?,
        haproxy: rate(haproxy, requests).await?,
        nginx: rate(nginx, requests).await?,
    })
}

async fn rate(port: u16, count: usize) -> anyhow::Result<f64> {
    let requests = vec![request("GET", "/", None, None); count];
    let calls = send((Ipv4Addr::LOCALHOST, port).into(), &requests, Pace::FULL).await?;
    Ok(statistics::rate(&calls))
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
    command.env(MARKER, workspace.local());
    Ok(Process(detached.spawn()?))
}

async fn wait_until_listening(port: u16, log: &Path) -> anyhow::Result<()> {
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, port).into();
    let end = Instant::now() + READY_LIMIT;
    while tokio::net::TcpStream::connect(address).await.is_err() {
        let log = || tail(log, 10);
        ensure!(Instant::now() < end, "no proxy listens: {}", log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// The origin and a proxy to it. Only root may name a user, and without one nginx would drop to another.
fn nginx_configuration(folder: &Path, origin: u16, proxy: u16) -> String {
    let user = if nix::unistd::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let folder = folder.display();
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
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; keepalive_requests 10000000; }}
    server {{
        listen 127.0.0.1:{origin};
        location / {{ default_type application/json; return 200 '{{"status":"pending"}}'; }}
    }}
    server {{
        listen 127.0.0.1:{proxy};
        location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header connection ""; }}
    }}
}}
"#
    )
}

fn haproxy_configuration(origin: u16, proxy: u16) -> String {
    format!(
        "global
    nbthread {THREADS}
    maxconn 2048
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend proxy
    bind 127.0.0.1:{proxy}
    default_backend origin
backend origin
    server origin 127.0.0.1:{origin}
"
    )
}

/// The versions of both programs, for the report.
pub(crate) fn versions() -> anyhow::Result<Vec<String>> {
    let mut versions = Vec::new();
    for (name, option) in [("haproxy", "-v"), ("nginx", "-v")] {
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
