use std::time::{Duration, SystemTime};

use http::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// How long `Retry-After` asks to wait, in seconds or until an HTTP date (RFC 9110 section 10.2.3). It is zero
/// for a date in the past, and `None` without a valid header. Such a date is by the clock of the responder, which its `Date`
/// shows.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| Some(headers.get(name)?.to_str().ok()?.trim());
    let date = |text| httpdate::parse_http_date(text).ok();
    let asked = text(RETRY_AFTER)?;
    if !asked.is_empty() && asked.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows means a very long time.
        return Some(Duration::from_secs(asked.parse().unwrap_or(u64::MAX)));
    }
    let sent = text(DATE).and_then(date).unwrap_or_else(SystemTime::now);
    Some(date(asked)?.duration_since(sent).unwrap_or_default())
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
    fn an_http_date_is_by_the_clock_of_the_responder() {
        let wait = |date: &str, until: SystemTime| {
            retry_after(&HeaderMap::from_iter([
                (DATE, date.parse().unwrap()),
                (RETRY_AFTER, httpdate::fmt_http_date(until).parse().unwrap()),
            ]))
        };
        let wait_of_90 = Duration::from_secs(90);
        let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let date = httpdate::fmt_http_date(an_hour_ago);
        assert_eq!(wait(&date, an_hour_ago + wait_of_90), Some(wait_of_90));
        assert_eq!(wait(&date, an_hour_ago - wait_of_90), Some(Duration::ZERO));
        let found = wait("yesterday", SystemTime::now() + wait_of_90).unwrap();
        assert!((85..=90).contains(&found.as_secs()), "{found:?}");
    }

    #[test]
    fn other_values_are_ignored() {
        for value in ["", "soon", "-1", "1.5", "2015-10-21T07:28:00Z"] {
            assert_eq!(parse(value), None, "{value:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
