use std::io::{self, BufWriter, Write, stderr, stdout};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// How many lines may wait until the log is read: a few megabytes. More are dropped.
const MAX_WAITING_LINES: usize = 8_192;
/// The pause after each write. The lines of the meantime are written together: a write for each of them would take a tenth
/// of the gateway's processor time.
const PAUSE: Duration = Duration::from_millis(5);
/// Lines up to this length together, in bytes, are written at once.
const BUFFER_LENGTH: usize = 64 * 1024;
/// How long the end of a process waits until its last lines are read.
const MAX_FLUSH_TIME: Duration = Duration::from_millis(1_500);

/// Writes the log on a thread of its own, so that no other thread stops when the log is not read.
///
/// Dropping it writes the lines that still wait, for at most 1.5 s.
#[derive(Debug)]
#[must_use = "the log is no longer written once this is dropped"]
pub struct LogWriter {
    guard: Option<WorkerGuard>,
    pub(crate) dropped: ErrorCounter,
}

/// Starts the thread. It writes the lines that it is given to standard output.
pub(crate) fn start() -> (NonBlocking, LogWriter) {
    let (lines, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(MAX_WAITING_LINES)
        .lossy(true)
        .thread_name("log-writer")
        .finish(Paced(BufWriter::with_capacity(BUFFER_LENGTH, stdout())));
    let writer = LogWriter {
        guard: Some(guard),
        dropped: lines.error_counter(),
    };
    (lines, writer)
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

impl Drop for LogWriter {
    fn drop(&mut self) {
        let guard = self.guard.take();
        // When the queue is full, the guard says so on standard output, and blocks there.
        wait_for(MAX_FLUSH_TIME, move || drop(guard));
    }
}

/// Writes a line to standard error, or gives up after 1.5 s if standard error is not read.
pub fn print_error(line: String) {
    wait_for(MAX_FLUSH_TIME, move || {
        // There is nowhere left to report a failure.
        let _ = writeln!(stderr(), "{line}");
    });
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
