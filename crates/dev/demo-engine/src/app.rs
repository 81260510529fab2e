//! The server, with the endpoints that show received calls and control the simulated failures.

use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::{App, HttpRequest, HttpResponse, web as http};
use http_kit::Health;
use serde_json::json;
use server::Running;

use crate::engine::Engine;
use crate::journal::{Filter, Journal, Received};
use crate::{Control, ControlChange, Settings, erasure, receivers};

/// Countersign sends no larger body.
const MAX_BODY: usize = 256 * 1024;

/// A running demo engine. It stops when [`Server::running`] stops.
pub struct Server {
    /// The server's tasks.
    pub running: Running,
    /// The address that the engine listens on.
    pub address: SocketAddr,
    engine: Arc<Engine>,
}

/// Starts the engine. It accepts requests when this returns.
pub async fn run(settings: Settings) -> anyhow::Result<Server> {
    let (listener, address) = server::bind(settings.listen_address)?;
    let mut running = Running::new();
    running.address = Some(address);

    let engine = Arc::new(Engine {
        control: settings.control.into(),
        token: settings.token,
        stopping: running.shutdown(),
        ..Engine::default()
    });
    let shared = http::Data::from(Arc::clone(&engine));
    let health = http::Data::new(running.health.clone());
    server::serve(&running, listener, settings.http, move || {
        App::new()
            .app_data(http::Data::<Engine>::clone(&shared))
            .app_data(http::Data::<Health>::clone(&health))
            .app_data(http::PayloadConfig::new(MAX_BODY))
            .app_data(http::JsonConfig::default().limit(MAX_BODY))
            .configure(routes)
    })?;
    Ok(Server {
        running,
        address,
        engine,
    })
}

fn routes(config: &mut http::ServiceConfig) {
    config
        .route("/healthz", http::get().to(http_kit::healthz))
        .route("/readyz", http::get().to(http_kit::readyz))
        .route("/metrics", http::get().to(metrics))
        .service(
            http::resource("/received")
                .get(list_received)
                .delete(clear_received),
        )
        .service(
            http::resource("/control")
                .get(show_control)
                .put(change_control),
        )
        .configure(receivers::routes)
        .configure(erasure::routes)
        .default_service(http::route().to(not_found));
}

/// Serves metrics on the only port that the engine has in a development system.
async fn metrics() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(telemetry::metrics_recorder().render())
}

async fn not_found(request: HttpRequest) -> HttpResponse {
    let message = format!("There is no {} {}.", request.method(), request.path());
    HttpResponse::NotFound().json(json!({ "message": message }))
}

impl Server {
    /// Returns the base URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes how the engine responds, and returns the result.
    pub fn change_control(&self, change: &ControlChange) -> Control {
        self.engine.change_control(change)
    }

    /// Returns the received calls, newest last.
    pub fn received(&self) -> Vec<Arc<Received>> {
        self.engine.journal.lock().matching(&Filter::default())
    }
}

async fn list_received(engine: http::Data<Engine>, filter: http::Query<Filter>) -> HttpResponse {
    let items = engine.journal.lock().matching(&filter);
    let items: Vec<&Received> = items.iter().map(AsRef::as_ref).collect();
    HttpResponse::Ok().json(json!({ "items": items }))
}

async fn clear_received(engine: http::Data<Engine>) -> HttpResponse {
    *engine.journal.lock() = Journal::default();
    HttpResponse::Ok().json(json!({}))
}

async fn show_control(engine: http::Data<Engine>) -> HttpResponse {
    HttpResponse::Ok().json(engine.control().to_json())
}

async fn change_control(
    engine: http::Data<Engine>,
    change: http::Json<ControlChange>,
) -> HttpResponse {
    HttpResponse::Ok().json(engine.change_control(&change).to_json())
}
