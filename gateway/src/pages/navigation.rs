//! Whether a request is a person's who opens an address, and not a program's.

use actix_web::HttpRequest;
use actix_web::http::Method;
use actix_web::http::header::{ACCEPT, HeaderMap, Quality, QualityItem, from_comma_delimited};
use actix_web::mime::Mime;

use crate::routes;

/// Whether to respond to an address that does not exist with a page. Programs get a problem, also those that call the API by
/// a browser's name.
pub(crate) fn is_navigation(request: &HttpRequest) -> bool {
    let (method, path) = (request.method(), request.path());
    matches!(*method, Method::GET | Method::HEAD)
        && !is_below_api(path)
        && opens_page(request.headers())
}

/// Whether the first segment of a path is one of the API's.
fn is_below_api(path: &str) -> bool {
    let first = |path: &str| path.split('/').nth(1).unwrap_or_default().to_lowercase();
    let given = first(path);
    routes::ROUTES
        .iter()
        .any(|route| first(route.path) == given)
}

/// Browsers say so in `Sec-Fetch-Mode`. Others prefer HTML to JSON.
fn opens_page(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-mode") {
        Some(mode) => mode == "navigate",
        None => {
            let accepted = from_comma_delimited(headers.get_all(ACCEPT)).unwrap_or_default();
            let html = quality(&accepted, ["*/*", "text/*", "text/html"]);
            html > quality(&accepted, ["*/*", "application/*", "application/json"])
        }
    }
}

/// The weight that a list of media ranges gives a type. `including` are the ranges with the type, of which the last one that is
/// listed counts, because it is the most specific one (RFC 9110 section 12.5.1).
fn quality(accepted: &[QualityItem<Mime>], including: [&str; 3]) -> Quality {
    let weights = accepted.iter().filter_map(|range| {
        let given = range.item.essence_str();
        let specific = including.iter().position(|text| *text == given)?;
        Some((specific, range.quality))
    });
    weights.max().map_or(Quality::ZERO, |(_, weight)| weight)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::is_navigation;

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    #[test]
    fn only_who_prefers_a_page_gets_one() {
        for (headers, expected) in [
            (&[("sec-fetch-mode", "navigate")][..], true),
            (&[("sec-fetch-mode", "cors"), ("accept", BROWSER)], false),
            (
                &[("sec-fetch-mode", "no-cors"), ("accept", "text/html")],
                false,
            ),
            (&[("accept", BROWSER)], true),
            (&[("accept", "text/html")], true),
            (&[("accept", "text/*, application/json;q=0.5")], true),
            (&[("accept", "text/html;q=0.5, application/json")], false),
            (&[("accept", "text/html, application/json")], false),
            (&[("accept", "text/html;q=0, */*")], false),
            (
                &[("accept", "text/html;q=0.7, application/json;q=0.65")],
                true,
            ),
            (
                &[("accept", "text/html;q=0.999, application/json;q=1")],
                false,
            ),
            (&[("accept", "text/html;q=NaN, */*;q=0.1")], false),
            (&[("accept", "*/*;q=0.1, text/*;q=0.2")], true),
            (&[("accept", "*/*")], false),
            (&[("accept", "application/json")], false),
            (&[("accept", "nonsense")], false),
            (&[], false),
        ] {
            let request = headers
                .iter()
                .fold(TestRequest::with_uri("/unknown"), |request, header| {
                    request.insert_header(*header)
                });
            assert_eq!(
                is_navigation(&request.to_http_request()),
                expected,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn the_api_never_responds_with_a_page() {
        let asks = |request: TestRequest| {
            is_navigation(
                &request
                    .insert_header(("sec-fetch-mode", "navigate"))
                    .to_http_request(),
            )
        };
        for path in [
            "/user",
            "/user/x",
            "/users/",
            "/Users/x",
            "/people-task/nothing",
            "/plugins/x",
        ] {
            assert!(!asks(TestRequest::with_uri(path)), "{path}");
        }
        for path in ["/userx", "/nothing", "/TASKS", "/tasks."] {
            assert!(asks(TestRequest::with_uri(path)), "{path}");
        }
        assert!(!asks(TestRequest::post().uri("/nothing")));
    }
}
