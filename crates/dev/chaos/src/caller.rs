//! Somebody who calls the system once, and what they are told.

use std::time::{Duration, Instant};

use serde_json::Value;

use xtask::demo::client::{Call, Client};

use crate::journal::Told;

/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// Calls that are made once, spread over the gateways.
pub(crate) struct Caller {
    gateways: Vec<Client>,
    /// Until then nothing is wrong, and every call has to be answered with 200.
    calm_until: Instant,
}

impl Caller {
    pub(crate) fn new(gateways: &[String], calm_until: Instant) -> Self {
        let clients = gateways.iter();
        Self {
            gateways: clients
                .map(|url| Client::impatient(url, PATIENCE))
                .collect(),
            calm_until,
        }
    }

    /// Makes a call once; callers of different numbers use different gateways. The body is that of the
    /// answer.
    pub(crate) fn tell(&self, call: &Call<'_>, number: u64) -> (Told, Value) {
        let count = u64::try_from(self.gateways.len()).unwrap_or(1).max(1);
        let place = usize::try_from(number % count).unwrap_or_default();
        let Some(gateway) = self.gateways.get(place) else {
            return (Told::Unknown, Value::Null);
        };
        let answer = gateway.once(call);
        let (told, body) = match answer {
            Ok((status, _, body)) => (told(status, &body), body),
            Err(_) => (Told::Unknown, Value::Null),
        };
        if told == Told::Unknown && Instant::now() < self.calm_until {
            let what = "no answer, or one of 502 to 504, while nothing was wrong";
            return (Told::Unexpected(what.to_owned()), body);
        }
        (told, body)
    }
}

/// What an answer means. Those of a system that is partly away are problems, too.
fn told(status: u16, body: &Value) -> Told {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    match (status, text("code")) {
        (200, _) => Told::Done,
        (502..=504, code) if !code.is_empty() => Told::Unknown,
        (409, "task-already-resolved") => Told::Resolved(text("taskStatus").to_owned()),
        (_, code) => Told::Unexpected(format!("{status} {code}").trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_problems_of_a_system_that_is_partly_away_leave_it_open_what_happened() {
        assert_eq!(told(200, &json!({})), Told::Done);
        let away = json!({"code": "bad-gateway"});
        assert_eq!(told(502, &away), Told::Unknown);
        let resolved = json!({"code": "task-already-resolved", "taskStatus": "rejected"});
        assert_eq!(told(409, &resolved), Told::Resolved("rejected".into()));
        for status in [201, 302, 400, 401, 409, 429, 500, 501, 505] {
            let unexpected = Told::Unexpected(format!("{status} bad-gateway"));
            assert_eq!(told(status, &away), unexpected);
        }
        assert_eq!(told(503, &Value::Null), Told::Unexpected("503".into()));
    }
}
