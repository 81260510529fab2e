//! The cookie of a session.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::{COOKIE, HeaderValue};
use values::{Fingerprint, Secret};

/// The name of the cookie on connections with TLS. Browsers take the prefix only from those.
const SECURE_NAME: &str = "__Secure-countersign-session";
/// Its name on the developer's own machine, where there is no TLS.
const LOCAL_NAME: &str = "countersign-session";
/// The only paths to which browsers send it.
const PATH: &str = "/session";
/// The hexadecimal digits of each of its values.
const DIGITS: usize = 64;

#[derive(Debug, Clone)]
pub(in crate::sessions) struct CookieValues {
    /// Finds the session, and never changes.
    finder: Secret,
    /// Is replaced by every exchange.
    secret: Secret,
}

impl CookieValues {
    pub(in crate::sessions) fn random() -> Self {
        Self {
            finder: Secret::random(),
            secret: Secret::random(),
        }
    }

    /// The values of the same session after an exchange.
    pub(in crate::sessions) fn replaced(&self) -> Self {
        Self {
            finder: self.finder.clone(),
            secret: Secret::random(),
        }
    }

    /// The hash of the value that finds the session.
    pub(in crate::sessions) fn fingerprint(&self) -> Fingerprint {
        self.finder.fingerprint()
    }

    /// The hash of the value that every exchange replaces.
    pub(in crate::sessions) fn secret(&self) -> Fingerprint {
        self.secret.fingerprint()
    }

    /// The values of a request's cookie. A request with several such cookies has none: a page of a neighbouring host may have
    /// set the other ones.
    pub(in crate::sessions) fn of(request: &HttpRequest, is_secure: bool) -> Option<Self> {
        let lines = request.headers().get_all(COOKIE);
        let lines = lines.filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';'));
        let mut found = pairs
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, _)| name.trim() == name_of(is_secure));
        let (_, value) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        Self::parse(value.trim())
    }

    fn parse(text: &str) -> Option<Self> {
        let (finder, secret) = text.split_once('.')?;
        let is_value =
            |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_value(finder) && is_value(secret)).then(|| Self {
            finder: Secret::new(finder),
            secret: Secret::new(secret),
        })
    }

    /// The header that sets the cookie for this time.
    pub(in crate::sessions) fn header(
        &self,
        is_secure: bool,
        lifetime: Duration,
    ) -> Option<HeaderValue> {
        let value = format!("{}.{}", self.finder.expose(), self.secret.expose());
        header(&value, is_secure, lifetime)
    }
}

pub(in crate::sessions) fn removal(is_secure: bool) -> Option<HeaderValue> {
    header("", is_secure, Duration::ZERO)
}

fn name_of(is_secure: bool) -> &'static str {
    if is_secure { SECURE_NAME } else { LOCAL_NAME }
}

fn header(value: &str, is_secure: bool, lifetime: Duration) -> Option<HeaderValue> {
    let (name, seconds) = (name_of(is_secure), lifetime.as_secs());
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!(
        "{name}={value}; Path={PATH}; Max-Age={seconds}; HttpOnly{secure}; SameSite=Strict"
    );
    HeaderValue::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn values(cookies: &[&str], is_secure: bool) -> Option<CookieValues> {
        let request = cookies
            .iter()
            .fold(TestRequest::default(), |request, line| {
                request.append_header(("cookie", *line))
            });
        CookieValues::of(&request.to_http_request(), is_secure)
    }

    #[test]
    fn a_cookie_is_read_back_as_it_was_set() {
        for is_secure in [true, false] {
            let set = CookieValues::random();
            let header = set.header(is_secure, Duration::from_secs(60)).unwrap();
            let text = header.to_str().unwrap();
            assert_eq!(text.contains("; Secure"), is_secure, "{text}");
            let pair = text.split(';').next().unwrap();
            let read = values(&["other=1", &format!("a=b; {pair}")], is_secure).unwrap();
            assert!(read.fingerprint().matches(set.fingerprint().as_bytes()));
            assert!(read.secret().matches(set.secret().as_bytes()));
            assert!(values(&[pair], !is_secure).is_none());
            assert!(values(&[pair, pair], is_secure).is_none());
        }
    }

    #[test]
    fn other_values_are_none() {
        let digits = "a".repeat(DIGITS);
        for value in [
            String::new(),
            digits.clone(),
            format!("{digits}.{}", &digits[1..]),
            format!("{digits}.{digits}.{digits}"),
            format!("{digits}.{}g", &digits[1..]),
        ] {
            let pair = format!("{LOCAL_NAME}={value}");
            assert!(values(&[&pair], false).is_none(), "{value}");
        }
        assert!(values(&[], false).is_none());
    }
}
