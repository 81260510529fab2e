use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::middleware::{DefaultHeaders, from_fn};
use actix_web::web::{Data, Payload, ServiceConfig, method, resource, route, scope, to};
use actix_web::{App, HttpRequest, HttpResponse, Resource, Scope, guard};
use anyhow::Context as _;
use auth::{RemoteAuthority, Verifier};
use http_kit::{Health, Problem, Routes};
use server::{Listener, Running};
use tokio_util::sync::CancellationToken;
use values::Names as _;

use crate::context::AppState;
use crate::forward::forward;
use crate::keys::KeyTokens;
use crate::limits::circuit_breaker::CircuitBreaker;
use crate::limits::concurrency::ConcurrencyLimits;
use crate::limits::rate_limit::RateLimits;
use crate::limits::turns::Turns;
use crate::middleware::{self, cors, count_request, explain_refusals};
use crate::pages::{self, Page, Pages};
use crate::routes::{self, PerService, Route, Service};
use crate::settings::GatewaySettings;
use crate::tls::Certificates;
use crate::upstream::{self, BaseAddress, UpstreamClient};
use crate::waiting::{self, Waiting};

const LIMITS_CLEANUP_INTERVAL: Duration = Duration::from_secs(60);

/// Starts the gateway.
///
/// # Errors
/// Its address or its certificate cannot be used, or an HTTP client cannot be created.
pub async fn run(mut settings: GatewaySettings) -> anyhow::Result<Running> {
    let mut running = Running::new();
    // Each caller that waits needs a file.
    settings.waiting.max = server::limit_aside(settings.http, settings.waiting.max);
    let authority = RemoteAuthority::new(&settings.authority)
        .map(Arc::new)
        .context("cannot create the client that fetches keys")?;
    let connector = upstream::connector().context("cannot prepare TLS for the services")?;
    let state = Arc::new(app_state(&settings, &running)?);
    let pages = pages::load(&settings.pages).context("cannot prepare the web pages")?;
    let client = upstream::client(&connector);
    running.health = health(&authority, &state.upstreams, &client)?;
    start_tasks(&running, &authority, &state, &client);

    let (tcp, address) = server::bind(settings.listen_address)?;
    running.address = Some(address);
    let listener = listener(&running, tcp, &settings)?;
    let health = Data::new(running.health.clone());
    let verifier = Data::from(authority.verifier());
    let authority = Data::from(authority);
    let state = Data::from(state);
    server::serve(&running, listener, settings.http, move || {
        App::new()
            .app_data(Data::<Verifier>::clone(&verifier))
            .app_data(Data::<RemoteAuthority>::clone(&authority))
            .app_data(Data::<AppState>::clone(&state))
            .app_data(Data::<Health>::clone(&health))
            // A pool for each thread, so that a connection stays on the thread that opened it.
            .app_data(Data::new(upstream::client(&connector)))
            .configure(|config| mount(config, &pages))
            .wrap(DefaultHeaders::new().add(("x-content-type-options", "nosniff")))
            .wrap(cors(&settings.cors_allowed_origins))
            .wrap(from_fn(explain_refusals))
            .wrap(from_fn(middleware::send_hsts))
            .wrap(from_fn(http_kit::request_context))
    })?;
    Ok(running)
}

/// The public port. Its certificate, if there is one, is reloaded periodically.
fn listener(
    running: &Running,
    tcp: TcpListener,
    settings: &GatewaySettings,
) -> anyhow::Result<Listener> {
    let mut tls = None;
    if let Some(files) = &settings.tls {
        let certificates = Certificates::load(files)?;
        tls = Some(certificates.server_config()?);
        running.spawn(certificates.reload_periodically(running.shutdown()));
    }
    Ok(Listener {
        tcp,
        tls,
        unlimited: Some(settings.trusted_proxies.clone()),
        aside: settings.waiting.max,
        explains_refusals: true,
    })
}

fn app_state(settings: &GatewaySettings, running: &Running) -> anyhow::Result<AppState> {
    let upstreams = PerService {
        user: BaseAddress::new(&settings.authority.user_service_url)?,
        people_task: BaseAddress::new(&settings.people_task_service_url)?,
    };
    Ok(AppState {
        settings: settings.clone(),
        upstreams,
        hsts: middleware::hsts_value(settings.hsts_max_age),
        rate_limits: RateLimits::new(&settings.rate_limit),
        keys: KeyTokens::default(),
        concurrency: ConcurrencyLimits::new(settings),
        turns: Turns::new(settings.max_in_flight),
        waiting: Waiting::new(settings.waiting, running.draining()),
        circuit_breakers: PerService::new(|service| {
            CircuitBreaker::new(service.name(), settings.circuit)
        }),
    })
}

/// The gateway needs the keys. An unavailable service only affects its own routes, and with a stale
/// revocation feed the known revocations stay in force, so neither makes the gateway unready.
fn health(
    authority: &Arc<RemoteAuthority>,
    upstreams: &PerService<BaseAddress>,
    client: &UpstreamClient,
) -> Result<Health, http::Error> {
    let (known, fresh) = (Arc::clone(authority), Arc::clone(authority));
    let alive = |service| {
        let client = client.clone();
        let uri = upstreams.of(service).uri("/healthz", None);
        uri.map(|uri| move || upstream::is_alive(client.clone(), uri.clone()))
    };
    Ok(Health::default()
        .required("keys", move || std::future::ready(known.is_ready()))
        .optional("revocations", move || std::future::ready(fresh.is_fresh()))
        .optional("user-service", alive(Service::User)?)
        .optional("people-task-service", alive(Service::PeopleTask)?))
}

fn start_tasks(
    running: &Running,
    authority: &Arc<RemoteAuthority>,
    state: &Arc<AppState>,
    client: &UpstreamClient,
) {
    let measured = Arc::clone(state);
    running.on_scrape(move || {
        measured.concurrency.record_gauges();
        measured.waiting.record_gauge();
    });
    let (waiting, shutdown) = (Arc::clone(&state.waiting), running.shutdown());
    let service = state.upstreams.of(Service::PeopleTask).clone();
    running.spawn(waiting::listen(waiting, client.clone(), service, shutdown));
    running.spawn(Arc::clone(authority).run(running.shutdown()));
    running.spawn(clean_up_limits(Arc::clone(state), running.shutdown()));
}

async fn clean_up_limits(state: Arc<AppState>, shutdown: CancellationToken) {
    let pause = || shutdown.run_until_cancelled(tokio::time::sleep(LIMITS_CLEANUP_INTERVAL));
    while pause().await.is_some() {
        state.rate_limits.remove_idle();
    }
}

/// Mounts every path: the gateway's own, the pages, and the table of routes.
fn mount(config: &mut ServiceConfig, pages: &Pages) {
    mount_routes(config);
    let reading = || route().guard(guard::Any(guard::Get()).or(guard::Head()));
    let mut serve = |path: &str, resource: Resource, route| {
        let fallback = method_not_allowed(path, &[Method::GET, Method::HEAD]);
        config.service(resource.route(route).default_service(fallback));
    };
    for (path, route) in [
        // Not counted, so that no client can make a liveness probe fail.
        ("/healthz", reading().to(http_kit::healthz)),
        ("/readyz", counted(reading().to(http_kit::readyz))),
    ] {
        serve(path, resource(path), route);
    }
    for page in pages.served.iter() {
        let shown = Arc::clone(page);
        let show = move |request: HttpRequest| std::future::ready(shown.response(&request));
        let route = counted(reading().to(show));
        serve(&page.path, resource(page.paths()), route);
    }
    let not_found = pages.not_found.clone();
    config.default_service(counted(to(move |request: HttpRequest| {
        std::future::ready(unknown(&request, not_found.as_deref()))
    })));
}

/// Mounts the table of routes, before the pages: actix-web tries one path after another, and those with a parameter are regular
/// expressions. So only the paths of one scope are tried, which begins with what is before the parameter.
fn mount_routes(config: &mut ServiceConfig) {
    for (prefix, paths) in routes::by_prefix() {
        let resources = paths.into_iter().map(|(path, routes)| {
            let below = path.strip_prefix(prefix.unwrap_or_default());
            forwarded(resource(below.unwrap_or(path)), path, &routes)
        });
        if let Some(prefix) = prefix {
            config.service(resources.fold(scope(prefix), Scope::service));
        } else {
            for resource in resources {
                config.service(resource);
            }
        }
    }
}

/// The response to a path that does not exist: a page for a person, and a problem for a program.
fn unknown(request: &HttpRequest, page: Option<&Page>) -> Result<HttpResponse, Problem> {
    match page.filter(|_| pages::is_navigation(request)) {
        Some(page) => Ok(page.response(request)),
        None => Err(Routes::default().refuse(request)),
    }
}

/// A route that counts towards the rate limit of the client.
fn counted(route: actix_web::Route) -> actix_web::Route {
    route.wrap(from_fn(count_request))
}

fn forwarded(resource: Resource, path: &str, routes: &[&'static Route]) -> Resource {
    let with_methods = |route: &'static Route| route.methods().map(move |method| (method, route));
    let routes: Vec<_> = routes.iter().copied().flat_map(with_methods).collect();
    let methods: Vec<_> = routes.iter().map(|(method, _)| method.clone()).collect();
    let mut resource = resource.default_service(method_not_allowed(path, &methods));
    for (accepted, route) in routes {
        let handler = move |request,
                            payload: Payload,
                            state: Data<AppState>,
                            client: Data<UpstreamClient>| {
            forward(route, request, payload, state, client)
        };
        resource = resource.route(method(accepted).to(handler));
    }
    resource
}

fn method_not_allowed(path: &str, methods: &[Method]) -> actix_web::Route {
    let methods = methods.iter().cloned();
    let routes = methods.fold(Routes::default(), |routes, method| routes.and(path, method));
    let path = path.to_owned();
    counted(to(move |request: HttpRequest| {
        let checked = routes.check(request.method(), &path);
        std::future::ready(checked.map(|()| HttpResponse::NotFound().finish()))
    }))
}
