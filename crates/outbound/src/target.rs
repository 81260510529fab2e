use app_config::SettingValue;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use url::{Position, Url};

/// The printable ASCII characters that the HTTP library does not send in a path. It refuses others in a query.
const NOT_IN_PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'<').add(b'>').add(b'`');
const NOT_IN_QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'<').add(b'>').add(b'"');

/// The longest host in bytes, with international names as they are looked up: RFC 1035, section 2.3.4, without the bytes of the
/// lengths.
pub const MAX_HOST: usize = 253;

/// Why a text is not a URL that can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// It is not an http or https URL with a host.
    #[error("it is not an http or https URL")]
    Malformed,
    /// It names a user or a password.
    #[error("it contains a user name or a password")]
    Credentials,
}

/// A URL as it is called: path and query are sent byte for byte as given. Only what no request line may contain is
/// percent-encoded, and the fragment is not sent.
///
/// The host that [`crate::AddressPolicy`] checks and the host that is connected to are the same, because both come from
/// one parser. User and password become Basic authorisation.
#[derive(Debug, Clone)]
pub struct TargetUrl {
    parsed: Url,
    /// What the HTTP client calls.
    pub(crate) uri: Uri,
    pub(crate) authorization: Option<HeaderValue>,
}

impl TargetUrl {
    /// Parses a URL that was accepted earlier, or that the operator set.
    ///
    /// # Errors
    /// It is not an http or https URL with a host.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let parsed = Url::parse(text).map_err(|_| InvalidUrl::Malformed)?;
        let uri = to_uri(text, &parsed).ok_or(InvalidUrl::Malformed)?;
        let authorization = basic_authorization(&parsed);
        Ok(Self {
            parsed,
            uri,
            authorization,
        })
    }

    /// Parses a URL of a caller. It refuses every URL that two parsers might read differently: whitespace and control
    /// characters, which some drop, other separators than slashes, an encoded host, and one that ends in several dots, which some
    /// drop. It refuses a host that is too long for name servers, too.
    ///
    /// # Errors
    /// Like [`TargetUrl::parse`], or the URL contains a user name or a password.
    pub fn parse_new(text: &str) -> Result<Self, InvalidUrl> {
        let dropped = |c: char| c.is_control() || (c.is_whitespace() && c != ' ');
        let (authority, _) = split(text).ok_or(InvalidUrl::Malformed)?;
        if text.contains(dropped) || text.ends_with(' ') || authority.contains([' ', '%']) {
            return Err(InvalidUrl::Malformed);
        }
        if authority.contains('@') {
            return Err(InvalidUrl::Credentials);
        }
        let target = Self::parse(text)?;
        let host = target.parsed.host_str().unwrap_or_default();
        if host.len() > MAX_HOST || host.ends_with("..") {
            return Err(InvalidUrl::Malformed);
        }
        Ok(target)
    }

    /// The URL as it was parsed, for its scheme, host and port.
    pub fn parsed(&self) -> &Url {
        &self.parsed
    }
}

impl SettingValue for TargetUrl {
    const ALLOWED: &'static str = Url::ALLOWED;
    const EXAMPLE: &'static str = Url::EXAMPLE;

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let _ = <Url as SettingValue>::parse(text)?;
        Self::parse(text).map_err(|error| error.to_string())
    }
}

/// The authority of a URL, and what follows it. Every parser agrees about where they meet: there is none if the scheme
/// is not followed by exactly two slashes, or a backslash is where some parsers see the end of the host.
fn split(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    (is_http && !authority.is_empty() && !authority.contains('\\')).then_some((authority, rest))
}

fn to_uri(text: &str, parsed: &Url) -> Option<Uri> {
    let scheme = match parsed.scheme() {
        "http" => Scheme::HTTP,
        "https" => Scheme::HTTPS,
        _ => return None,
    };
    let authority = &parsed[Position::BeforeHost..Position::AfterPort];
    let given = split(text).map(|(_, rest)| rest);
    // A stored URL may be one that only the parser understands.
    let rest = given.unwrap_or(&parsed[Position::BeforePath..]);
    Uri::builder()
        .scheme(scheme)
        .authority(Authority::try_from(authority).ok()?)
        .path_and_query(request_target(rest)?)
        .build()
        .ok()
}

/// The path and the query, which begin with a slash in a request line.
fn request_target(given: &str) -> Option<PathAndQuery> {
    let given = given.split_once('#').map_or(given, |(before, _)| before);
    let (path, query) = given
        .split_once('?')
        .map_or((given, None), |(path, query)| (path, Some(query)));
    let path = if path.is_empty() { "/" } else { path };
    let mut target = utf8_percent_encode(path, NOT_IN_PATH).to_string();
    if let Some(query) = query {
        target.push('?');
        target.extend(utf8_percent_encode(query, NOT_IN_QUERY));
    }
    PathAndQuery::from_maybe_shared(target.into_bytes()).ok()
}

fn basic_authorization(url: &Url) -> Option<HeaderValue> {
    let decode = |text| percent_decode_str(text).decode_utf8().ok();
    let user = decode(url.username())?;
    if user.is_empty() && url.password().is_none() {
        return None;
    }
    let password = url.password().and_then(decode).unwrap_or_default();
    let credentials = BASE64_STANDARD.encode(format!("{user}:{password}"));
    let mut value = HeaderValue::try_from(format!("Basic {credentials}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{InvalidUrl, TargetUrl};

    #[test]
    fn path_and_query_are_called_as_given() {
        for (url, target) in [
            ("http://h", "/"),
            ("http://h/", "/"),
            ("http://h?a=1", "/?a=1"),
            ("http://h?", "/?"),
            ("http://h/#part", "/"),
            ("http://h#part?a=1", "/"),
            ("http://h/?a=1#b?c", "/?a=1"),
            ("http://h/?q='x'", "/?q='x'"),
            ("http://h/a'b(c)*!~$&,;=:@", "/a'b(c)*!~$&,;=:@"),
            ("http://h//a//../b/./c/..", "//a//../b/./c/.."),
            ("http://h/%2e%2E/%7euser/%zz/%", "/%2e%2E/%7euser/%zz/%"),
            (
                "http://h/a%2Fb%20c%25?d=%27+%c3%BC",
                "/a%2Fb%20c%25?d=%27+%c3%BC",
            ),
            ("http://h/[a]{b}|c^d\\e\"", "/[a]{b}|c^d\\e\""),
            ("http://h/?[a]={b}|c^d\\e`&&=&?/", "/?[a]={b}|c^d\\e`&&=&?/"),
            ("http://h/<a>`b`", "/%3Ca%3E%60b%60"),
            ("http://h/?<a>=\"b\"", "/?%3Ca%3E=%22b%22"),
            ("http://h/a b?c d", "/a%20b?c%20d"),
            (
                "http://h/ü/日本?é=😀",
                "/%C3%BC/%E6%97%A5%E6%9C%AC?%C3%A9=%F0%9F%98%80",
            ),
            (
                "http://h/http://x@y/?u=http://a:b@c/",
                "/http://x@y/?u=http://a:b@c/",
            ),
            ("http://h/*", "/*"),
        ] {
            let parsed = TargetUrl::parse_new(url).unwrap();
            assert_eq!(
                parsed.uri.path_and_query().unwrap().to_string(),
                target,
                "{url}"
            );
            assert_eq!(parsed.uri.host(), Some("h"), "{url}");
        }
    }

    #[test]
    fn the_host_that_is_called_is_the_one_that_was_checked() {
        for (url, authority) in [
            ("HTTPS://Engine.Example.com:443/", "engine.example.com"),
            ("http://engine.example.com:8080/", "engine.example.com:8080"),
            ("http://bücher.example/", "xn--bcher-kva.example"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://[0:0::1]:80/", "[::1]"),
            ("http://h./", "h."),
        ] {
            let parsed = TargetUrl::parse_new(url).unwrap();
            assert_eq!(parsed.uri.authority().unwrap(), authority, "{url}");
        }
    }

    #[test]
    fn a_new_url_that_could_be_read_in_two_ways_is_refused() {
        for url in [
            "",
            "h/a",
            "http://",
            "http:///h/",
            "http:h",
            "http:/h",
            "http:\\\\h\\a",
            "http://a\\@b/",
            "http://a\\b/",
            "http://a b/",
            "http://a\tb/",
            "http://h/a\nb",
            "http://h/a\u{85}b",
            "http://h/a\u{a0}b",
            " http://h/",
            "http://h/ ",
            "http://%68/",
            "http://[::1/",
            "http://[fe80::1%25eth0]/",
            "http://h:99999/",
            "http://h:8a/",
            "http://h\"/",
            "ftp://h/",
            "ws://h/",
        ] {
            let refused = TargetUrl::parse_new(url).unwrap_err();
            assert_eq!(refused, InvalidUrl::Malformed, "{url:?}");
        }
        for url in [
            "http://user:password@h/",
            "http://user@h/",
            "http://:password@h/",
            "http://@h/",
            "http://a@b@h/",
        ] {
            let refused = TargetUrl::parse_new(url).unwrap_err();
            assert_eq!(refused, InvalidUrl::Credentials, "{url:?}");
        }
    }

    #[test]
    fn a_new_url_has_a_host_that_name_servers_can_know() {
        let refused = |host: String| TargetUrl::parse_new(&format!("http://{host}/")).err();
        assert_eq!(refused("a.".repeat(126) + "a"), None);
        let malformed = Some(InvalidUrl::Malformed);
        assert_eq!(refused("a.".repeat(127)), malformed);
        assert_eq!(refused("149..".to_owned()), malformed);
        // It is longer as it is looked up.
        let international = (0x4e00..).step_by(97).filter_map(char::from_u32);
        assert_eq!(refused(international.take(100).collect()), malformed);
    }

    #[test]
    fn a_stored_url_keeps_its_credentials_and_is_called_even_if_it_could_not_be_registered() {
        for (url, authorization) in [
            ("http://h/?a='", None),
            (
                "http://user:pass%20word@h/?a='",
                Some("Basic dXNlcjpwYXNzIHdvcmQ="),
            ),
            ("http://user@h/?a='", Some("Basic dXNlcjo=")),
            ("http://:password@h/?a='", Some("Basic OnBhc3N3b3Jk")),
            ("http:h/?a=%27", None),
            ("http:\\\\h\\?a=%27", None),
        ] {
            let target = TargetUrl::parse(url).unwrap();
            let sent = target
                .authorization
                .as_ref()
                .map(|value| value.to_str().unwrap());
            assert_eq!(sent, authorization, "{url}");
            assert_eq!(target.uri.host(), Some("h"), "{url}");
            let query = target.uri.query().unwrap();
            assert!(["a='", "a=%27"].contains(&query), "{url}: {query}");
        }
    }

    proptest! {
        #[test]
        fn a_new_url_has_the_host_of_the_parser_and_loses_nothing(
            text in "https?://[a-z0-9.:\\[\\]@\\\\%]{1,12}[/?#\\\\]?[ -~é]{0,40}",
        ) {
            if let Ok(target) = TargetUrl::parse_new(&text) {
                let uri = &target.uri;
                prop_assert_eq!(uri.host(), target.parsed().host_str());
                prop_assert_eq!(uri.port_u16(), target.parsed().port());
                let sent = uri.path_and_query().unwrap().as_str();
                prop_assert!(sent.bytes().all(|b| b.is_ascii_graphic()));
                let given = text.split('#').next().unwrap();
                let decode = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<_>>();
                prop_assert!(decode(given).ends_with(&decode(sent.trim_start_matches('/'))));
            }
        }
    }
}
