use std::time::Duration;

use outbound::{SendError, TruncatedResponse, Unresolved, retry_after};
use reqwest::StatusCode;

/// A longer `Retry-After` counts as this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// The shortest and the longest pause before the worker tries again to look up a host, or to send a body.
const POSTPONEMENT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(5));
/// The shortest and the longest pause before the right of who registered a webhook is judged again. Most often a change
/// makes the delivery due before.
const SUSPENSION: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(15));
/// How much longer than the whole schedule a delivery may be postponed.
const MAX_POSTPONED: Duration = Duration::from_mins(10);

#[derive(Debug, Clone)]
pub(super) struct RetrySchedule(pub(super) Vec<Duration>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryDecision {
    Sent,
    Retry(Duration),
    /// Nothing was sent, so this was no attempt. The next one follows after this pause.
    Postpone(Duration),
    /// Nothing was sent, because the user who registered the webhook has no right to the task. That is judged again after
    /// this pause, and as soon as something changes.
    Suspend(Duration),
    Fail,
    /// Nothing was sent: it was marked and given back, or has changed since it was loaded.
    NotSent,
}

impl RetrySchedule {
    /// Decides what happens after an attempt that follows `earlier` failed ones, `age` after the decision. `jitter`
    /// scales the pause, so that deliveries that failed at once are not all retried at once.
    pub(super) fn decide(
        &self,
        earlier: usize,
        age: Duration,
        response: &Result<TruncatedResponse, SendError>,
        jitter: f64,
    ) -> RetryDecision {
        let is_for_later = matches!(
            response,
            Err(SendError::Unresolved(Unresolved::NotAsked) | SendError::Full)
        );
        let most = self.0.iter().copied();
        let most = most.fold(MAX_POSTPONED, Duration::saturating_add);
        if is_for_later && age < most {
            // The older deliveries are, the less often they compete.
            let (shortest, longest) = POSTPONEMENT;
            let pause = (age / 4).clamp(shortest, longest);
            return RetryDecision::Postpone(pause.mul_f64(jitter));
        }
        let mut requested = None;
        if let Ok(response) = response {
            match response.status {
                status if status.is_success() => return RetryDecision::Sent,
                StatusCode::GONE => return RetryDecision::Fail,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                    requested = retry_after(&response.headers);
                }
                _ => {}
            }
        }
        let requested = requested.unwrap_or_default().min(MAX_RETRY_AFTER);
        match self.0.get(earlier) {
            Some(pause) => RetryDecision::Retry(pause.mul_f64(jitter).max(requested)),
            None => RetryDecision::Fail,
        }
    }

    /// Decides when a delivery of this `age` is looked at again that its webhook's registrant has no right to. The first
    /// time it is soon, because the right may have returned while it was judged.
    pub(super) fn suspend(age: Duration, is_suspended: bool, jitter: f64) -> RetryDecision {
        let (shortest, longest) = SUSPENSION;
        let pause = if is_suspended { age / 4 } else { shortest };
        RetryDecision::Suspend(pause.clamp(shortest, longest).mul_f64(jitter))
    }
}

/// A random factor from 0.8 to 1.2.
pub(super) fn jitter() -> f64 {
    rand::random_range(0.8..=1.2)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use outbound::{SendError, TruncatedResponse, Unresolved};
    use proptest::prelude::*;
    use reqwest::StatusCode;
    use reqwest::header::{HeaderMap, RETRY_AFTER};

    use super::{RetryDecision, RetrySchedule, jitter};

    const SECOND: Duration = Duration::from_secs(1);

    fn schedule() -> RetrySchedule {
        RetrySchedule(vec![5 * SECOND, 30 * SECOND])
    }

    fn response(status: u16, retry_after: Option<&str>) -> Result<TruncatedResponse, SendError> {
        let mut headers = HeaderMap::new();
        if let Some(text) = retry_after {
            headers.insert(RETRY_AFTER, text.parse().unwrap());
        }
        Ok(TruncatedResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            beginning: Vec::new(),
        })
    }

    fn decide(earlier: usize, response: &Result<TruncatedResponse, SendError>) -> RetryDecision {
        schedule().decide(earlier, Duration::ZERO, response, 1.0)
    }

    #[test]
    fn only_2xx_is_success_and_410_is_final() {
        for (status, expected) in [
            (200, RetryDecision::Sent),
            (204, RetryDecision::Sent),
            (299, RetryDecision::Sent),
            (301, RetryDecision::Retry(5 * SECOND)),
            (304, RetryDecision::Retry(5 * SECOND)),
            (400, RetryDecision::Retry(5 * SECOND)),
            (404, RetryDecision::Retry(5 * SECOND)),
            (410, RetryDecision::Fail),
            (500, RetryDecision::Retry(5 * SECOND)),
        ] {
            assert_eq!(decide(0, &response(status, None)), expected, "{status}");
        }
        let refused = Err(SendError::ConnectionRefused);
        assert_eq!(decide(0, &refused), RetryDecision::Retry(5 * SECOND));
    }

    #[test]
    fn a_delivery_fails_after_the_last_pause() {
        let error = response(500, None);
        assert_eq!(decide(0, &error), RetryDecision::Retry(5 * SECOND));
        assert_eq!(decide(1, &error), RetryDecision::Retry(30 * SECOND));
        assert_eq!(decide(2, &error), RetryDecision::Fail);
        assert_eq!(decide(2, &response(429, Some("60"))), RetryDecision::Fail);
    }

    #[test]
    fn retry_after_extends_a_pause_up_to_an_hour_and_never_shortens_it() {
        let pause = |status, text| match decide(0, &response(status, Some(text))) {
            RetryDecision::Retry(pause) => pause,
            other => panic!("{other:?}"),
        };
        assert_eq!(pause(429, "60"), 60 * SECOND);
        assert_eq!(pause(503, " 60 "), 60 * SECOND);
        assert_eq!(pause(429, "1"), 5 * SECOND);
        assert_eq!(pause(429, "99999999999999999999999"), 3600 * SECOND);
        assert_eq!(pause(429, "soon"), 5 * SECOND);
        assert_eq!(pause(429, "-60"), 5 * SECOND);
        assert_eq!(pause(500, "60"), 5 * SECOND);
        let began = SystemTime::now();
        let in_a_minute = httpdate::fmt_http_date(began + 60 * SECOND);
        let found = pause(503, &in_a_minute);
        // A date has whole seconds.
        let least = 59 * SECOND - began.elapsed().unwrap();
        assert!((least..=60 * SECOND).contains(&found), "{found:?}");
        let past = httpdate::fmt_http_date(SystemTime::now() - 60 * SECOND);
        assert_eq!(pause(503, &past), 5 * SECOND);
    }

    #[test]
    fn a_delivery_whose_host_was_not_asked_for_is_postponed_for_a_limited_time() {
        let not_asked = Err(SendError::Unresolved(Unresolved::NotAsked));
        let decide = |earlier, age| schedule().decide(earlier, age, &not_asked, 1.0);
        for (age, pause) in [(0, 2), (8, 2), (40, 10), (634, 158)] {
            let pause = pause * SECOND..(pause + 1) * SECOND;
            let decision = decide(2, age * SECOND);
            let postponed =
                matches!(decision, RetryDecision::Postpone(after) if pause.contains(&after));
            assert!(postponed, "{decision:?}");
        }
        // The schedule lasts 35 seconds, and ten minutes are added.
        assert_eq!(decide(0, 635 * SECOND), RetryDecision::Retry(5 * SECOND));
        assert_eq!(decide(2, 635 * SECOND), RetryDecision::Fail);
    }

    #[test]
    fn a_host_that_does_not_resolve_is_a_failed_attempt() {
        let no_address = Err(SendError::Unresolved(Unresolved::NoAddress));
        assert_eq!(decide(0, &no_address), RetryDecision::Retry(5 * SECOND));
        assert_eq!(decide(2, &no_address), RetryDecision::Fail);
    }

    #[test]
    fn a_suspended_delivery_is_looked_at_soon_and_then_the_less_often_the_older_it_is() {
        for (age, is_suspended, pause) in [
            (3600, false, 2),
            (4, true, 2),
            (40, true, 10),
            (3600, true, 900),
        ] {
            let decision = RetrySchedule::suspend(age * SECOND, is_suspended, 1.0);
            let expected = RetryDecision::Suspend(pause * SECOND);
            assert_eq!(decision, expected, "{age} s, {is_suspended}");
        }
    }

    proptest! {
        #[test]
        fn a_pause_is_within_20_percent_of_the_schedule(earlier in 0_usize..2) {
            let pause = schedule().0[earlier];
            let decision = schedule().decide(earlier, Duration::ZERO, &response(500, None), jitter());
            prop_assert!(matches!(decision, RetryDecision::Retry(p) if p >= pause.mul_f64(0.799) && p <= pause.mul_f64(1.201)));
        }
    }
}
