//! How the engine misbehaves, changeable while it runs.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};

use crate::duration;
use crate::engine::Engine;

/// How the engine answers at present.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Control {
    /// Pause before each erasure call is looked at.
    #[serde(serialize_with = "duration::serialize")]
    pub delay: Duration,
    /// How many times each erasure call of each user answers `500` before it works.
    pub fail: u32,
    /// How long each erasure call of each user answers `202` before it is done; zero for not at all.
    #[serde(serialize_with = "duration::serialize")]
    pub accepted: Duration,
    /// While true, everything of the contract answers `503` and nothing is recorded.
    pub down: bool,
}

/// What to change of a [`Control`]; a field that is `None` stays as it is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlChange {
    /// See [`Control::delay`].
    #[serde(default, deserialize_with = "duration::deserialize_some")]
    pub delay: Option<Duration>,
    /// See [`Control::fail`]. Giving it starts the count of failures anew for every call and user.
    #[serde(default)]
    pub fail: Option<u32>,
    /// See [`Control::accepted`].
    #[serde(default, deserialize_with = "duration::deserialize_some")]
    pub accepted: Option<Duration>,
    /// See [`Control::down`].
    #[serde(default)]
    pub down: Option<bool>,
}

impl Control {
    /// Takes over the fields of `change` that are given.
    pub(crate) fn apply(&mut self, change: &ControlChange) {
        self.delay = change.delay.unwrap_or(self.delay);
        self.fail = change.fail.unwrap_or(self.fail);
        self.accepted = change.accepted.unwrap_or(self.accepted);
        self.down = change.down.unwrap_or(self.down);
    }
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/control")
            .route(web::get().to(show))
            .route(web::put().to(change)),
    );
}

async fn show(engine: web::Data<Engine>) -> HttpResponse {
    HttpResponse::Ok().json(engine.control())
}

async fn change(engine: web::Data<Engine>, change: web::Json<ControlChange>) -> HttpResponse {
    HttpResponse::Ok().json(engine.change_control(&change))
}
