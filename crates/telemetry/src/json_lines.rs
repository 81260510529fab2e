//! The JSON format of log lines.
//!
//! tracing-subscriber's own JSON format parses the fields of the span and writes them again for each line. That took a
//! tenth of the gateway's processor time. This one formats them once, when the span starts.

use std::fmt::{self, Debug};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_log::NormalizeEvent as _;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::context::WORK;

/// Formats an event as one JSON object: `timestamp`, `level`, the fields of the event, `target`, and `span` with the fields
/// of the innermost span and of the one that has the identifier of the request. It formats these fields, too.
#[derive(Debug, Clone, Copy)]
pub struct JsonLines;

impl<S: Subscriber + for<'span> LookupSpan<'span>> FormatEvent<S, Self> for JsonLines {
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Self>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let normalized = event.normalized_metadata();
        let metadata = normalized.as_ref().unwrap_or_else(|| event.metadata());
        writer.write_str(r#"{"timestamp":""#)?;
        SystemTime.format_time(&mut writer)?;
        write!(writer, r#"","level":"{}","#, metadata.level())?;
        self.format_fields(writer.by_ref(), event)?;
        write!(writer, r#","target":{}"#, Value::from(metadata.target()))?;
        if let Some(current) = context.lookup_current() {
            // That of the request has its identifier, and the innermost one what it works on.
            let of_request = current.scope().find(|span| span.name() == WORK);
            let of_request = of_request.filter(|span| span.id() != current.id());
            let mut is_open = false;
            for span in of_request.into_iter().chain([current]) {
                if let Some(fields) = span.extensions().get::<FormattedFields<Self>>()
                    && !fields.is_empty()
                {
                    let separator = if is_open { "," } else { r#","span":{"# };
                    write!(writer, "{separator}{fields}")?;
                    is_open = true;
                }
            }
            if is_open {
                writer.write_str("}")?;
            }
        }
        writer.write_str("}\n")
    }
}

impl<'writer> FormatFields<'writer> for JsonLines {
    /// Writes the members of an object, without its braces.
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut members = Members {
            writer,
            is_empty: true,
            result: Ok(()),
        };
        fields.record(&mut members);
        members.result
    }

    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        fields: &tracing::span::Record<'_>,
    ) -> fmt::Result {
        if !current.fields.is_empty() {
            current.fields.push(',');
        }
        self.format_fields(current.as_writer(), fields)
    }
}

struct Members<'writer> {
    writer: Writer<'writer>,
    is_empty: bool,
    result: fmt::Result,
}

impl Members<'_> {
    fn member(&mut self, field: &Field, value: impl Into<Value>) {
        if self.result.is_err() {
            return;
        }
        let comma = if self.is_empty { "" } else { "," };
        self.is_empty = false;
        let name = field.name();
        // A field whose name is a keyword is written as `r#type`.
        let name = name.strip_prefix("r#").unwrap_or(name);
        self.result = write!(self.writer, "{comma}\"{name}\":{}", value.into());
    }
}

impl Visit for Members<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.member(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.member(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.member(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.member(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.member(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.member(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::JsonLines;

    #[derive(Debug, Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that something logs, without their timestamps.
    fn logged(work: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonLines)
            .event_format(JsonLines)
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let bytes = lines.0.lock().unwrap();
        let lines = str::from_utf8(&bytes).unwrap().lines();
        let without_timestamp = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let timestamp = line.as_object_mut().unwrap().remove("timestamp").unwrap();
            assert!(timestamp.as_str().unwrap().ends_with('Z'), "{timestamp}");
            line
        };
        lines.map(without_timestamp).collect()
    }

    #[test]
    fn a_line_has_the_fields_of_the_event_and_of_its_span() {
        let lines = logged(|| {
            let span = tracing::info_span!("work", id = 7, late = tracing::field::Empty);
            let _entered = span.enter();
            span.record("late", "yes");
            tracing::warn!(
                count = 3_u64,
                share = 0.5,
                done = true,
                r#type = "a",
                "it \"ends\"\n"
            );
        });
        let expected = json!({
            "level": "WARN", "message": "it \"ends\"\n", "count": 3, "share": 0.5, "done": true, "type": "a",
            "target": module_path!(), "span": {"id": 7, "late": "yes"},
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn a_line_of_a_span_within_that_of_a_request_has_the_fields_of_both() {
        let lines = logged(|| {
            let _request = tracing::error_span!("work", request_id = "r").entered();
            let _step = tracing::info_span!("step", step = 1).entered();
            let _task = tracing::info_span!("task", task = 2).entered();
            tracing::info!("done");
        });
        assert_eq!(lines[0]["span"], json!({"request_id": "r", "task": 2}));
    }

    #[test]
    fn a_line_outside_of_spans_has_no_span() {
        let lines = logged(|| tracing::info!(error = ?io::ErrorKind::NotFound, "failed"));
        let expected = json!({
            "level": "INFO", "message": "failed", "error": "NotFound", "target": module_path!(),
        });
        assert_eq!(lines, [expected]);
    }
}
