use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, RETRY_AFTER};

/// How long `Retry-After` asks to wait, in seconds or until an HTTP date (RFC 9110 section 10.2.3). It is zero
/// for a date in the past, and `None` without a valid header.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows means a very long time.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &str) -> Option<Duration> {
        retry_after(&HeaderMap::from_iter([(
            RETRY_AFTER,
            value.parse().unwrap(),
        )]))
    }

    #[test]
    fn seconds_are_parsed() {
        assert_eq!(parse("7"), Some(Duration::from_secs(7)));
        assert_eq!(parse(" 0 "), Some(Duration::ZERO));
        let overflow = "9".repeat(30);
        assert_eq!(parse(&overflow), Some(Duration::from_secs(u64::MAX)));
    }

    #[test]
    fn an_http_date_is_parsed() {
        let past = "Wed, 21 Oct 2015 07:28:00 GMT";
        assert_eq!(parse(past), Some(Duration::ZERO));
        let future = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(90));
        let wait = parse(&future).unwrap();
        assert!((85..=90).contains(&wait.as_secs()), "{wait:?}");
    }

    #[test]
    fn other_values_are_ignored() {
        for value in ["", "soon", "-1", "1.5", "2015-10-21T07:28:00Z"] {
            assert_eq!(parse(value), None, "{value:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
