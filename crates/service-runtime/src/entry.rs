use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use actix_web::web::{Data, get};
use actix_web::{App, HttpResponse};
use anyhow::Context as _;
use app_config::{Reader, Settings};
use http_kit::Health;
use metrics_exporter_prometheus::PrometheusHandle;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use telemetry::LogSettings;
use tokio::signal::unix::{SignalKind, signal};

use crate::{HttpServerSettings, Running, bind, serve};

/// Settings of every process.
#[derive(Debug, Clone)]
pub struct ProcessSettings {
    /// What is logged.
    pub log: LogSettings,
    /// The internal port: metrics and health.
    pub metrics_address: SocketAddr,
    /// How long the process may take to end.
    pub shutdown_grace: Duration,
}

impl Settings for ProcessSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            log: LogSettings::read(reader)?,
            metrics_address: reader.or_default(
                "METRICS_ADDRESS",
                "127.0.0.1:0",
                "The internal port: `/metrics`, `/healthz`, `/readyz`. Port 0 takes a free one.",
            )?,
            shutdown_grace: reader.or_default(
                "SHUTDOWN_GRACE",
                "25s",
                "How long requests and steps in flight may take after SIGTERM.",
            )?,
        })
    }
}

/// The whole of a binary: reads the settings, turns on telemetry, starts the service, and ends it
/// on SIGTERM or SIGINT.
///
/// With the argument `--health` it asks the running process at `METRICS_ADDRESS` whether it is ready
/// instead, for the health checks of containers.
pub fn main<S, F, R>(name: &'static str, start: F) -> ExitCode
where
    S: Settings,
    F: FnOnce(S) -> R,
    R: Future<Output = anyhow::Result<Running>>,
{
    if std::env::args().nth(1).as_deref() == Some("--health") {
        return health();
    }
    match run(name, start) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Logging may not be on yet, and the operator reads this either way.
            let _ = writeln!(std::io::stderr(), "{name} cannot run: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run<S, F, R>(name: &'static str, start: F) -> anyhow::Result<()>
where
    S: Settings,
    F: FnOnce(S) -> R,
    R: Future<Output = anyhow::Result<Running>>,
{
    let mut reader = Reader::from_process()?;
    let process = ProcessSettings::read(&mut reader)?;
    let settings = S::read(&mut reader)?;
    telemetry::init(name, &process.log)?;
    raise_file_limit();
    // The TLS library wants its cryptography chosen once; a second choice would be the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let metrics = telemetry::metrics_recorder();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let running = tokio::select! {
            started = start(settings) => started?,
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        };
        serve_internal(&running, process.metrics_address, metrics)?;
        tracing::info!(address = ?running.address, "running");
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = running.ended() => anyhow::bail!("every task ended by itself"),
        }
        tracing::info!("stopping");
        if !running.stop(process.shutdown_grace).await {
            anyhow::bail!("something was still in flight after SHUTDOWN_GRACE");
        }
        tracing::info!("stopped");
        Ok(())
    })
}

/// Takes as many open files as the system grants, within reason: each connection is one, and the usual
/// default of 1,024 is less than a busy process needs.
fn raise_file_limit() {
    const ENOUGH: u64 = 65_536;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let wanted = hard.min(ENOUGH);
        // Without it the process works until it has that many connections.
        if soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_err() {
            tracing::warn!(soft, hard, "the limit of open files cannot be raised");
        }
    }
}

fn serve_internal(
    running: &Running,
    address: SocketAddr,
    metrics: PrometheusHandle,
) -> anyhow::Result<()> {
    let (listener, address) = bind(address).context("METRICS_ADDRESS")?;
    let settings = HttpServerSettings {
        workers: 1,
        max_connections: 100,
        grace: Duration::from_secs(1),
        ..HttpServerSettings::default()
    };
    tracing::info!(%address, "metrics and health");
    let health = Data::new(running.health.clone());
    let metrics = Data::new(metrics);
    serve(running, listener, settings, move || {
        App::new()
            .app_data(Data::<Health>::clone(&health))
            .app_data(Data::<PrometheusHandle>::clone(&metrics))
            .route("/healthz", get().to(http_kit::healthz))
            .route("/readyz", get().to(http_kit::readyz))
            .route("/metrics", get().to(render_metrics))
    })
}

async fn render_metrics(metrics: Data<PrometheusHandle>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(metrics.render())
}

fn health() -> ExitCode {
    let ready = Reader::from_process()
        .and_then(|mut reader| ProcessSettings::read(&mut reader))
        .map_err(anyhow::Error::from)
        .and_then(|settings| ask_readiness(settings.metrics_address));
    match ready {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

/// One plain request, so that the check needs neither a runtime nor a client.
fn ask_readiness(mut address: SocketAddr) -> anyhow::Result<bool> {
    const TIMEOUT: Duration = Duration::from_secs(3);
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    Ok(head.ends_with(b"200"))
}
