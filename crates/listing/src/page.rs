use actix_web::http::header::HeaderValue;
use serde::Serialize;
use url::form_urlencoded;
use utoipa::ToSchema;

use crate::Paging;

/// The rows of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows, at most as many as `paging` allows. There are fewer at the end of the list, and where more rows would
    /// be too large together.
    pub rows: Vec<T>,
    /// The requested page.
    pub paging: Paging,
    /// How many rows were found of those that [`Paging::rows_to_fetch`] asks for.
    pub found: i64,
}

impl<T> Page<T> {
    /// Converts the rows.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page {
            rows: self.rows.into_iter().map(change).collect(),
            paging: self.paging,
            found: self.found,
        }
    }
}

impl Paging {
    /// Makes the page of which `rows` were loaded. `found` rows exist of those that [`Paging::rows_to_fetch`] asks for.
    pub fn page<T>(self, rows: Vec<T>, found: i64) -> Page<T> {
        Page {
            rows,
            paging: self,
            found,
        }
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
    use super::next_link;

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
