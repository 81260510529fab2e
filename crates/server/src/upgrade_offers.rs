//! Removes offers to upgrade a connection from the heads of requests.
//!
//! A server may ignore `Upgrade` (RFC 9110 section 7.8), and this one always does. actix-http, however, closes the
//! connection after the response to a request with `Connection: Upgrade`, without telling the client so. Java's
//! `HttpClient` offers HTTP/2 with every request that is not over TLS, and would lose the next one.

use actix_http::{ConnectionType, RequestHead};
use actix_web::http::header::{HeaderMap, TRANSFER_ENCODING, UPGRADE};

const CONNECTION: &[u8] = b"connection:";
const OPTION: &[u8] = b"upgrade";
/// An incomplete `Connection` line up to this length, in bytes, is not passed on.
const MAX_HELD_BACK: usize = 1024;

/// Overwrites the option `upgrade` in the `Connection` lines of a head with spaces, so that no length changes.
#[derive(Debug, Default)]
pub(crate) struct UpgradeOffers {
    /// Whether the bytes passed on last are the beginning of a line.
    in_line: bool,
}

impl UpgradeOffers {
    /// Removes the offers from the next part of a head, and returns how much of it may be passed on: an incomplete
    /// `Connection` line at its end may not.
    pub(crate) fn remove(&self, head: &mut [u8]) -> usize {
        let mut start = 0;
        let mut is_continued = self.in_line;
        for line in head.split_inclusive_mut(|byte| *byte == b'\n') {
            if !std::mem::take(&mut is_continued) {
                if line.ends_with(b"\n") {
                    remove_option(line);
                } else if line.len() < MAX_HELD_BACK && may_be_connection(line) {
                    return start;
                }
            }
            start += line.len();
        }
        start
    }

    pub(crate) fn advance(&mut self, passed: &[u8]) {
        if let Some(last) = passed.last() {
            self.in_line = *last != b'\n';
        }
    }
}

/// Whether an incomplete line is the beginning of a `Connection` line.
fn may_be_connection(line: &[u8]) -> bool {
    let length = line.len().min(CONNECTION.len());
    let name = (line.get(..length), CONNECTION.get(..length));
    matches!(name, (Some(line), Some(name)) if line.eq_ignore_ascii_case(name))
}

fn remove_option(line: &mut [u8]) {
    let Some((name, value)) = line.split_at_mut_checked(CONNECTION.len()) else {
        return;
    };
    if !name.eq_ignore_ascii_case(CONNECTION) {
        return;
    }
    for option in value.split_mut(|byte| *byte == b',') {
        if option.trim_ascii().eq_ignore_ascii_case(OPTION) {
            let letters = option.iter_mut().filter(|byte| byte.is_ascii_alphabetic());
            letters.for_each(|letter| *letter = b' ');
        }
    }
}

/// Whether actix-http takes a request for the beginning of another protocol all the same. Its connection must be closed
/// after the response.
pub(crate) fn is_left(head: &RequestHead) -> bool {
    head.connection_type() == ConnectionType::Upgrade || is_websocket(head.headers())
}

/// Whether actix-http takes everything after the head for the body, as [`is_left`].
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    let is_websocket = |line: &[u8]| line.trim_ascii().eq_ignore_ascii_case(b"websocket");
    let mut offers = headers.get_all(UPGRADE);
    !headers.contains_key(TRANSFER_ENCODING) && offers.any(|line| is_websocket(line.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::UpgradeOffers;

    /// A head after the removal, passed on in parts of `length` bytes as they arrive.
    fn without_offers(head: &str, length: usize) -> String {
        let mut offers = UpgradeOffers::default();
        let (mut received, mut passed) = (Vec::new(), Vec::new());
        for part in head.as_bytes().chunks(length) {
            received.extend_from_slice(part);
            let count = offers.remove(&mut received);
            let part: Vec<_> = received.drain(..count).collect();
            offers.advance(&part);
            passed.extend(part);
        }
        passed.extend(received);
        String::from_utf8(passed).unwrap()
    }

    #[test]
    fn the_option_is_removed_however_the_head_arrives() {
        for (sent, expected) in [
            ("Connection: Upgrade\r\n", "Connection:        \r\n"),
            (
                "connection:upgrade, HTTP2-Settings\r\n",
                "connection:       , HTTP2-Settings\r\n",
            ),
            (
                "CONNECTION: keep-alive,\tUPGRADE\n",
                "CONNECTION: keep-alive,\t       \n",
            ),
            (
                "Connection: close, upgrade, upgrade\r\n",
                "Connection: close,        ,        \r\n",
            ),
            (
                "A: b\r\nConnection: upgrade\r\n",
                "A: b\r\nConnection:        \r\n",
            ),
        ] {
            let head = |line| format!("GET / HTTP/1.1\r\nHost: x\r\n{line}\r\n");
            for length in 1..head(sent).len() + 1 {
                assert_eq!(
                    without_offers(&head(sent), length),
                    head(expected),
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn nothing_else_changes() {
        for line in [
            "Upgrade: h2c\r\n",
            "Upgrade-Insecure-Requests: 1\r\n",
            "X-Connection: upgrade\r\n",
            "Connection : upgrade\r\n",
            "Connection-Id: upgrade\r\n",
            "Connection: upgraded, re-upgrade, up grade\r\n",
            "A: \rConnection: upgrade\r\n",
            "Connection",
            "Connection: upgrade",
            "connection: \u{e9}\r\n",
        ] {
            let head = format!("POST /connection: HTTP/1.1\r\n{line}");
            for length in [1, 7, 1000] {
                assert_eq!(without_offers(&head, length), head);
            }
        }
    }

    #[test]
    fn a_long_line_is_passed_on_before_its_end() {
        let offers = UpgradeOffers::default();
        let mut line = format!("Connection: {}", "a".repeat(2_000)).into_bytes();
        assert_eq!(offers.remove(&mut line), line.len());
    }
}
