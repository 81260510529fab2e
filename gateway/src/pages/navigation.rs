//! Whether a request is a person's who opens an address, and not a program's.

use actix_web::HttpRequest;
use actix_web::http::Method;
use actix_web::http::header::{ACCEPT, HeaderMap};

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
            let accepted = headers
                .get_all(ACCEPT)
                .filter_map(|line| line.to_str().ok());
            let accepted = accepted.collect::<Vec<_>>().join(",");
            quality(&accepted, "text", "html") > quality(&accepted, "application", "json")
        }
    }
}

/// The weight that a list of media ranges gives a type, from 0 to 1: the most specific range counts (RFC 9110 section 12.5.1).
fn quality(accepted: &str, kind: &str, subtype: &str) -> f32 {
    let ranges = accepted.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (given, sub) = parts.next()?.split_once('/')?;
        let specific = match (given, sub) {
            ("*", "*") => 0,
            (given, "*") if given.eq_ignore_ascii_case(kind) => 1,
            (given, sub)
                if given.eq_ignore_ascii_case(kind) && sub.eq_ignore_ascii_case(subtype) =>
            {
                2
            }
            _ => return None,
        };
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        let weight = weight.map_or(Some(1.0), |weight| weight.parse::<f32>().ok())?;
        Some((specific, weight.clamp(0.0, 1.0)))
    });
    let most_specific = ranges.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    most_specific.map_or(0.0, |(_, weight)| weight)
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
