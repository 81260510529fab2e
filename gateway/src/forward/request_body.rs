//! Collects a request body before it is sent to a service: limits its size and time, and counts its bytes.
//!
//! A service only ever gets complete bodies, so a body that stalls costs it nothing.

use std::net::IpAddr;

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING, UPGRADE};
use actix_web::web::Payload;
use bytes::Bytes;
use fairness::Share;
use futures_util::StreamExt as _;
use http_kit::{BODY_LIMIT, Problem, body_too_large, incomplete_body};
use tokio::time::timeout;

use crate::context::AppState;
use crate::limits::concurrency::{self, acquire};

/// Bodies up to this length, in bytes, are not counted.
const UNCOUNTED: usize = 16 * 1024;

/// The length of a body that the headers announce: the longest one for a body in chunks, and zero without a body. actix-web
/// has already refused contradictory headers.
fn announced(headers: &HeaderMap) -> Result<usize, Problem> {
    let length = match headers.get(CONTENT_LENGTH) {
        _ if headers.contains_key(TRANSFER_ENCODING) => BODY_LIMIT,
        None => 0,
        Some(length) => {
            let length = length.to_str().unwrap_or_default().trim().parse().ok();
            let length = length.filter(|length| *length <= BODY_LIMIT);
            length.ok_or_else(body_too_large)?
        }
    };
    if length > 0 && is_websocket(headers) {
        let detail = "A request with a body cannot upgrade to another protocol.";
        let status = StatusCode::BAD_REQUEST;
        return Err(Problem::new(status, "malformed-request", detail));
    }
    Ok(length)
}

/// Whether actix-web would pass everything that follows the head as the body. It looks at every line.
fn is_websocket(headers: &HeaderMap) -> bool {
    headers
        .get_all(UPGRADE)
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

/// A complete body. Its bytes are counted until it is dropped.
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    _share: Option<Share<IpAddr>>,
}

impl RequestBody {
    /// Whether its service needs much longer for it than for the usual one.
    pub(super) fn is_long(&self) -> bool {
        self.bytes.len() > UNCOUNTED
    }
}

/// Collects the body of a request, if it has one: `413` for a body that is too large, `408` for one that takes too long, `400`
/// for one that is cut off, `429` or `503` if too many bodies are arriving.
pub(super) async fn collect(
    headers: &HeaderMap,
    payload: Payload,
    client: IpAddr,
    state: &AppState,
) -> Result<Option<RequestBody>, Problem> {
    let announced = announced(headers)?;
    if announced == 0 {
        return Ok(None);
    }
    let _upload = acquire(&state.concurrency.uploads, client, 1)?;
    let buffer = Buffer {
        bytes: Vec::new(),
        announced,
        share: None,
    };
    timeout(
        state.settings.body_timeout,
        buffer.fill(payload, client, state),
    )
    .await
    .map_err(|_| too_slow())?
    .map(Some)
}

/// The part of a body that has arrived.
///
/// It is copied out of actix-web's buffers: a chunk of a few bytes would keep a whole buffer in memory.
struct Buffer {
    bytes: Vec<u8>,
    announced: usize,
    share: Option<Share<IpAddr>>,
}

impl Buffer {
    async fn fill(
        mut self,
        mut payload: Payload,
        client: IpAddr,
        state: &AppState,
    ) -> Result<RequestBody, Problem> {
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|_| incomplete_body())?;
            self.reserve(chunk.len(), client, state)?;
            self.bytes.extend_from_slice(&chunk);
        }
        Ok(RequestBody {
            bytes: Bytes::from(self.bytes),
            _share: self.share,
        })
    }

    /// Makes space for more bytes, and counts the space before it is used.
    fn reserve(&mut self, more: usize, client: IpAddr, state: &AppState) -> Result<(), Problem> {
        let length = self.bytes.len() + more;
        if length > BODY_LIMIT {
            return Err(body_too_large());
        }
        if length <= self.bytes.capacity() {
            return Ok(());
        }
        // Memory is for bytes that have arrived, not for those that are announced.
        let rounded = length.next_power_of_two().max(UNCOUNTED);
        let wanted = rounded.min(self.announced).max(length);
        if wanted > UNCOUNTED {
            let units = wanted as u64;
            match &mut self.share {
                Some(share) => share.grow_to(units).map_err(concurrency::refusal)?,
                None => {
                    let bytes = &state.concurrency.request_bytes;
                    self.share = Some(acquire(bytes, client, units)?);
                }
            }
        }
        self.bytes.reserve_exact(wanted - self.bytes.len());
        Ok(())
    }
}

fn too_slow() -> Problem {
    let detail = "The body took too long to arrive. Send it again.";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body-timeout", detail)
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError as _;
    use actix_web::http::header::{
        CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING, UPGRADE,
    };

    use super::{BODY_LIMIT, announced};

    fn content_length(length: usize) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        headers
    }

    #[test]
    fn a_body_may_have_the_limit_and_not_one_byte_more() {
        for length in [0, 1, BODY_LIMIT] {
            assert_eq!(announced(&content_length(length)).unwrap(), length);
        }
        let problem = announced(&content_length(BODY_LIMIT + 1)).unwrap_err();
        assert_eq!(problem.status_code(), 413);
        assert_eq!(announced(&HeaderMap::new()).unwrap(), 0);
        let mut chunked = HeaderMap::new();
        chunked.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        assert_eq!(announced(&chunked).unwrap(), BODY_LIMIT);
    }

    #[test]
    fn a_body_with_a_websocket_upgrade_in_any_line_is_refused() {
        for lines in [
            &["websocket"][..],
            &["h2c", "WebSocket"],
            &["h2c, websocket"],
        ] {
            let mut headers = content_length(2);
            for line in lines {
                headers.append(UPGRADE, HeaderValue::from_static(line));
            }
            let problem = announced(&headers).unwrap_err();
            assert_eq!(problem.code(), "malformed-request", "{lines:?}");
        }
    }
}
