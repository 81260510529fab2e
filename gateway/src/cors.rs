//! Which pages of other origins may call the API from a browser.
//!
//! Tokens travel in a header and no cookie is ever read, so credentials in the sense of CORS are never
//! allowed; neither is every origin at once.

use actix_cors::Cors;
use app_config::SettingValue;
use url::Url;

/// The request headers that the API reads and a browser does not send by itself.
const REQUEST_HEADERS: [&str; 7] = [
    "authorization",
    "content-type",
    "if-match",
    "if-none-match",
    "traceparent",
    "x-request-id",
    "x-task-secret",
];

/// The response headers that scripts may read.
const RESPONSE_HEADERS: [&str; 8] = [
    "etag",
    "link",
    "location",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "www-authenticate",
    "x-request-id",
];

const REMEMBERED_SECONDS: usize = 600;

/// Origins in the form in which browsers send them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(Vec<String>);

impl Origins {
    /// Whether there are none, so that browsers allow no page of another origin.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl SettingValue for Origins {
    const ALLOWED: &'static str =
        "origins separated by commas such as `https://app.example.com,http://localhost:3000`";
    const EXAMPLE: &'static str = "https://app.example.com";

    fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim);
        let origins = parts.filter(|part| !part.is_empty()).map(origin);
        origins.collect::<Result<_, _>>().map(Self)
    }
}

fn origin(text: &str) -> Result<String, String> {
    if text == "*" {
        return Err("`*` would allow every page there is; name the origins".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("{text:?}: {error}"))?;
    let written = url.origin().ascii_serialization();
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{text:?} is neither http nor https"));
    }
    if text.eq_ignore_ascii_case(&written) {
        Ok(written)
    } else {
        Err(format!(
            "{text:?} is more than an origin, or not as browsers write it; {written:?} would be one"
        ))
    }
}

/// Answers preflights, and tells browsers on every answer whether the page may read it.
pub(crate) fn cors(origins: &Origins) -> Cors {
    let cors = Cors::default()
        .allowed_methods(["GET", "HEAD", "POST", "PUT", "DELETE"])
        .allowed_headers(REQUEST_HEADERS)
        .expose_headers(RESPONSE_HEADERS)
        .max_age(REMEMBERED_SECONDS);
    let origins = origins.0.iter();
    origins.fold(cors, |cors, origin| cors.allowed_origin(origin))
}

#[cfg(test)]
mod tests {
    use app_config::SettingValue as _;

    use super::Origins;

    #[test]
    fn origins_are_taken_as_browsers_write_them() {
        let text = "https://app.example.com, http://localhost:3000,,HTTPS://B.example";
        let Origins(origins) = Origins::parse(text).unwrap();
        let expected = [
            "https://app.example.com",
            "http://localhost:3000",
            "https://b.example",
        ];
        assert_eq!(origins, expected);
        assert!(Origins::parse("").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in [
            "*",
            "null",
            "app.example.com",
            "https://*.example.com/",
            "https://app.example.com/",
            "https://app.example.com/path",
            "https://app.example.com?x",
            "https://ada@app.example.com",
            "https://app.example.com:443",
            "file:///etc/passwd",
            "https://app.example.com,*",
        ] {
            assert!(Origins::parse(text).is_err(), "{text}");
        }
    }
}
