use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::middleware::{Condition, DefaultHeaders, from_fn};
use actix_web::web::{Data, Payload, ServiceConfig, get, head, method, resource, to};
use actix_web::{App, HttpRequest, HttpResponse};
use anyhow::Context as _;
use auth::{RemoteAuthority, Verifier};
use http_kit::{Health, Routes};
use reqwest::Client;
use rustls::ServerConfig;
use service_runtime::{Listener, Running};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::circuit::Circuits;
use crate::cors::cors;
use crate::departures::Departures;
use crate::documents::{self, Documents};
use crate::forward::forward;
use crate::gateway::Gateway;
use crate::rate_limit::RateLimits;
use crate::table::{self, Route, Service};
use crate::tls::{Certificates, TlsSettings};
use crate::upstream::{self, Upstreams};
use crate::{GatewaySettings, head_requests, pages, transport_security};

const FORGET_EVERY: Duration = Duration::from_secs(60);

/// Starts the gateway.
///
/// # Errors
/// Its address cannot be used, or no HTTP client can be made.
pub async fn run(settings: GatewaySettings) -> anyhow::Result<Running> {
    let mut running = Running::new();
    let authority = RemoteAuthority::new(&settings.authority)
        .map(Arc::new)
        .context("the client that fetches keys cannot be made")?;
    let clients = clients(settings.http.workers)?;
    let gateway = Arc::new(gateway(&settings, clients.one()));
    running.health = health(&authority, &gateway.upstreams, &clients.one());
    start_tasks(&running, &authority, &gateway);

    let tls = tls(&running, settings.tls.as_ref())?;
    let (listener, address) = service_runtime::bind(settings.listen_address)?;
    running.address = Some(address);
    let origins = settings.cors_allowed_origins;
    let health = Data::new(running.health.clone());
    let verifier = Data::from(authority.verifier());
    let authority = Data::from(authority);
    let gateway = Data::from(gateway);
    service_runtime::serve(
        &running,
        Listener::new(listener, tls),
        settings.http,
        move || {
            App::new()
                .app_data(Data::<Verifier>::clone(&verifier))
                .app_data(Data::<RemoteAuthority>::clone(&authority))
                .app_data(Data::<Gateway>::clone(&gateway))
                .app_data(Data::<Health>::clone(&health))
                .app_data(Data::new(clients.one()))
                .configure(routes)
                .wrap(DefaultHeaders::new().add(("x-content-type-options", "nosniff")))
                .wrap(from_fn(head_requests::leave_body_out))
                .wrap(Condition::new(!origins.is_empty(), cors(&origins)))
                .wrap(from_fn(transport_security::tell))
                .wrap(from_fn(http_kit::request_context))
        },
    )?;
    Ok(running)
}

/// What the port needs to speak TLS, if it shall; its certificate is kept fresh.
fn tls(running: &Running, files: Option<&TlsSettings>) -> anyhow::Result<Option<ServerConfig>> {
    let Some(files) = files else {
        return Ok(None);
    };
    let certificates = Certificates::read(files)?;
    let server = certificates.server()?;
    let shutdown = running.shutdown();
    running.spawn(async move { certificates.keep_fresh(shutdown).await });
    Ok(Some(server))
}

/// One client for each worker thread, so that a connection stays on the thread that opened it.
#[derive(Clone)]
struct Clients {
    clients: Arc<[Client]>,
    next: Arc<AtomicUsize>,
}

fn clients(workers: usize) -> anyhow::Result<Clients> {
    let clients: reqwest::Result<Arc<[Client]>> =
        (0..workers.max(1)).map(|_| upstream::client()).collect();
    Ok(Clients {
        clients: clients.context("the client that asks the services cannot be made")?,
        next: Arc::default(),
    })
}

impl Clients {
    fn one(&self) -> Client {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let client = self
            .clients
            .iter()
            .cycle()
            .nth(next % self.clients.len().max(1));
        client.cloned().unwrap_or_default()
    }
}

fn gateway(settings: &GatewaySettings, client: Client) -> Gateway {
    let upstreams = Upstreams {
        user: settings.authority.user_service_url.clone(),
        people_task: settings.people_task_service_url.clone(),
    };
    Gateway {
        documents: Documents::new(client, &upstreams),
        upstreams,
        trusted_proxies: settings.trusted_proxies.clone(),
        transport_policy: transport_security::policy(settings.hsts_max_age),
        upstream_timeout: settings.upstream_timeout,
        body_timeout: settings.body_timeout,
        rate_limits: RateLimits::new(&settings.rate_limit),
        circuits: Circuits::new(settings.circuit),
        in_flight: Arc::new(Semaphore::new(settings.max_in_flight)),
        arriving: Arc::new(Semaphore::new(settings.max_arriving)),
        departures: Departures::new(settings.max_departing_bytes),
    }
}

/// Without keys the gateway can do nothing. A service that is away concerns its own routes only, and a feed
/// that cannot be read leaves what is known in force: both are reported and change nothing.
fn health(authority: &Arc<RemoteAuthority>, upstreams: &Upstreams, client: &Client) -> Health {
    let (known, fresh) = (Arc::clone(authority), Arc::clone(authority));
    let alive = |service| {
        let (client, url) = (client.clone(), upstreams.url(service, "/healthz", None));
        move || {
            let (client, url) = (client.clone(), url.clone());
            async move { upstream::is_alive(&client, url).await }
        }
    };
    Health::default()
        .required("keys", move || std::future::ready(known.is_ready()))
        .optional("revocations", move || std::future::ready(fresh.is_fresh()))
        .optional("user-service", alive(Service::User))
        .optional("people-task-service", alive(Service::PeopleTask))
}

fn start_tasks(running: &Running, authority: &Arc<RemoteAuthority>, gateway: &Arc<Gateway>) {
    let (authority, shutdown) = (Arc::clone(authority), running.shutdown());
    running.spawn(async move { authority.run(shutdown).await });
    let (gateway, shutdown) = (Arc::clone(gateway), running.shutdown());
    running.spawn(async move { forget_idle(&gateway, shutdown).await });
}

async fn forget_idle(gateway: &Gateway, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(FORGET_EVERY) => gateway.rate_limits.forget_idle(),
            () = shutdown.cancelled() => return,
        }
    }
}

/// Every path with its methods, the gateway's own ones first.
fn routes(config: &mut ServiceConfig) {
    let own = [
        (
            "/healthz",
            [get().to(http_kit::healthz), head().to(http_kit::healthz)],
        ),
        (
            "/readyz",
            [get().to(http_kit::readyz), head().to(http_kit::readyz)],
        ),
        (
            "/openapi.json",
            [get().to(documents::merged), head().to(documents::merged)],
        ),
    ];
    for (path, [get, head]) in own {
        let others = refusal(path, &["GET", "HEAD"]);
        config.service(
            resource(path)
                .route(get)
                .route(head)
                .default_service(others),
        );
    }
    for page in pages::PAGES {
        let show = move || std::future::ready(page.show());
        let others = refusal(page.path, &["GET", "HEAD"]);
        let served = resource(page.path).route(get().to(show));
        config.service(served.route(head().to(show)).default_service(others));
    }
    for (path, routes) in table::by_path() {
        config.service(proxied(path, &routes));
    }
    config.default_service(to(|request: HttpRequest| async move {
        Routes::default()
            .check(request.method(), request.path())
            .map(|()| HttpResponse::NotFound().finish())
    }));
}

fn proxied(path: &'static str, routes: &[&'static Route]) -> actix_web::Resource {
    let taken = |route: &'static Route| route.methods().map(move |method| (method, route));
    let routes: Vec<_> = routes.iter().copied().flat_map(taken).collect();
    let methods: Vec<_> = routes.iter().map(|(method, _)| method.as_str()).collect();
    let mut served = resource(path).default_service(refusal(path, &methods));
    for (taken, route) in routes {
        let handler =
            move |request, payload: Payload, gateway: Data<Gateway>, client: Data<Client>| {
                forward(route, request, payload, gateway, client)
            };
        served = served.route(method(taken).to(handler));
    }
    served
}

/// `405` with the methods that a path has.
fn refusal(path: &'static str, methods: &[&str]) -> actix_web::Route {
    let known = methods.iter().filter_map(|name| name.parse().ok());
    let routes = known.fold(Routes::default(), |routes, method| routes.and(path, method));
    to(move |request: HttpRequest| {
        let refused = routes.check(request.method(), path);
        std::future::ready(refused.map(|()| HttpResponse::NotFound().finish()))
    })
}
