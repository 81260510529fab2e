use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, MessageBody};
use actix_web::http::header::{ContentType, HeaderValue, LINK};
use actix_web::web::Bytes;
use fairness::{Each, Share};
use serde::Serialize;
use url::form_urlencoded;
use utoipa::ToSchema;
use values::UserId;

use crate::Page;

/// A page up to this length is sent without waiting for others.
pub(crate) const SHORT_PAGE: u32 = 256 * 1024;
/// The size from which a part of a page is complete. actix-web copies one part at a time for the socket.
const PART: usize = 32 * 1024;

/// A page as JSON, in parts.
#[derive(Debug)]
pub struct EncodedPage {
    parts: VecDeque<Bytes>,
    length: usize,
    next_offset: Option<i64>,
    /// Whether the page ended before its limit of rows, because more would be too large.
    pub(crate) is_cut: bool,
    held: Option<Held>,
}

/// What a long page holds until it is sent: memory by the byte, and one of its caller's pages.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) memory: Share<(), Each>,
    pub(crate) _caller: Share<UserId, Each>,
}

impl EncodedPage {
    /// Serializes rows until the next one would exceed `max_bytes`, but at least one. Drops each row after it.
    pub(crate) fn new<R, T: Serialize>(
        page: Page<R>,
        max_bytes: usize,
        response: impl Fn(R) -> T,
    ) -> serde_json::Result<Self> {
        let (paging, found) = (page.paging, page.found);
        let mut json = JsonArray::default();
        for row in page.rows {
            if !json.push(&response(row), max_bytes)? {
                break;
            }
        }
        let next_offset = paging.next_offset(json.rows, found);
        Ok(Self {
            is_cut: next_offset.is_some() && json.rows < paging.limit,
            next_offset,
            length: json.finish(),
            parts: json.parts,
            held: None,
        })
    }

    /// Keeps the memory that it needs until it is sent, if it is long.
    pub(crate) fn hold(mut self, mut held: Held) -> Self {
        if self.length > SHORT_PAGE as usize {
            held.memory.shrink_to(self.length as u64);
            self.held = Some(held);
        }
        self
    }

    /// `200` with the rows as a JSON array, and with `Link` if there is a next page. `path` and `query` are those of the
    /// request.
    pub fn respond(self, path: &str, query: &str) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response.content_type(ContentType::json());
        if let Some(offset) = self.next_offset
            && let Some(link) = next_link(path, query, ("offset", &offset.to_string()))
        {
            response.insert_header((LINK, link));
        }
        response.body(self)
    }
}

impl MessageBody for EncodedPage {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.length as u64)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        let part = self.parts.pop_front();
        let unsent: usize = self.parts.iter().map(Bytes::len).sum();
        if let Some(held) = &mut self.held {
            held.memory.shrink_to(unsent as u64);
        }
        Poll::Ready(part.map(Ok))
    }
}

#[derive(Default)]
struct JsonArray {
    parts: VecDeque<Bytes>,
    /// Their length.
    length: usize,
    part: Vec<u8>,
    rows: i64,
}

impl JsonArray {
    /// Adds a row, unless the array has rows and would exceed `max_bytes` with this one.
    fn push(&mut self, row: &impl Serialize, max_bytes: usize) -> serde_json::Result<bool> {
        let end = self.part.len();
        self.part.push(if self.rows == 0 { b'[' } else { b',' });
        serde_json::to_writer(&mut self.part, row)?;
        // One byte for the closing bracket.
        if self.rows > 0 && self.length + self.part.len() + 1 > max_bytes {
            self.part.truncate(end);
            return Ok(false);
        }
        self.rows += 1;
        if self.part.len() >= PART {
            self.complete_part();
        }
        Ok(true)
    }

    fn finish(&mut self) -> usize {
        self.part
            .extend_from_slice(if self.rows == 0 { b"[]" } else { b"]" });
        self.complete_part();
        self.length
    }

    fn complete_part(&mut self) {
        self.length += self.part.len();
        self.parts.push_back(Bytes::copy_from_slice(&self.part));
        self.part.clear();
    }
}

/// The value of the `Link` header (RFC 8288): the same path and query, in which a parameter has the value that leads to the
/// next page.
pub fn next_link(path: &str, query: &str, (name, value): (&str, &str)) -> Option<HeaderValue> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs.filter(|(other, _)| other != name))
        .append_pair(name, value)
        .finish();
    HeaderValue::try_from(format!("<{path}?{query}>; rel=\"next\"")).ok()
}

/// How many rows a list has without `limit`.
#[derive(Debug, Serialize, ToSchema)]
pub struct CountResponse {
    /// The number of rows.
    #[schema(example = 42)]
    pub count: i64,
}

#[cfg(test)]
mod tests {
    use super::{EncodedPage, next_link};
    use crate::Paging;
    use actix_web::body::{BodySize, MessageBody as _, to_bytes};

    fn encode(texts: &[&str], found: i64, max_bytes: usize) -> EncodedPage {
        let paging = Paging {
            limit: 3,
            offset: 10,
        };
        let page = paging.page(texts.to_vec(), found);
        EncodedPage::new(page, max_bytes, str::to_owned).unwrap()
    }

    async fn json(page: EncodedPage) -> String {
        assert_eq!(page.size(), BodySize::Sized(page.length as u64));
        let length = page.length;
        let body = to_bytes(page).await.unwrap();
        assert_eq!(body.len(), length);
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[actix_web::test]
    async fn a_page_that_fits_is_complete() {
        let page = encode(&["a", "b", "c"], 4, 13);
        assert_eq!((page.next_offset, page.is_cut), (Some(13), false));
        assert_eq!(json(page).await, r#"["a","b","c"]"#);
        let last = encode(&["a"], 1, 13);
        assert_eq!((last.next_offset, last.is_cut), (None, false));
        assert_eq!(json(encode(&[], 0, 13)).await, "[]");
    }

    #[actix_web::test]
    async fn a_page_that_is_too_long_ends_early_and_leads_to_the_rest() {
        let page = encode(&["a", "b", "c"], 3, 12);
        assert_eq!((page.next_offset, page.is_cut), (Some(12), true));
        assert_eq!(json(page).await, r#"["a","b"]"#);
    }

    #[actix_web::test]
    async fn the_first_row_is_there_whatever_its_length() {
        let long = "x".repeat(100_000);
        let page = encode(&[&long, "b"], 2, 12);
        assert_eq!((page.next_offset, page.is_cut), (Some(11), true));
        assert_eq!(json(page).await, format!("[\"{long}\"]"));
    }

    #[test]
    fn the_link_keeps_other_parameters() {
        let link = next_link(
            "/users",
            "limit=10&filter=scope:admin&offset=10&pattern=a+b",
            ("offset", "20"),
        );
        assert_eq!(
            link.unwrap(),
            "</users?limit=10&filter=scope%3Aadmin&pattern=a+b&offset=20>; rel=\"next\""
        );
    }
}
