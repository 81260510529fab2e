use std::future::ready;
use std::sync::Arc;

use actix_web::App;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data};
use anyhow::Context as _;
use auth::RemoteAuthority;
use database::ServicePools;
use http_kit::{Health, Routes};
use jobs::RetentionRule;
use listing::Lists;
use messaging::Publisher;
use outbound::SystemResolver;
use server::Running;
use utoipa::openapi::OpenApi;
use utoipa_actix_web::AppExt as _;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::context::Context;
use crate::creations::write::creations;
use crate::decisions::decide::decisions;
use crate::decisions::routes::{approve_task, cancel_task, preview_cancel, reject_task};
use crate::planning::planning;
use crate::quotas::Quotas;
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::PeopleTaskServiceSettings;
use crate::tasks::ended::EndedTasks;
use crate::tasks::ended::routes::list_ended_tasks;
use crate::tasks::read::task_lookups;
use crate::turns::Turns;
use crate::webhook_signature::WebhookSigner;
use crate::webhooks::register::registrations;
use crate::{
    audit, changed_users, creations, deliveries, erasure, idempotency, mails, plugin_paths, quotas,
    tasks, webhooks,
};

/// Starts the HTTP service.
///
/// # Errors
/// A key is invalid, the database stays unavailable or cannot be migrated, or the port is taken.
pub async fn run(settings: PeopleTaskServiceSettings) -> anyhow::Result<Running> {
    let signer = WebhookSigner::new(&settings.signing)
        .context("WEBHOOK_SIGNING_KEY or WEBHOOK_PREVIOUS_SIGNING_KEY is not usable")?;
    database::prepare_schema(&settings.database, SCHEMA, MIGRATIONS).await?;
    let (address, http) = (settings.listen_address, settings.http);
    let mut running = Running::new();
    let authority = Arc::new(RemoteAuthority::new(&settings.authority)?);
    running.spawn(Arc::clone(&authority).run(running.shutdown()));
    let context = Data::new(start_context(settings, signer, &running)?);
    running.health = health(&context, &authority);
    let (listener, address) = server::bind(address)?;
    running.address = Some(address);
    let (verifier, authority) = (Data::from(authority.verifier()), Data::from(authority));
    let (database, publisher) = (context.database.clone(), context.deliveries.clone());
    let lookups = Data::new(task_lookups(database.clone()));
    let creations = Data::new(creations(database.clone(), &context.mailing));
    let registrations = Data::new(registrations(database.clone()));
    let decisions = Data::new(decisions(database, publisher));
    let ended = EndedTasks::new(context.database.clone(), running.shutdown());
    let (ended, turns) = (Data::new(ended), Data::new(Turns::new(mails::TURNS)));
    let health = Data::new(running.health.clone());
    let known = Data::new(Routes::of(&openapi()));
    server::serve(&running, listener, http, move || {
        let app = App::new()
            .app_data(context.clone())
            .app_data(lookups.clone())
            .app_data(creations.clone())
            .app_data(registrations.clone())
            .app_data(decisions.clone())
            .app_data(verifier.clone())
            .app_data(authority.clone());
        let (app, _) = app.into_utoipa_app().configure(routes).split_for_parts();
        app.configure(|config| mails::routes::internal(config, &context, &turns))
            .configure(|config| internal(config, &ended))
            .configure(|config| http_kit::mount(config, health.clone(), known.clone()))
            .wrap(from_fn(http_kit::request_context))
            .wrap(from_fn(plugin_paths::rewrite))
    })?;
    Ok(running)
}

fn retention_rules() -> Vec<RetentionRule> {
    let own = [
        erasure::RETENTION,
        idempotency::RETENTION,
        deliveries::TEST_RETENTION,
    ];
    own.into_iter().chain(mails::RETENTION).collect()
}

/// Builds the context, and starts the background tasks that it needs.
fn start_context(
    settings: PeopleTaskServiceSettings,
    signer: WebhookSigner,
    running: &Running,
) -> anyhow::Result<Context> {
    let pools = ServicePools::connect(&settings.database, planning!());
    let ServicePools { database, lists } = pools.clone();
    running.on_scrape(move || pools.record_gauges());
    let (retention, shutdown) = (settings.audit_retention, running.shutdown());
    running.spawn(audit_log::retain(database.clone(), retention, shutdown));
    let rules = retention_rules();
    running.spawn(jobs::retain(database.clone(), rules, running.shutdown()));
    if settings.mails.keys.is_some() {
        running.spawn(mails::watch_backlog(database.clone(), running.shutdown()));
    } else {
        metrics::gauge!("task_mails_oldest_due_seconds").set(0.0);
    }
    let (deliveries, task) = Publisher::new(settings.broker, deliveries::QUEUE, running.shutdown());
    running.spawn(task);
    let of_user = settings.quotas.of_user(settings.mails.per_creator);
    let of_all = settings.quotas.of_all();
    let quotas = Arc::new(Quotas::new(of_user, of_all, settings.quotas.exempt.0));
    running.spawn(quotas::watch(
        Arc::clone(&quotas),
        database.clone(),
        lists.clone(),
        running.shutdown(),
    ));
    Ok(Context {
        database,
        deliveries,
        lists: Lists::new(lists),
        signer,
        repeat_keys: idempotency::repeat_keys(&settings.signing),
        address_policy: settings.addresses,
        engine_origins: settings.engine_origins,
        header_keys: settings.header_keys,
        resolver: SystemResolver::from_system()?,
        dashboard_url: settings.dashboard_url,
        mailing: Arc::new(settings.mails),
        deciders: settings.deciders,
        quotas,
    })
}

fn health(context: &Context, authority: &Arc<RemoteAuthority>) -> Health {
    let (keys, feed) = (Arc::clone(authority), Arc::clone(authority));
    let deliveries = context.deliveries.clone();
    jobs::health(&context.database, move || deliveries.is_connected())
        .required("keys", move || ready(keys.is_ready()))
        .optional("revocations", move || ready(feed.is_fresh()))
}

/// The service's OpenAPI document.
#[must_use]
pub fn openapi() -> OpenApi {
    let app = App::new().into_utoipa_app().configure(routes);
    let (_, document) = app.split_for_parts();
    let mut document = http_kit::complete(document, "people-task");
    plugin_paths::document(&mut document);
    document
}

/// The operations of the system's own processes.
fn internal(config: &mut web::ServiceConfig, ended: &Data<EndedTasks>) {
    config
        .app_data(ended.clone())
        .service(erasure::routes::erase_user)
        .service(changed_users::routes::report_user)
        .service(list_ended_tasks);
}

/// Every public operation. The most frequent ones are first: actix-web tries one path after another, and those with a parameter
/// are regular expressions.
fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(creations::routes::create_task)
        .service(webhooks::routes::register_webhook)
        .service(tasks::routes::list_tasks)
        .service(tasks::routes::count_tasks)
        .service(approve_task)
        .service(reject_task)
        .service(tasks::routes::get_task)
        .service(tasks::routes::edit_task)
        .service(cancel_task)
        .service(preview_cancel)
        .service(webhooks::routes::list_task_webhooks)
        .service(webhooks::routes::delete_webhook_by_get)
        .service(webhooks::routes::delete_webhook)
        .service(webhooks::routes::test_webhook)
        .service(webhooks::routes::webhook_keys)
        .service(deliveries::routes::list_task_deliveries)
        .service(deliveries::routes::redeliver_delivery)
        .service(deliveries::routes::list_deliveries)
        .service(deliveries::hosts::routes::list_delivery_hosts)
        .service(deliveries::hosts::routes::pause_deliveries)
        .service(deliveries::hosts::routes::resume_deliveries)
        .service(deliveries::routes::cancel_deliveries)
        .service(deliveries::routes::redeliver_deliveries)
        .service(deliveries::routes::cancel_delivery)
        .service(deliveries::routes::delivery_queues)
        .service(mails::routes::unsubscribe_page)
        .service(mails::routes::unsubscribe_recipient)
        .service(audit::routes::list_audit)
        .service(plugin_paths::dashboard_url);
}
