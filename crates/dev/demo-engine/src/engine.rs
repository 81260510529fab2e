//! The state that the handlers share.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use values::Secret;

use crate::journal::Journal;
use crate::journal::lock;
use crate::settings::{Control, ControlChange};
use crate::users::Users;

/// The state of the engine.
pub(crate) struct Engine {
    control: Mutex<Control>,
    pub(crate) journal: Journal,
    users: Mutex<Users>,
    token: Option<Secret>,
    stopping: CancellationToken,
}

impl Engine {
    pub(crate) fn new(
        control: Control,
        token: Option<Secret>,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            control: Mutex::new(control),
            journal: Journal::default(),
            users: Mutex::new(Users::default()),
            token,
            stopping,
        }
    }

    pub(crate) fn control(&self) -> Control {
        lock(&self.control).clone()
    }

    pub(crate) fn change_control(&self, change: &ControlChange) -> Control {
        if change.fail.is_some() {
            self.users().reset_failures();
        }
        let mut control = lock(&self.control);
        control.apply(change);
        tracing::info!(?control, "control changed");
        control.clone()
    }

    pub(crate) fn users(&self) -> MutexGuard<'_, Users> {
        lock(&self.users)
    }

    /// Returns the bearer token that erasure calls must carry, if one is configured.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_ref().map(Secret::expose)
    }

    /// Waits until `duration` has passed or the server stops.
    pub(crate) async fn pause(&self, duration: Duration) {
        if duration.is_zero() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = self.stopping.cancelled() => {}
        }
    }

    /// Returns a `503` response if the engine simulates an outage.
    pub(crate) fn outage(&self) -> Option<HttpResponse> {
        self.control().down.then(|| {
            HttpResponse::ServiceUnavailable()
                .insert_header((header::RETRY_AFTER, "1"))
                .json(json!({"message": "The demo engine simulates an outage."}))
        })
    }
}
