use actix_web::http::header::{HeaderValue, LINK};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use url::form_urlencoded;
use utoipa::ToSchema;

/// The rows of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// The offset of the next page, if there is one.
    pub next_offset: Option<i64>,
}

impl<T> Page<T> {
    /// Converts the rows.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page {
            rows: self.rows.into_iter().map(change).collect(),
            next_offset: self.next_offset,
        }
    }

    /// The value of the `Link` header (RFC 8288): the same path and query with the `offset` of the next page.
    #[must_use]
    pub fn link(&self, path: &str, query: &str) -> Option<HeaderValue> {
        let offset = self.next_offset?.to_string();
        let pairs = form_urlencoded::parse(query.as_bytes());
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs.filter(|(name, _)| name != "offset"))
            .append_pair("offset", &offset)
            .finish();
        HeaderValue::try_from(format!("<{path}?{query}>; rel=\"next\"")).ok()
    }

    /// `200` with the rows as a JSON array, and with `Link` if there is a next page.
    #[must_use]
    pub fn respond(&self, request: &HttpRequest) -> HttpResponse
    where
        T: Serialize,
    {
        let mut response = HttpResponse::Ok();
        if let Some(link) = self.link(request.path(), request.query_string()) {
            response.insert_header((LINK, link));
        }
        response.json(&self.rows)
    }
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
    use super::Page;

    #[test]
    fn the_link_keeps_other_parameters() {
        let page = Page {
            rows: vec![1],
            next_offset: Some(20),
        };
        let link = page.link(
            "/users",
            "limit=10&filter=scope:admin&offset=10&pattern=a+b",
        );
        assert_eq!(
            link.unwrap(),
            "</users?limit=10&filter=scope%3Aadmin&pattern=a+b&offset=20>; rel=\"next\""
        );
    }

    #[test]
    fn the_last_page_has_no_link() {
        let page = Page {
            rows: vec![1],
            next_offset: None,
        };
        assert_eq!(page.link("/users", "limit=10"), None);
    }
}
