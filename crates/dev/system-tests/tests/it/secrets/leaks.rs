//! What is searched for secrets, and the secrets to search for.

use std::io;
use std::sync::{Arc, Mutex};

use telemetry::{JsonLines, TraceExport};
use testkit::Reply;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The log of every process, span and library.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Starts to log everything, in the format of the processes.
    pub(super) fn start(export: &TraceExport) -> Self {
        let log = Self::default();
        let mut lines = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonLines)
            .event_format(JsonLines)
            .with_writer(log.clone());
        lines.set_span_events(FmtSpan::FULL);
        let log_everything = tracing_subscriber::registry().with(lines);
        log_everything.with(export.layer()).init();
        log
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'writer> MakeWriter<'writer> for Log {
    type Writer = Self;

    fn make_writer(&'writer self) -> Self {
        self.clone()
    }
}

/// The secrets to search for, and the refusals to search.
#[derive(Default)]
pub(super) struct Leaks {
    /// Each with its name and the columns that may store it.
    pub(super) secrets: Vec<(&'static str, String, &'static [&'static str])>,
    /// Error responses, with their headers.
    pub(super) refusals: String,
}

impl Leaks {
    pub(super) fn add(&mut self, name: &'static str, text: impl Into<String>) -> String {
        self.add_stored(name, text, &[])
    }

    pub(super) fn add_stored(
        &mut self,
        name: &'static str,
        text: impl Into<String>,
        columns: &'static [&'static str],
    ) -> String {
        let text = text.into();
        assert!(text.len() >= 9, "{name} is too short to search for");
        self.secrets.push((name, text.clone(), columns));
        text
    }

    pub(super) fn add_refusal(&mut self, status: u16, reply: &Reply) {
        assert_eq!(reply.status, status, "{}", reply.text);
        self.refusals += &format!("{:?} {}\n", reply.headers, reply.text);
    }

    pub(super) fn check(&self, place: &str, text: &str) {
        for (name, secret, _) in &self.secrets {
            if let Some(at) = text.find(secret.as_str()) {
                let line = text[..at].rfind('\n').map_or(0, |start| start + 1);
                let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
                panic!("{name} is in {place}: {}", &text[line..end]);
            }
        }
    }
}
