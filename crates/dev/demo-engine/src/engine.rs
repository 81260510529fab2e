//! The state that all handlers share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use values::Secret;

use crate::control::{Control, ControlChange};
use crate::journal::Journal;
use crate::users::Users;

/// Everything that the engine knows, in memory.
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
            self.users().forget_failures();
        }
        let mut control = lock(&self.control);
        control.apply(change);
        tracing::info!(?control, "control changed");
        control.clone()
    }

    pub(crate) fn users(&self) -> MutexGuard<'_, Users> {
        lock(&self.users)
    }

    /// The bearer token that erasure calls must carry, if one is configured.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_ref().map(Secret::expose)
    }

    /// Waits, but not beyond the beginning of the server's stop.
    pub(crate) async fn pause(&self, duration: Duration) {
        if duration.is_zero() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = self.stopping.cancelled() => {}
        }
    }

    /// The answer while the engine plays dead, `None` otherwise.
    pub(crate) fn outage(&self) -> Option<HttpResponse> {
        self.control().down.then(|| {
            HttpResponse::ServiceUnavailable()
                .insert_header((header::RETRY_AFTER, "1"))
                .json(json!({"message": "The demo engine is told to be down."}))
        })
    }
}

/// A panic while a lock was held cannot leave these plain values half-written, so poison is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
