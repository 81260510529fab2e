use std::time::Duration;

use outbound::{Answer, SendError};
use reqwest::StatusCode;

/// `Retry-After` counts up to here.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// The pauses after failed attempts.
#[derive(Debug, Clone)]
pub(super) struct RetrySchedule(pub(super) Vec<Duration>);

/// What follows from an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The receiver has it.
    Sent,
    /// Another attempt after this pause.
    Retry(Duration),
    /// No further attempt.
    Fail,
}

impl RetrySchedule {
    /// Judges an attempt that `earlier` failed ones went before. The pause of the schedule is stretched
    /// by `jitter`, so that what failed together does not come back together.
    pub(super) fn judge(
        &self,
        earlier: usize,
        answer: &Result<Answer, SendError>,
        jitter: f64,
    ) -> Verdict {
        let status = answer.as_ref().ok().map(|answer| answer.status);
        match status {
            Some(status) if status.is_success() => return Verdict::Sent,
            Some(StatusCode::GONE) => return Verdict::Fail,
            _ => {}
        }
        let asked = match answer {
            Ok(answer) if asks_for_patience(answer.status) => {
                outbound::retry_after(&answer.headers)
            }
            _ => None,
        };
        match self.0.get(earlier) {
            Some(pause) => {
                let asked = asked.unwrap_or_default().min(LONGEST_RETRY_AFTER);
                Verdict::Retry(pause.mul_f64(jitter).max(asked))
            }
            None => Verdict::Fail,
        }
    }
}

fn asks_for_patience(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    )
}

/// A factor of 0.8 to 1.2.
pub(super) fn jitter() -> f64 {
    rand::random_range(0.8..=1.2)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use outbound::{Answer, SendError};
    use proptest::prelude::*;
    use reqwest::StatusCode;
    use reqwest::header::{HeaderMap, RETRY_AFTER};

    use super::{RetrySchedule, Verdict, jitter};

    const SECOND: Duration = Duration::from_secs(1);

    fn schedule() -> RetrySchedule {
        RetrySchedule(vec![5 * SECOND, 30 * SECOND])
    }

    fn answer(status: u16, retry_after: Option<&str>) -> Result<Answer, SendError> {
        let mut headers = HeaderMap::new();
        if let Some(text) = retry_after {
            headers.insert(RETRY_AFTER, text.parse().unwrap());
        }
        Ok(Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            beginning: Vec::new(),
        })
    }

    fn judge(earlier: usize, answer: &Result<Answer, SendError>) -> Verdict {
        schedule().judge(earlier, answer, 1.0)
    }

    #[test]
    fn only_2xx_is_sent_and_410_ends_it() {
        for (status, expected) in [
            (200, Verdict::Sent),
            (204, Verdict::Sent),
            (299, Verdict::Sent),
            (301, Verdict::Retry(5 * SECOND)),
            (304, Verdict::Retry(5 * SECOND)),
            (400, Verdict::Retry(5 * SECOND)),
            (404, Verdict::Retry(5 * SECOND)),
            (410, Verdict::Fail),
            (500, Verdict::Retry(5 * SECOND)),
        ] {
            assert_eq!(judge(0, &answer(status, None)), expected, "{status}");
        }
        let refused = Err(SendError::ConnectionRefused);
        assert_eq!(judge(0, &refused), Verdict::Retry(5 * SECOND));
    }

    #[test]
    fn the_pauses_are_used_in_turn_and_then_it_has_failed() {
        let error = answer(500, None);
        assert_eq!(judge(0, &error), Verdict::Retry(5 * SECOND));
        assert_eq!(judge(1, &error), Verdict::Retry(30 * SECOND));
        assert_eq!(judge(2, &error), Verdict::Fail);
        assert_eq!(judge(2, &answer(429, Some("60"))), Verdict::Fail);
    }

    #[test]
    fn retry_after_stretches_a_pause_up_to_an_hour_and_never_shortens_it() {
        let pause = |status, text| match judge(0, &answer(status, Some(text))) {
            Verdict::Retry(pause) => pause,
            other => panic!("{other:?}"),
        };
        assert_eq!(pause(429, "60"), 60 * SECOND);
        assert_eq!(pause(503, " 60 "), 60 * SECOND);
        assert_eq!(pause(429, "1"), 5 * SECOND);
        assert_eq!(pause(429, "99999999999999999999999"), 3600 * SECOND);
        assert_eq!(pause(429, "soon"), 5 * SECOND);
        assert_eq!(pause(429, "-60"), 5 * SECOND);
        assert_eq!(pause(500, "60"), 5 * SECOND);
        let in_a_minute = httpdate::fmt_http_date(SystemTime::now() + 60 * SECOND);
        assert!((58 * SECOND..=60 * SECOND).contains(&pause(503, &in_a_minute)));
        let past = httpdate::fmt_http_date(SystemTime::now() - 60 * SECOND);
        assert_eq!(pause(503, &past), 5 * SECOND);
    }

    proptest! {
        #[test]
        fn a_pause_is_within_a_fifth_of_the_schedule(earlier in 0_usize..2) {
            let pause = schedule().0[earlier];
            let verdict = schedule().judge(earlier, &answer(500, None), jitter());
            prop_assert!(matches!(verdict, Verdict::Retry(p) if p >= pause.mul_f64(0.799) && p <= pause.mul_f64(1.201)));
        }
    }
}
