//! The state that the handlers share.

use std::collections::HashMap;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use values::Secret;

use crate::journal::Journal;
use crate::settings::{Control, ControlChange};
use crate::users::Users;

const MAX_COUNTED_URLS: usize = 10_000;

#[derive(Default)]
pub(crate) struct Engine {
    pub(crate) control: Mutex<Control>,
    pub(crate) journal: Mutex<Journal>,
    pub(crate) users: Mutex<Users>,
    /// How often each URL with `failFirst` has failed.
    pub(crate) failed_first: Mutex<HashMap<String, u32>>,
    /// The bearer token that erasure calls must carry, if one is configured.
    pub(crate) token: Option<Secret>,
    pub(crate) stopping: CancellationToken,
}

impl Engine {
    pub(crate) fn control(&self) -> Control {
        self.control.lock().clone()
    }

    pub(crate) fn change_control(&self, change: &ControlChange) -> Control {
        if change.fail.is_some() {
            self.users.lock().reset_failures();
        }
        let mut control = self.control.lock();
        control.delay = change.delay.unwrap_or(control.delay);
        control.fail = change.fail.unwrap_or(control.fail);
        control.accepted = change.accepted.unwrap_or(control.accepted);
        control.down = change.down.unwrap_or(control.down);
        tracing::info!(?control, "control changed");
        control.clone()
    }

    /// Waits until `duration` has passed or the server stops.
    pub(crate) async fn pause(&self, duration: Duration) {
        if duration.is_zero() {
            return;
        }
        let sleep = tokio::time::sleep(duration);
        self.stopping.run_until_cancelled(sleep).await;
    }

    /// Returns a `503` response if the engine simulates an outage.
    pub(crate) fn outage(&self) -> Option<HttpResponse> {
        self.control().down.then(|| {
            HttpResponse::ServiceUnavailable()
                .insert_header((header::RETRY_AFTER, "1"))
                .json(json!({"message": "The demo engine simulates an outage."}))
        })
    }

    /// Returns whether this call of the URL is one of the first `times`, which fail.
    pub(crate) fn fails_first(&self, url: &str, times: u32) -> bool {
        let mut by_url = self.failed_first.lock();
        if by_url.len() >= MAX_COUNTED_URLS && !by_url.contains_key(url) {
            by_url.clear();
        }
        let failed = by_url.entry(url.to_owned()).or_default();
        let fails = *failed < times;
        *failed += u32::from(fails);
        fails
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_calls_of_a_url_fail() {
        let engine = Engine::default();
        let fails: Vec<bool> = (0..4).map(|_| engine.fails_first("/a", 2)).collect();
        assert_eq!(fails, [true, true, false, false]);
        assert!(engine.fails_first("/b", 1));
        assert!(!engine.fails_first("/c", 0));
    }
}
