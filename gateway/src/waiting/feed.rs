//! The people-task service's feed of tasks that have ended.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;
use values::TaskId;

use super::Waiting;
use crate::upstream::{BaseAddress, UpstreamClient};

/// The service sends a line each second.
const SILENCE: Duration = Duration::from_secs(5);

/// How long a cursor leads to everything that has happened since.
const CURSOR_LIFETIME: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(500);

/// After this many lines without a caller that waits, nobody listens.
const IDLE_LINES: u32 = 10;

/// The longest line in bytes: far more than all tasks that can end in the time between two lines.
const MAX_LINE: usize = 16 * 1024 * 1024;

#[derive(Deserialize)]
struct Line {
    cursor: String,
    tasks: Vec<TaskId>,
}

/// Wakes the callers whose tasks have ended, until it is cancelled. It listens only while there are some.
pub(crate) async fn listen(
    waiting: Arc<Waiting>,
    client: UpstreamClient,
    service: BaseAddress,
    shutdown: CancellationToken,
) {
    let mut feed = Feed {
        waiting: &waiting,
        cursor: None,
        failed: false,
    };
    let listen = async {
        loop {
            waiting.until_begun().await;
            match feed.read(&client, &service).await {
                Ok(()) => feed.failed = false,
                Err(error) => {
                    if !feed.failed {
                        tracing::warn!(
                            error = format!("{error:#}"),
                            "the tasks that have ended could not be read"
                        );
                    }
                    feed.failed = true;
                    sleep(PAUSE).await;
                }
            }
        }
    };
    shutdown.run_until_cancelled(listen).await;
}

struct Feed<'a> {
    waiting: &'a Waiting,
    /// Where the next response continues, and when the service said so.
    cursor: Option<(String, Instant)>,
    /// Whether the last response ended with an error, which was logged.
    failed: bool,
}

impl Feed<'_> {
    /// Reads one response to its end, or until there is no caller that waits.
    async fn read(&mut self, client: &UpstreamClient, service: &BaseAddress) -> anyhow::Result<()> {
        self.cursor
            .take_if(|(_, at)| at.elapsed() > CURSOR_LIFETIME);
        let cursor = self.cursor.as_ref();
        let cursor = cursor.map(|(cursor, _)| format!("cursor={cursor}"));
        let uri = service.uri("/internal/tasks/ended", cursor.as_deref())?;
        let request = Request::get(uri).body(Full::default())?;
        let response = timeout(SILENCE, client.request(request)).await??;
        if !response.status().is_success() {
            anyhow::bail!("the status is {}", response.status());
        }
        self.read_lines(response).await
    }

    async fn read_lines(&mut self, response: Response<Incoming>) -> anyhow::Result<()> {
        let body = response.into_body().into_data_stream();
        let body = StreamReader::new(body.map_err(io::Error::other));
        let mut lines = FramedRead::new(body, LinesCodec::new_with_max_length(MAX_LINE));
        let mut idle = 0;
        while idle < IDLE_LINES {
            let Some(line) = timeout(SILENCE, lines.next()).await? else {
                return Ok(());
            };
            self.handle(serde_json::from_str(&line?)?);
            idle = if self.waiting.is_empty() { idle + 1 } else { 0 };
        }
        Ok(())
    }

    fn handle(&mut self, line: Line) {
        if self.cursor.is_none() {
            // Some callers may have come, and their tasks have ended, before the feed began.
            self.waiting.wake_all();
        }
        self.waiting.wake(&line.tasks);
        self.cursor = Some((line.cursor, Instant::now()));
    }
}
