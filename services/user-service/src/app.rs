//! The HTTP service: its routes and startup.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::http::StatusCode;
use actix_web::middleware::from_fn;
use actix_web::web::Data;
use anyhow::Context as _;
use auth::{Signer, SigningKey, Verifier};
use database::{BatchLimits, Connection, ServicePools};
use http_kit::Routes;
use listing::Lists;
use messaging::{BrokerSettings, Publisher, Queue};
use server::Running;
use utoipa::openapi::OpenApi;
use utoipa_actix_web::AppExt as _;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::context::Context;
use crate::hashing::Hasher;
use crate::password_rules::PasswordRules;
use crate::revocations::{Poller, Watching};
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::{EmailVerification, TokenSettings, UserServiceSettings};
use crate::{
    accounts, audit, deletions, keys, notifications, passwords, revocations, sessions, sign_in,
    verification,
};

/// bcrypt costs below this one are for tests.
const MIN_SAFE_COST: u32 = 10;

/// Starts the HTTP service.
///
/// # Errors
/// The database stays unavailable, or the port is taken.
pub async fn run(settings: UserServiceSettings) -> anyhow::Result<Running> {
    warn_of(&settings);
    database::prepare_schema(&settings.database, SCHEMA, MIGRATIONS).await?;
    let (address, http) = (settings.listen_address, settings.http);
    let mut running = Running::new();
    let (retention, admin) = (settings.audit_retention, settings.first_admin.clone());
    let context = start_context(settings, &running).await?;
    accounts::create_first_admin(&context, admin).await?;
    let keys = Arc::clone(&context.verifier);
    let (deletions, notifications) = (context.deletions.clone(), context.notifications.clone());
    let connected = move || deletions.is_connected() && notifications.is_connected();
    let health = jobs::health(&context.database, connected);
    running.health = health.required("keys", move || ready(keys.has_keys()));
    let revocations = start_tasks(&context, retention, &running).await?;
    let (listener, address) = server::bind(address)?;
    running.address = Some(address);
    let verifier = Data::from(Arc::clone(&context.verifier));
    let database = context.database.clone();
    let lookups = database::lookups(database, BatchLimits::SERVICE, accounts::store::find_all);
    let lookups = Data::new(lookups);
    let revocations = Data::new(revocations);
    let (context, health) = (Data::new(context), Data::new(running.health.clone()));
    let known = Data::new(Routes::of(&openapi()));
    server::serve(&running, listener, http, move || {
        let app = App::new()
            .app_data(context.clone())
            .app_data(lookups.clone())
            .app_data(revocations.clone())
            .app_data(verifier.clone());
        let (app, _) = app.into_utoipa_app().configure(routes).split_for_parts();
        app.service(revocations::routes::list_revocations)
            .service(keys::routes::exchange_key)
            .configure(|config| http_kit::mount(config, health.clone(), known.clone()))
            .wrap(from_fn(http_kit::request_context))
    })?;
    Ok(running)
}

fn warn_of(settings: &UserServiceSettings) {
    let cost = settings.passwords.cost;
    if cost < MIN_SAFE_COST {
        tracing::warn!(
            cost,
            "BCRYPT_COST is below 10: passwords can be guessed from a stolen database"
        );
    }
    let handlers = &settings.handlers;
    let is_open = handlers.sign_up.scopes.is_none();
    if is_open && handlers.email_verification == EmailVerification::Off {
        tracing::warn!(
            "EMAIL_VERIFICATION is off and sign-up is open: anyone can sign up with the e-mail address of an approver who has no account yet"
        );
    }
}

async fn start_context(
    settings: UserServiceSettings,
    running: &Running,
) -> anyhow::Result<Context> {
    let pools = ServicePools::connect(&settings.database, "");
    let ServicePools { database, lists } = pools.clone();
    let handlers = settings.handlers;
    let has_engine = handlers.flow_engine.is_some();
    let confirmation_required = handlers.email_verification == EmailVerification::Required;
    let record = move |connection: &mut Connection| {
        deletions::store::record_settings(connection, has_engine, confirmation_required)
    };
    database.run(record).await?;
    let hasher = Hasher::start(settings.passwords.cost);
    let measured = hasher.clone();
    running.on_scrape(move || {
        pools.record_gauges();
        measured.record_gauges();
    });
    let signer = signer(&settings.tokens)?;
    let verifier = Verifier::new(&settings.tokens.issuer, &settings.tokens.audience);
    verifier.set_keys(signer.published());
    Ok(Context {
        deletions: start_publisher(&settings.broker, deletions::QUEUE, running),
        notifications: start_publisher(&settings.broker, notifications::QUEUE, running),
        database,
        lists: Lists::new(lists),
        hasher,
        rules: PasswordRules {
            min_length: settings.passwords.min_length,
        },
        signer,
        verifier: Arc::new(verifier),
        settings: handlers,
        sign_in_failure_status: StatusCode::from_u16(settings.sign_in_failure_status)?,
    })
}

/// Starts the background tasks. Returns what the one that reads the revocations has seen.
async fn start_tasks(
    context: &Context,
    audit_retention: Duration,
    running: &Running,
) -> Result<Watching, database::Error> {
    let database = || context.database.clone();
    let retain = audit_log::retain(database(), audit_retention, running.shutdown());
    running.spawn(retain);
    if keys::can_mail(context) {
        let publisher = context.notifications.clone();
        let verification = context.settings.email_verification;
        let shutdown = running.shutdown();
        let notices = keys::send_notices(database(), publisher, verification, shutdown);
        running.spawn(notices);
    }
    let verifier = Arc::clone(&context.verifier);
    let lifetime = context.signer.lifetime();
    let (poller, revocations) = Poller::start(database(), verifier, lifetime).await?;
    running.spawn(poller.run(running.shutdown()));
    Ok(revocations)
}

fn start_publisher(broker: &BrokerSettings, queue: Queue, running: &Running) -> Publisher {
    let (publisher, task) = Publisher::new(broker.clone(), queue, running.shutdown());
    running.spawn(task);
    publisher
}

fn signer(settings: &TokenSettings) -> anyhow::Result<Signer> {
    let key = SigningKey::from_pem(&settings.key).context("TOKEN_SIGNING_KEY is not usable")?;
    let previous = settings.previous_key.as_ref().map(SigningKey::from_pem);
    let previous = previous
        .transpose()
        .context("TOKEN_PREVIOUS_KEY is not usable")?;
    Ok(Signer::new(
        &key,
        previous.as_slice(),
        settings.issuer.clone(),
        settings.audience.clone(),
        settings.lifetime,
    ))
}

/// The service's OpenAPI document.
#[must_use]
pub fn openapi() -> OpenApi {
    let app = App::new().into_utoipa_app().configure(routes);
    let (_, document) = app.split_for_parts();
    http_kit::complete(document, "users")
}

/// Every public operation. Fixed segments come before `{userId}`.
fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(sign_in::routes::sign_in)
        .service(sessions::routes::start_session)
        .service(sessions::routes::exchange_session)
        .service(sessions::routes::end_session)
        .service(sessions::routes::list_sessions)
        .service(sessions::routes::end_user_session)
        .service(keys::routes::list_keys)
        .service(keys::routes::create_key)
        .service(keys::routes::end_key)
        .service(keys::routes::list_all_keys)
        .service(keys::routes::confirm_all_keys)
        .service(keys::routes::list_user_keys)
        .service(keys::routes::create_user_key)
        .service(keys::routes::end_user_key)
        .service(keys::routes::confirm_user_key)
        .service(accounts::routes::create_user)
        .service(accounts::routes::current_user)
        .service(verification::routes::verify_email)
        .service(verification::routes::resend_code)
        .service(passwords::routes::change_password)
        .service(passwords::routes::reset_password)
        .service(passwords::routes::forgot_password)
        .service(passwords::routes::reset_forgotten_password)
        .service(accounts::routes::list_users)
        .service(accounts::routes::count_users)
        .service(deletions::routes::list_deletions)
        .service(deletions::routes::retry_deletions)
        .service(deletions::routes::user_queues)
        .service(accounts::routes::get_user)
        .service(accounts::routes::update_user)
        .service(accounts::routes::revoke_user_tokens)
        .service(deletions::routes::delete_user)
        .service(deletions::routes::delete_status)
        .service(deletions::routes::cancel_deletion)
        .service(audit::routes::list_audit)
        .service(revocations::routes::keys);
}
