use actix_web::App;
use actix_web::middleware::from_fn;
use actix_web::web::{Data, ServiceConfig};
use anyhow::Context as _;
use auth::{RemoteAuthority, Verifier};
use database::Database;
use http_kit::{Health, ProblemBody};
use listing::RowBudget;
use messaging::{BrokerSettings, Publisher};
use service_http::Document;
use service_runtime::Running;
use std::sync::Arc;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi as _};
use utoipa_actix_web::AppExt as _;
use utoipa_actix_web::service_config::ServiceConfig as DocumentedConfig;

use crate::plugins::routes::Dashboard;
use crate::settings::PeopleTaskServiceSettings;
use crate::webhooks::AddressGuard;
use crate::webhooks::signing::WebhookSigner;
use crate::{MIGRATIONS, SCHEMA, audit, deliveries, erasure, plugins, tasks, webhooks};

/// What every handler can ask for.
#[derive(Clone)]
struct Shared {
    database: Data<Database>,
    row_budget: Data<RowBudget>,
    publisher: Data<Publisher>,
    verifier: Data<Verifier>,
    authority: Data<RemoteAuthority>,
    guard: Data<AddressGuard>,
    signer: Data<WebhookSigner>,
    dashboard: Data<Dashboard>,
    health: Data<Health>,
    document: Data<Document>,
}

/// Starts the people-task-service; it answers when this returns.
///
/// # Errors
/// The database stays away or cannot be migrated, a key is no key, or the address is in use.
pub async fn run(settings: PeopleTaskServiceSettings) -> anyhow::Result<Running> {
    let signer = WebhookSigner::new(&settings.signing)
        .context("WEBHOOK_SIGNING_KEY or WEBHOOK_PREVIOUS_SIGNING_KEY cannot be used")?;
    database::migrate(&settings.database, SCHEMA, MIGRATIONS).await?;
    let mut running = Running::new();
    let authority = Arc::new(RemoteAuthority::new(&settings.authority)?);
    let (shutdown, polling) = (running.shutdown(), Arc::clone(&authority));
    running.spawn(async move { polling.run(shutdown).await });
    let publisher = publisher(&running, settings.broker);
    let database = Database::connect(&settings.database);
    let (keep, shutdown) = (settings.audit_retention, running.shutdown());
    running.spawn(audit_log::retain(database.clone(), keep, shutdown));
    running.health = health(&database, &publisher, &authority);
    let shared = Shared {
        database: Data::new(database),
        row_budget: Data::default(),
        publisher: Data::new(publisher),
        verifier: Data::from(authority.verifier()),
        authority: Data::from(authority),
        guard: Data::new(AddressGuard::new(settings.addresses)),
        signer: Data::new(signer),
        dashboard: Data::new(Dashboard(settings.dashboard_url)),
        health: Data::new(running.health.clone()),
        document: Data::new(Document::new(&openapi())?),
    };
    let (listener, address) = service_runtime::bind(settings.listen_address)?;
    running.address = Some(address);
    service_runtime::serve(&running, listener, settings.http, move || {
        let (app, _) = App::new()
            .into_utoipa_app()
            .configure(handlers)
            .split_for_parts();
        app.configure(|config| shared.configure(config))
            .wrap(from_fn(http_kit::request_context))
            .wrap(from_fn(plugins::rewrite))
    })?;
    Ok(running)
}

fn publisher(running: &Running, broker: BrokerSettings) -> Publisher {
    let queue = deliveries::QUEUE;
    let (publisher, publishing) = Publisher::new(broker, queue, running.shutdown());
    running.spawn(publishing);
    publisher
}

fn health(database: &Database, publisher: &Publisher, authority: &Arc<RemoteAuthority>) -> Health {
    let (known, fresh) = (Arc::clone(authority), Arc::clone(authority));
    service_http::health(database, [publisher])
        .required("keys", move || std::future::ready(known.is_ready()))
        .optional("revocations", move || std::future::ready(fresh.is_fresh()))
}

impl Shared {
    fn configure(&self, config: &mut ServiceConfig) {
        config
            .app_data(self.database.clone())
            .app_data(self.row_budget.clone())
            .app_data(self.publisher.clone())
            .app_data(self.verifier.clone())
            .app_data(self.authority.clone())
            .app_data(self.guard.clone())
            .app_data(self.signer.clone())
            .app_data(self.dashboard.clone())
            .service(erasure::routes::erase);
        service_http::mount(config, self.health.clone(), self.document.clone());
    }
}

/// Every route of the public document.
fn handlers(config: &mut DocumentedConfig<'_>) {
    config
        .service(tasks::routes::list_tasks)
        .service(tasks::routes::count_tasks)
        .service(tasks::routes::create_task)
        .service(tasks::routes::get_task)
        .service(tasks::routes::edit_task)
        .service(tasks::routes::approve_task)
        .service(tasks::routes::reject_task)
        .service(webhooks::routes::list_task_webhooks)
        .service(webhooks::routes::register_webhook)
        .service(webhooks::routes::delete_webhook_by_get)
        .service(webhooks::routes::delete_webhook)
        .service(webhooks::routes::webhook_keys)
        .service(deliveries::routes::list_task_deliveries)
        .service(deliveries::routes::redeliver)
        .service(audit::routes::list_audit)
        .service(plugins::routes::dashboard_url);
}

/// What no handler describes: the problem's schema, the tag, the ways to be let in.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "people-task-service"),
    components(schemas(ProblemBody)),
    tags((name = "people-task", description = "Tasks that a person approves or rejects, and their webhooks.")),
    modifiers(&SecuritySchemes),
)]
struct Base;

struct SecuritySchemes;

impl Modify for SecuritySchemes {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let secret = "A task's approver secret or requester secret: it opens that task.";
        let in_header = ApiKeyValue::with_description("X-Task-Secret", secret);
        let in_query = ApiKeyValue::with_description("secret", secret);
        components.add_security_scheme(
            "taskSecret",
            SecurityScheme::ApiKey(ApiKey::Header(in_header)),
        );
        components.add_security_scheme(
            "taskSecretInQuery",
            SecurityScheme::ApiKey(ApiKey::Query(in_query)),
        );
    }
}

/// The OpenAPI document of the public routes.
#[must_use]
pub fn openapi() -> OpenApi {
    let (_, mut document) = App::new()
        .into_utoipa_app()
        .openapi(Base::openapi())
        .configure(handlers)
        .split_for_parts();
    plugins::describe(&mut document);
    document
}
