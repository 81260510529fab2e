use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, BufWriter, IsTerminal as _, Write, stderr, stdout};
use std::panic::PanicHookInfo;
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use app_config::{SettingValue, parse_list};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::json_lines::JsonLines;
use crate::traces::{EXPORT_ONLY, TraceExport, TraceSettings};

/// How many lines may wait until the log is read: a few megabytes. More are dropped.
const MAX_WAITING_LINES: usize = 8_192;
/// It logs faults of certificates, whose length servers choose, and which are logged by this crate's errors.
const NEVER_LOGGED: &str = "rustls_platform_verifier=off";
/// The pause after each write. The lines of the meantime are written together: a write for each of them would take a tenth
/// of the gateway's processor time.
const PAUSE: Duration = Duration::from_millis(5);
/// Lines up to this length together, in bytes, are written at once.
const BUFFER_LENGTH: usize = 64 * 1024;
/// How long the end of a process waits until its last lines are read.
const MAX_FLUSH_TIME: Duration = Duration::from_millis(1_500);

app_config::settings! {
    /// The filter and format of logs.
    pub struct LogSettings {
        /// What to log.
        pub filter: LogFilter = or_default("LOG", "info"),
        /// The format of a log line.
        pub format: LogFormat = or_default("LOG_FORMAT", "json"),
    }
}

/// The text of an [`EnvFilter`].
#[derive(Debug, Clone)]
pub struct LogFilter(String);

impl SettingValue for LogFilter {
    const ALLOWED: &'static str =
        "a level (`error`, `warn`, `info`, `debug`, `trace`) or a filter such as `info,lapin=warn`";
    const EXAMPLE: &'static str = "info";

    fn parse(text: &str) -> Result<Self, String> {
        let parts = parse_list(text, |part| {
            let filter = EnvFilter::try_new(part).map_err(|error| format!("{part:?}: {error}"));
            filter.map(|_| part.to_owned())
        })?;
        // `EnvFilter` takes each other word for the name of a module, and without a level for all logs nothing else.
        let is_level = |part: &String| part.parse::<LevelFilter>().is_ok();
        let is_of_module = |part: &String| part.contains(['=', '[']);
        if parts.iter().any(is_level) || parts.iter().all(is_of_module) {
            Ok(Self(parts.join(",")))
        } else {
            Err("it has no level for all modules".to_owned())
        }
    }
}

values::names! {
    /// The format of a log line.
    pub enum LogFormat {
        /// One JSON object per line.
        Json = "json",
        /// A line for people, coloured on a terminal.
        Text = "text",
    }
}

app_config::named_settings! {
    LogFormat, "`json` or `text`", "json";
}

/// The log and the export of traces of a process. A thread of its own writes the log, so that no other thread stops when the
/// log is not read.
///
/// Keep it until the end of the process: what is not written yet is written when it is dropped, the log for at most 1.5 s.
#[derive(Debug)]
#[must_use = "the log is no longer written once this is dropped"]
pub struct Telemetry {
    traces: Option<TraceExport>,
    writer: Option<WorkerGuard>,
    dropped: ErrorCounter,
}

impl Telemetry {
    /// Counts the log lines that were dropped since the process started, because the log was not read fast enough.
    pub fn dropped_lines(&self) -> impl Fn() -> u64 + Send + use<> {
        let dropped = self.dropped.clone();
        move || u64::try_from(dropped.dropped_lines()).unwrap_or(u64::MAX)
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        // It logs whether it succeeded.
        drop(self.traces.take());
        let writer = self.writer.take();
        // When the queue is full, the guard says so on standard output, and blocks there.
        wait_for(MAX_FLUSH_TIME, move || drop(writer));
    }
}

/// Turns on logging to standard output, also of panics, and the export of traces, for the whole process. Call it once,
/// before anything else and outside of an async runtime.
///
/// # Errors
/// The filter is invalid, traces cannot be exported, or this is a second call.
pub fn init(
    process: &'static str,
    settings: &LogSettings,
    traces: Option<&TraceSettings>,
) -> anyhow::Result<Telemetry> {
    let filter = EnvFilter::try_new(&settings.filter.0).context("LOG is not a valid filter")?;
    let filter = filter.add_directive(NEVER_LOGGED.parse()?);
    let started = traces.map(|settings| TraceExport::start(process, settings));
    let started = started.transpose().context("traces cannot be exported")?;
    let (lines, writer) = NonBlockingBuilder::default()
        .buffered_lines_limit(MAX_WAITING_LINES)
        .lossy(true)
        .thread_name("log-writer")
        .finish(Paced(BufWriter::with_capacity(BUFFER_LENGTH, stdout())));
    let telemetry = Telemetry {
        traces: started.flatten(),
        writer: Some(writer),
        dropped: lines.error_counter(),
    };
    let lines = log_layer(settings.format, lines);
    let is_logged = filter_fn(|metadata| metadata.target() != EXPORT_ONLY);
    let initialized = match &telemetry.traces {
        // A filter of its own for each layer costs more than one for all.
        None => tracing_subscriber::registry()
            .with(lines)
            .with(filter)
            .try_init(),
        Some(export) => tracing_subscriber::registry()
            .with(lines.with_filter(filter.and(is_logged)))
            .with(export.layer())
            .try_init(),
    };
    initialized.context("logging is already on")?;
    std::panic::set_hook(Box::new(log_panic));
    tracing::info!(process, version = env!("CARGO_PKG_VERSION"), "starting");
    Ok(telemetry)
}

struct Paced<W>(W);

impl<W: Write> Write for Paced<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    /// The thread of the log flushes when no more lines wait.
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        thread::sleep(PAUSE);
        Ok(())
    }
}

fn log_layer(
    format: LogFormat,
    lines: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> Box<dyn Layer<Registry> + Send + Sync> {
    match format {
        LogFormat::Json => tracing_subscriber::fmt::layer()
            .fmt_fields(JsonLines)
            .event_format(JsonLines)
            .with_writer(lines)
            .boxed(),
        LogFormat::Text => tracing_subscriber::fmt::layer()
            .with_writer(lines)
            .compact()
            .with_ansi(stdout().is_terminal() || std::env::var_os("FORCE_COLOR").is_some())
            .with_target(false)
            .boxed(),
    }
}

/// Logs a panic. The default hook would write to standard error, which blocks while nothing reads it.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let backtrace = Backtrace::capture();
    let captured = backtrace.status() == BacktraceStatus::Captured;
    tracing::error!(
        panic = panic.payload_as_str(),
        location = panic.location().map(tracing::field::display),
        backtrace = captured.then(|| tracing::field::display(backtrace)),
        "a thread panicked"
    );
}

/// Writes a line to standard error, or gives up after 1.5 s if standard error is not read.
pub fn print_error(line: String) {
    wait_for(MAX_FLUSH_TIME, move || {
        // There is nowhere left to report a failure.
        let _ = writeln!(stderr(), "{line}");
    });
}

/// Writes a text to standard output. It is no failure if the reader is gone, as in a pipe to `head`.
///
/// # Errors
/// It cannot be written, such as to a disk that is full.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = stdout();
    let printed = stdout.write_all(text.as_bytes());
    match printed.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("the output cannot be written")
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Runs something that may block for ever on a thread of its own, and waits for it.
fn wait_for(time: Duration, work: impl FnOnce() + Send + 'static) {
    let (finished, waiting) = mpsc::channel();
    let run = move || {
        work();
        // This fails if it took too long.
        let _ = finished.send(());
    };
    if thread::Builder::new().spawn(run).is_ok() {
        let _ = waiting.recv_timeout(time);
    }
}

/// Upper bounds of histogram buckets, in seconds: from a fast database call to a late retry.
const BUCKETS: [f64; 16] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0, 600.0, 3600.0,
];

/// Upper bounds of histogram buckets of batches, in requests.
const BATCH_BUCKETS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// The process's metrics; [`PrometheusHandle::render`] returns them in Prometheus's text format.
///
/// The first call installs the recorder, and later calls share it, because tests start several
/// services in one process.
pub fn metrics_recorder() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let builder = PrometheusBuilder::new();
            let seconds = Matcher::Suffix("_seconds".to_owned());
            let requests = Matcher::Full("database_batch_requests".to_owned());
            let builder = builder
                .set_buckets_for_metric(seconds, &BUCKETS)
                .and_then(|builder| builder.set_buckets_for_metric(requests, &BATCH_BUCKETS))
                // Only an empty list of buckets is an error.
                .unwrap_or_default();
            let recorder = builder.build_recorder();
            let handle = recorder.handle();
            if metrics::set_global_recorder(recorder).is_err() {
                tracing::warn!("another metrics recorder is installed; /metrics stays empty");
            }
            handle
        })
        .clone()
}

#[cfg(test)]
mod tests {
    use app_config::SettingValue as _;

    use super::LogFilter;

    #[test]
    fn a_filter_has_levels_and_modules_with_a_level() {
        for (text, expected) in [
            ("info", "info"),
            (" WARN ", "WARN"),
            ("off", "off"),
            ("info, lapin=warn,", "info,lapin=warn"),
            ("info,lapin", "info,lapin"),
            ("info,[request]=debug", "info,[request]=debug"),
        ] {
            assert_eq!(LogFilter::parse(text).unwrap().0, expected);
        }
    }

    #[test]
    fn a_word_that_is_no_level_would_turn_the_log_off_and_is_refused() {
        for text in [
            "warning",
            "inf",
            "error;info",
            "lapin",
            "warning,lapin=warn",
        ] {
            assert_eq!(
                LogFilter::parse(text).unwrap_err(),
                "it has no level for all modules"
            );
        }
        let reason = LogFilter::parse("info,lapin=warning").unwrap_err();
        assert!(reason.starts_with("\"lapin=warning\""), "{reason}");
        assert!(LogFilter::parse(",").is_err());
    }
}
