//! A request's body on its way to a service: counted, timed, and never complete unless it is.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING, UPGRADE};
use actix_web::web::Payload;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http_kit::{BODY_LIMIT, Problem, body_too_large, incomplete_body};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, timeout_at};

use super::exchange::{Failure, timed_out};
use crate::gateway::Gateway;

/// Chunks that may wait for the service.
const CHUNKS_AHEAD: usize = 4;

/// How long a request's body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Empty,
    Announced(usize),
    Chunked,
}

impl Framing {
    /// What the headers say. The HTTP library has already refused what contradicts itself.
    ///
    /// # Errors
    /// `413` for a body that is announced as too long; `400` for a body that comes with an upgrade.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let framing = if headers.contains_key(TRANSFER_ENCODING) {
            Self::Chunked
        } else {
            match headers.get(CONTENT_LENGTH) {
                None => Self::Empty,
                Some(length) => Self::announced(length.to_str().unwrap_or_default())?,
            }
        };
        if framing != Self::Empty && is_websocket(headers) {
            let detail = "A body cannot come with an upgrade to another protocol.";
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "malformed-request",
                detail,
            ));
        }
        Ok(framing)
    }

    fn announced(length: &str) -> Result<Self, Problem> {
        match length.trim().parse::<usize>() {
            Ok(0) => Ok(Self::Empty),
            Ok(length) if length <= BODY_LIMIT => Ok(Self::Announced(length)),
            _ => Err(body_too_large()),
        }
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|upgrade| upgrade.trim().eq_ignore_ascii_case("websocket"))
}

/// A part of a body between the caller's connection and the service's.
#[derive(Debug)]
enum Part {
    Data(Bytes),
    /// The body is complete. A channel that closes without it breaks the request off.
    End,
}

/// The caller's side of a body.
#[derive(Debug)]
pub(super) struct Inlet(Sender<Part>);

/// A body that the client's library sends, and the inlet that fills it.
pub(super) fn pipe() -> (Inlet, reqwest::Body) {
    let (sender, receiver) = channel(CHUNKS_AHEAD);
    (Inlet(sender), reqwest::Body::wrap_stream(parts(receiver)))
}

#[derive(Debug, thiserror::Error)]
#[error("the caller's body broke off")]
struct BrokenOff;

fn parts(receiver: Receiver<Part>) -> impl Stream<Item = Result<Bytes, BrokenOff>> + Send {
    stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Part::Data(bytes)) => Some((Ok(bytes), Some(receiver))),
            Some(Part::End) => None,
            None => Some((Err(BrokenOff), None)),
        }
    })
}

impl Inlet {
    /// Passes a caller's body on, until it is complete or the service wants no more of it.
    ///
    /// Its last part is held back until there is a place among the requests in flight: a body that trickles
    /// takes none, and a service never sees the end of a body that is refused for want of a place.
    ///
    /// # Errors
    /// `413` for a body that turns out too long, `408` for one that takes too long, `400` for one that
    /// breaks off, `503` without a place, `504` when the service does not take it.
    pub(super) async fn fill(
        &self,
        mut payload: Payload,
        deadline: Instant,
        gateway: &Gateway,
    ) -> Result<Option<OwnedSemaphorePermit>, Failure> {
        let mut length = 0;
        let mut held = None;
        while let Some(bytes) = timeout_at(deadline, payload.next())
            .await
            .map_err(|_| Failure::Caller(too_slow()))?
        {
            let bytes = bytes.map_err(|_| Failure::Caller(incomplete_body()))?;
            length += bytes.len();
            if length > BODY_LIMIT {
                return Err(Failure::Caller(body_too_large()));
            }
            if let Some(earlier) = held.replace(bytes)
                && !self.send(Part::Data(earlier), deadline).await?
            {
                return Ok(None);
            }
        }
        let place = gateway.enter().map_err(Failure::Caller)?;
        for part in held.map(Part::Data).into_iter().chain([Part::End]) {
            if !self.send(part, deadline).await? {
                break;
            }
        }
        Ok(Some(place))
    }

    /// Whether the service still wants it.
    async fn send(&self, part: Part, deadline: Instant) -> Result<bool, Failure> {
        let sent = timeout_at(deadline, self.0.send(part)).await;
        Ok(sent.map_err(|_| timed_out())?.is_ok())
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

    use super::{BODY_LIMIT, Framing, Part, parts};

    fn announced(length: usize) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        headers
    }

    #[test]
    fn the_limit_itself_passes_and_one_byte_more_does_not() {
        let framing = Framing::of(&announced(BODY_LIMIT)).unwrap();
        assert_eq!(framing, Framing::Announced(BODY_LIMIT));
        let problem = Framing::of(&announced(BODY_LIMIT + 1)).unwrap_err();
        assert_eq!(problem.status_code(), 413);
        assert_eq!(Framing::of(&announced(0)).unwrap(), Framing::Empty);
        let mut chunked = HeaderMap::new();
        chunked.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        assert_eq!(Framing::of(&chunked).unwrap(), Framing::Chunked);
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_ends_in_an_error() {
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
            let parts = parts(receiver);
            pin_mut!(parts);
            assert_eq!(parts.next().await.unwrap().unwrap(), "{");
            assert_eq!(parts.next().await.is_none(), complete);
        }
    }
}
