use std::net::SocketAddr;

use actix_web::web::{Data, get};
use actix_web::{App, HttpResponse};
use anyhow::Context as _;
use http_kit::Health;
use metrics_exporter_prometheus::PrometheusHandle;
use metrics_process::Collector;

use crate::http_server::{bind, serve};
use crate::running::Running;
use crate::settings::HttpServerSettings;

type Scraped = (PrometheusHandle, Running, Collector);

/// Serves metrics and health at the internal port, and returns its address.
///
/// # Errors
/// The address cannot be used.
pub fn serve_metrics(
    running: &Running,
    address: SocketAddr,
    metrics: PrometheusHandle,
) -> anyhow::Result<SocketAddr> {
    let (listener, address) = bind(address).context("METRICS_ADDRESS")?;
    let settings = HttpServerSettings {
        max_connections: 100,
        ..HttpServerSettings::single_threaded()
    };
    tracing::info!(%address, "serving metrics and health checks");
    let health = Data::new(running.health.clone());
    let operating_system = Collector::default();
    operating_system.describe();
    let scraped: Data<Scraped> = Data::new((metrics, running.clone(), operating_system));
    serve(running, listener, settings, move || {
        App::new()
            .app_data(Data::<Health>::clone(&health))
            .app_data(Data::<Scraped>::clone(&scraped))
            .route("/healthz", get().to(http_kit::healthz))
            .route("/readyz", get().to(http_kit::readyz))
            .route("/metrics", get().to(render))
    })?;
    Ok(address)
}

async fn render(scraped: Data<Scraped>) -> HttpResponse {
    let (metrics, running, operating_system) = &**scraped;
    running.health.record().await;
    running.set_gauges();
    operating_system.collect();
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(metrics.render())
}
