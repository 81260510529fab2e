//! Forwards a request body: limits its size and time, and never lets a truncated body look complete.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING, UPGRADE};
use actix_web::web::Payload;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http_kit::{BODY_LIMIT, Problem, body_too_large, incomplete_body};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, timeout_at};

use super::error::ForwardError;
use crate::context::AppState;

/// Chunks that are buffered for the service.
const BUFFERED_CHUNKS: usize = 4;

/// How a request announces its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Empty,
    ContentLength(usize),
    Chunked,
}

impl Framing {
    /// The framing that the headers announce. actix-web has already refused contradictory ones.
    ///
    /// # Errors
    /// `413` if the announced body is too large; `400` for a body with an upgrade.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let framing = if headers.contains_key(TRANSFER_ENCODING) {
            Self::Chunked
        } else {
            match headers.get(CONTENT_LENGTH) {
                None => Self::Empty,
                Some(length) => Self::content_length(length.to_str().unwrap_or_default())?,
            }
        };
        if framing != Self::Empty && is_websocket(headers) {
            let detail = "A request with a body cannot upgrade to another protocol.";
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "malformed-request",
                detail,
            ));
        }
        Ok(framing)
    }

    fn content_length(length: &str) -> Result<Self, Problem> {
        match length.trim().parse::<usize>() {
            Ok(0) => Ok(Self::Empty),
            Ok(length) if length <= BODY_LIMIT => Ok(Self::ContentLength(length)),
            _ => Err(body_too_large()),
        }
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|upgrade| upgrade.trim().eq_ignore_ascii_case("websocket"))
}

/// A part of a body.
#[derive(Debug)]
enum Part {
    Data(Bytes),
    /// The body is complete. If the channel closes without it, the request is aborted.
    End,
}

/// Sends the caller's body to the service.
#[derive(Debug)]
pub(super) struct BodySender(Sender<Part>);

/// A body for reqwest, and its sender.
pub(super) fn body_channel() -> (BodySender, reqwest::Body) {
    let (sender, receiver) = channel(BUFFERED_CHUNKS);
    let body = reqwest::Body::wrap_stream(chunks(receiver));
    (BodySender(sender), body)
}

#[derive(Debug, thiserror::Error)]
#[error("the caller's body was cut off")]
struct Truncated;

fn chunks(receiver: Receiver<Part>) -> impl Stream<Item = Result<Bytes, Truncated>> + Send {
    stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Part::Data(bytes)) => Some((Ok(bytes), Some(receiver))),
            Some(Part::End) => None,
            None => Some((Err(Truncated), None)),
        }
    })
}

impl BodySender {
    /// Forwards a caller's body until it is complete or the service stops reading it.
    ///
    /// The last part is held back until there is an in-flight permit: a body that trickles in needs none, and
    /// a service never sees the end of a body that is refused for lack of a permit. Returns the permit, or
    /// `None` if the service stopped reading.
    ///
    /// # Errors
    /// `413` for a body that is too large, `408` for one that takes too long, `400` for one that is cut off,
    /// `503` without a permit, `504` when the service does not read it.
    pub(super) async fn forward(
        &self,
        mut payload: Payload,
        deadline: Instant,
        state: &AppState,
    ) -> Result<Option<OwnedSemaphorePermit>, ForwardError> {
        let mut length = 0;
        let mut held = None;
        while let Some(bytes) = timeout_at(deadline, payload.next())
            .await
            .map_err(|_| ForwardError::Caller(too_slow()))?
        {
            let bytes = bytes.map_err(|_| ForwardError::Caller(incomplete_body()))?;
            length += bytes.len();
            if length > BODY_LIMIT {
                return Err(ForwardError::Caller(body_too_large()));
            }
            if let Some(earlier) = held.replace(bytes)
                && !self.send(Part::Data(earlier), deadline).await?
            {
                return Ok(None);
            }
        }
        let permit = state.acquire_in_flight().map_err(ForwardError::Caller)?;
        for part in held.map(Part::Data).into_iter().chain([Part::End]) {
            if !self.send(part, deadline).await? {
                break;
            }
        }
        Ok(Some(permit))
    }

    /// Returns whether the service is still reading.
    async fn send(&self, part: Part, deadline: Instant) -> Result<bool, ForwardError> {
        let sent = timeout_at(deadline, self.0.send(part)).await;
        Ok(sent.map_err(|_| ForwardError::timeout())?.is_ok())
    }
}

fn too_slow() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "body-timeout",
        "The body took too long to arrive. Send it again.",
    )
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError as _;
    use actix_web::http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING};
    use bytes::Bytes;
    use futures_util::{StreamExt as _, pin_mut};
    use tokio::sync::mpsc::channel;

    use super::{BODY_LIMIT, Framing, Part, chunks};

    fn content_length(length: usize) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        headers
    }

    #[test]
    fn a_body_may_have_the_limit_and_not_one_byte_more() {
        let framing = Framing::of(&content_length(BODY_LIMIT)).unwrap();
        assert_eq!(framing, Framing::ContentLength(BODY_LIMIT));
        let problem = Framing::of(&content_length(BODY_LIMIT + 1)).unwrap_err();
        assert_eq!(problem.status_code(), 413);
        assert_eq!(Framing::of(&content_length(0)).unwrap(), Framing::Empty);
        let mut chunked = HeaderMap::new();
        chunked.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        assert_eq!(Framing::of(&chunked).unwrap(), Framing::Chunked);
    }

    #[tokio::test]
    async fn a_truncated_body_ends_with_an_error() {
        for complete in [true, false] {
            let (sender, receiver) = channel(4);
            sender
                .send(Part::Data(Bytes::from_static(b"{")))
                .await
                .unwrap();
            if complete {
                sender.send(Part::End).await.unwrap();
            }
            drop(sender);
            let chunks = chunks(receiver);
            pin_mut!(chunks);
            assert_eq!(chunks.next().await.unwrap().unwrap(), "{");
            assert_eq!(chunks.next().await.is_none(), complete);
        }
    }
}
