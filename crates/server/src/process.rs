use std::ffi::OsString;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use app_config::{Reader, Settings};
use http_kit::Health;
use metrics_exporter_prometheus::PrometheusHandle;
use telemetry::LogSettings;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::metrics_server::serve_metrics;
use crate::open_files;
use crate::running::Running;
use crate::settings::ProcessSettings;

const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(3);
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);
/// How long threads may still wait for the database when the process ends: as long as a statement.
const LAST_STATEMENTS: Duration = Duration::from_secs(10);
/// The same after a failure, which has to be reported before what stops the process kills it.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The name of a program and its entry point.
pub type Program = (&'static str, fn() -> ExitCode);

/// The entry point of a binary: reads the settings, turns on telemetry, starts the service, and stops it
/// on SIGTERM, SIGINT or SIGQUIT. Other signals that would end it at once, such as SIGHUP, are logged and change nothing.
///
/// With the argument `--health`, the health check of containers, it asks the running process at
/// `METRICS_ADDRESS` whether it is ready. `--version` prints the version. Other arguments are refused: a misspelt command must not start a service.
pub fn main<S: Settings, R: Future<Output = anyhow::Result<Running>>>(
    name: &'static str,
    start: impl FnOnce(S) -> R,
) -> ExitCode {
    let succeeded = match std::env::args_os().nth(1) {
        None => return exit_code(name, run(name, start)),
        Some(argument) if argument == "--health" => is_ready().unwrap_or(false),
        Some(argument) if argument == "--version" => {
            let version = env!("CARGO_PKG_VERSION");
            writeln!(std::io::stdout(), "{name} {version}").is_ok()
        }
        Some(argument) => {
            let argument = argument.display();
            telemetry::print_error(format!("{name} has no command {argument:?}"));
            false
        }
    };
    ExitCode::from(u8::from(!succeeded))
}

/// A command of a binary that ends by itself, such as a migration: reads the settings, turns on the log, and waits for
/// the work. SIGTERM, SIGINT and SIGQUIT end it at once.
///
/// `None` when the process was started without the command. With further arguments it fails: `--help` must not start it.
pub fn command<S: Settings, R: Future<Output = anyhow::Result<()>>>(
    command: &'static str,
    work: impl FnOnce(S) -> R,
) -> Option<ExitCode> {
    match is_command(command, std::env::args_os().skip(1)) {
        Ok(true) => {}
        Ok(false) => return None,
        Err(error) => return Some(exit_code(command, Err(error))),
    }
    let run = || {
        let mut reader = Reader::from_process()?;
        let log = LogSettings::read(&mut reader)?;
        let settings = S::read(&mut reader)?;
        let _log = telemetry::init(command, &log, None)?;
        let runtime = runtime()?;
        let done = runtime.block_on(async {
            // The kernel drops a signal to process 1 that it does not handle.
            let stopped = stop_signal()?;
            tokio::select! {
                done = work(settings) => done,
                () = stopped => anyhow::bail!("it was stopped by a signal"),
            }
        });
        // It does not wait for a thread whose statement waits for a lock.
        runtime.shutdown_background();
        done?;
        tracing::info!(process = command, "finished");
        Ok(())
    };
    Some(exit_code(command, run()))
}

/// Whether these arguments are this command, which takes no arguments.
fn is_command(
    command: &str,
    mut arguments: impl Iterator<Item = OsString>,
) -> anyhow::Result<bool> {
    if arguments.next().is_none_or(|first| first != command) {
        return Ok(false);
    }
    match arguments.next() {
        None => Ok(true),
        Some(argument) => anyhow::bail!("it takes no argument {:?}", argument.display()),
    }
}

fn exit_code(name: &str, done: anyhow::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Logging is still off, or off again.
            telemetry::print_error(format!("{name} cannot run: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}

fn run<S: Settings, R: Future<Output = anyhow::Result<Running>>>(
    name: &'static str,
    start: impl FnOnce(S) -> R,
) -> anyhow::Result<()> {
    let mut reader = Reader::from_process()?;
    let process = ProcessSettings::read(&mut reader)?;
    let settings = S::read(&mut reader)?;
    let telemetry = telemetry::init(name, &process.log, Some(&process.traces))?;
    for warning in reader.warnings() {
        tracing::warn!("{warning}");
    }
    open_files::raise_limit();
    // rustls needs one process-wide crypto provider. A second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let metrics = telemetry::metrics_recorder();
    telemetry::describe_metrics(name);
    let runtime = runtime()?;
    let ran = runtime.block_on(async {
        ignore_signals()?;
        let mut stop = pin!(stop_signal()?);
        let running = tokio::select! {
            started = start(settings) => started?,
            // Its threads may wait for the database for a minute.
            () = &mut stop => return Ok(Duration::ZERO),
        };
        running.spawn(run_upkeep(
            metrics.clone(),
            telemetry.dropped_lines(),
            running.health.clone(),
            UPKEEP_INTERVAL,
            running.shutdown(),
        ));
        serve_metrics(&running, process.metrics_address, metrics)?;
        tracing::info!(address = ?running.address, "running");
        run_until(stop, &running, &process).await?;
        Ok(LAST_STATEMENTS)
    });
    runtime.shutdown_timeout(*ran.as_ref().unwrap_or(&AFTER_FAILURE));
    ran.map(drop)
}

/// Waits for a signal that asks the process to stop. From this call on none of them ends it.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = quit.recv() => {}
        }
    })
}

/// Logs the signals that mean nothing here and would end the process at once. Hooks of certbot and logrotate send SIGHUP
/// to servers, which often read their files again at it.
fn ignore_signals() -> std::io::Result<()> {
    for (name, kind) in [
        ("SIGHUP", SignalKind::hangup()),
        ("SIGUSR1", SignalKind::user_defined1()),
        ("SIGUSR2", SignalKind::user_defined2()),
        ("SIGALRM", SignalKind::alarm()),
    ] {
        let mut signal = signal(kind)?;
        tokio::spawn(async move {
            while signal.recv().await.is_some() {
                tracing::info!(
                    signal = name,
                    "the signal is ignored; settings are read at the start"
                );
            }
        });
    }
    Ok(())
}

async fn run_upkeep(
    metrics: PrometheusHandle,
    dropped_lines: impl Fn() -> u64,
    health: Health,
    interval: Duration,
    shutdown: CancellationToken,
) {
    let mut reported = 0;
    loop {
        // A histogram keeps every value, in 16 bytes, until it is added to a bucket here or by a scrape.
        metrics.run_upkeep();
        let dropped = dropped_lines();
        metrics::counter!("log_lines_dropped_total").absolute(dropped);
        if dropped > reported {
            reported = dropped;
            tracing::warn!(
                dropped,
                "the log is not read fast enough and has lost lines"
            );
        }
        // Checks log the end of an outage, also if nothing asks whether the process is ready.
        let _ = shutdown.run_until_cancelled(health.record()).await;
        let pause = tokio::time::sleep(interval);
        if shutdown.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

/// Waits for the signal to stop, or the failure of a task, and stops the tasks.
async fn run_until(
    signal: impl Future<Output = ()>,
    running: &Running,
    settings: &ProcessSettings,
) -> anyhow::Result<()> {
    let shutdown = running.shutdown();
    let failed = tokio::select! {
        () = signal => false,
        () = shutdown.cancelled() => true,
        () = running.ended() => anyhow::bail!("every task ended unexpectedly"),
    };
    tracing::info!("stopping");
    if !failed {
        running.drain(settings.shutdown_delay).await;
    }
    if !running.stop(settings.shutdown_grace).await {
        anyhow::bail!("some work was still in flight after SHUTDOWN_GRACE");
    }
    anyhow::ensure!(!failed, "a background task failed");
    tracing::info!("stopped");
    Ok(())
}

/// Whether the running process reports at `METRICS_ADDRESS` that it is ready. Sends one plain request, so that the check
/// needs neither a runtime nor a client.
fn is_ready() -> anyhow::Result<bool> {
    let settings = ProcessSettings::read(&mut Reader::from_process()?)?;
    let mut address = settings.metrics_address;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let mut stream = TcpStream::connect_timeout(&address, HEALTH_CHECK_TIMEOUT)?;
    stream.set_read_timeout(Some(HEALTH_CHECK_TIMEOUT))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut status = [0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut status)?;
    Ok(status.ends_with(b"200"))
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use app_config::{Reader, Settings as _};
    use http_kit::Health;
    use nix::sys::signal::{Signal, raise};
    use procfs::process::Process;
    use tokio::task::spawn_blocking;
    use tokio::time::{sleep, timeout};
    use tokio_util::sync::CancellationToken;

    use super::{ProcessSettings, Running, is_command, run, run_until, run_upkeep};

    const MIB: u64 = 1024 * 1024;
    const SHUTDOWN_GRACE: &str = "SHUTDOWN_GRACE";

    /// Asks the process to stop while one of its threads has work for a minute.
    async fn stop_while_busy() {
        let busy = spawn_blocking(|| std::thread::sleep(Duration::from_secs(60)));
        raise(Signal::SIGTERM).unwrap();
        busy.await.unwrap();
    }

    #[test]
    fn a_process_whose_work_does_not_end_says_so_soon_after_its_grace() {
        if std::env::var_os(SHUTDOWN_GRACE).is_none() {
            // Again, in a process with this setting.
            let name =
                "process::tests::a_process_whose_work_does_not_end_says_so_soon_after_its_grace";
            let again = Command::new(std::env::current_exe().unwrap())
                .args([name, "--exact"])
                .env(SHUTDOWN_GRACE, "0s")
                .output()
                .unwrap();
            let output = String::from_utf8_lossy(&again.stdout);
            assert!(output.contains("1 passed"), "{output}");
            return;
        }
        let began = Instant::now();
        let ran = run("busy", async |_: ProcessSettings| {
            let running = Running::new();
            running.spawn(stop_while_busy());
            Ok(running)
        });
        let error = ran.unwrap_err().to_string();
        assert!(error.contains(SHUTDOWN_GRACE), "{error}");
        assert!(
            began.elapsed() < Duration::from_secs(3),
            "{:?}",
            began.elapsed()
        );
    }

    #[test]
    fn a_process_that_is_stopped_before_it_has_started_ends_at_once() {
        let began = Instant::now();
        let ran = run("starting", async |_: ProcessSettings| {
            stop_while_busy().await;
            Ok(Running::new())
        });
        ran.unwrap();
        assert!(
            began.elapsed() < Duration::from_secs(3),
            "{:?}",
            began.elapsed()
        );
    }

    #[tokio::test]
    async fn a_process_that_was_stopped_by_a_task_says_that_one_failed() {
        let mut reader = Reader::from_pairs([(SHUTDOWN_GRACE, "10s")]).unwrap();
        let settings = ProcessSettings::read(&mut reader).unwrap();
        let running = Running::new();
        let draining = running.draining();
        running.spawn(async move { draining.cancelled().await });
        // As the HTTP server does when it fails.
        running.shutdown().cancel();
        let ended = run_until(pending(), &running, &settings).await;
        assert_eq!(ended.unwrap_err().to_string(), "a background task failed");
    }

    fn memory() -> u64 {
        let status = Process::myself().unwrap().status().unwrap();
        status.vmrss.unwrap() * 1024
    }

    #[test]
    fn a_command_with_an_argument_is_refused() {
        let is_command = |arguments: &[&str]| {
            let arguments = arguments.iter().map(Into::into);
            is_command("migrate", arguments).map_err(|error| error.to_string())
        };
        assert_eq!(is_command(&["migrate"]), Ok(true));
        assert_eq!(is_command(&[]), Ok(false));
        assert_eq!(is_command(&["--help", "migrate"]), Ok(false));
        assert_eq!(
            is_command(&["migrate", "--help"]),
            Err(r#"it takes no argument "--help""#.to_owned())
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_process_that_is_not_scraped_does_not_keep_the_values_of_histograms() {
        let metrics = telemetry::metrics_recorder();
        let (interval, shutdown) = (Duration::from_millis(1), CancellationToken::new());
        let upkeep = run_upkeep(metrics, || 0, Health::default(), interval, shutdown.clone());
        tokio::spawn(upkeep);
        let before = memory();
        let added_to_buckets = || async {
            while memory().saturating_sub(before) > 32 * MIB {
                sleep(Duration::from_millis(10)).await;
            }
        };
        // The values would take 80 MB.
        for _ in 0..50 {
            for _ in 0..100_000 {
                metrics::histogram!("upkeep_seconds").record(0.1);
            }
            let limit = Duration::from_secs(10);
            timeout(limit, added_to_buckets()).await.unwrap();
        }
        shutdown.cancel();
    }
}
