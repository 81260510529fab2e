//! The HTTP service: what its handlers share, its routes, its start.

use std::sync::Arc;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::middleware::from_fn;
use actix_web::web::{Data, PathConfig, get};
use actix_web::{App, Error, HttpRequest, HttpResponse};
use anyhow::Context as _;
use auth::{SignError, Signer, SigningKey, Subject, Verifier};
use database::Database;
use http_kit::{Health, Problem, Routes};
use messaging::{Publisher, Queue};
use service_runtime::Running;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_actix_web::{AppExt as _, UtoipaApp};
use values::Secret;

use crate::accounts::{self, Confirmation, User};
use crate::documentation::Base;
use crate::notifications::Channel;
use crate::passwords::{Hasher, PasswordRules};
use crate::revocations::{self, Poller};
use crate::settings::{
    ChannelSettings, CodeRequestSettings, EmailVerification, SignUpSettings, TokenSettings,
    UserServiceSettings,
};
use crate::{MIGRATIONS, SCHEMA, audit, deletions, passwords, sign_in};

/// bcrypt below this cost is for tests.
const CHEAP_COST: u32 = 10;

/// What the handlers of all capabilities share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) database: Database,
    pub(crate) hasher: Hasher,
    pub(crate) rules: PasswordRules,
    pub(crate) signer: Signer,
    pub(crate) token_lifetime: Duration,
    pub(crate) sign_up: SignUpSettings,
    pub(crate) sign_in_failure_status: StatusCode,
    pub(crate) channels: ChannelSettings,
    pub(crate) code_requests: CodeRequestSettings,
    /// Whether a deletion has steps at a flow engine.
    pub(crate) has_engine: bool,
    pub(crate) deletions: Publisher,
    pub(crate) notifications: Publisher,
    email_verification: EmailVerification,
    verifier: Arc<Verifier>,
}

impl Service {
    /// An access token for a user.
    pub(crate) fn sign(&self, user: &User) -> Result<Secret, SignError> {
        self.signer.sign(Subject {
            id: user.id,
            email: user.email.clone(),
            username: user.username.clone(),
            scope: user.scope.clone(),
            epoch: user.epoch,
            email_verified: user.email_verified || self.confirmation().is_none(),
        })
    }

    /// How an e-mail address is confirmed; `None` when every address counts at once.
    pub(crate) fn confirmation(&self) -> Option<Confirmation> {
        let required = self.email_verification == EmailVerification::Required;
        required.then(|| Confirmation::by(Channel::configured(&self.channels)))
    }

    /// Makes this process refuse earlier tokens of a user at once. Others learn of it from the feed.
    pub(crate) fn revoke(&self, user: &User) {
        self.verifier.revoked().raise([(user.id, user.epoch)]);
    }
}

/// Starts the HTTP service.
///
/// # Errors
/// Settings that contradict each other, a database that stays away, or a port that is taken.
pub async fn run(settings: UserServiceSettings) -> anyhow::Result<Running> {
    warn_of_cheap_hashes(settings.passwords.cost);
    check_verification(&settings)?;
    database::migrate(&settings.database, SCHEMA, MIGRATIONS).await?;
    let (address, http) = (settings.listen_address, settings.http);
    let mut running = Running::new();
    let service = Service::start(settings, &running).await?;
    running.health = health(&service);
    let (listener, address) = service_runtime::bind(address)?;
    running.address = Some(address);
    let verifier = Data::from(Arc::clone(&service.verifier));
    let (service, health) = (Data::new(service), Data::new(running.health.clone()));
    service_runtime::serve(&running, listener, http, move || {
        app(service.clone(), verifier.clone(), health.clone())
    })?;
    Ok(running)
}

fn warn_of_cheap_hashes(cost: u32) {
    if cost < CHEAP_COST {
        tracing::warn!(
            cost,
            "BCRYPT_COST is below 10: passwords can be guessed from a stolen database"
        );
    }
}

fn check_verification(settings: &UserServiceSettings) -> anyhow::Result<()> {
    match settings.email_verification {
        EmailVerification::Required if Channel::configured(&settings.channels).is_empty() => {
            anyhow::bail!(
                "EMAIL_VERIFICATION is `required`, and nothing could carry a code: set SMTP_URL and MAIL_FROM, or WEBHOOK_USER_FORGOT_PASSWORD"
            )
        }
        EmailVerification::Off if settings.sign_up.scopes.is_none() => {
            tracing::warn!(
                "EMAIL_VERIFICATION is off and sign-up is open: anybody can sign up with the e-mail address of an approver who has no account yet"
            );
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Service {
    /// Makes what the handlers share, and starts the tasks that it needs.
    async fn start(settings: UserServiceSettings, running: &Running) -> anyhow::Result<Self> {
        let database = Database::connect(&settings.database);
        let hasher = Hasher::start(settings.passwords.cost)?;
        let rules = PasswordRules {
            min_length: settings.passwords.min_length,
        };
        if let Some(wanted) = settings.first_admin {
            accounts::make_first_admin(&database, &hasher, rules, &settings.sign_up, wanted)
                .await?;
        }
        let signer = signer(&settings.tokens)?;
        let verifier = verifier(&settings.tokens, &signer);
        let lifetime = settings.tokens.lifetime;
        let poller = Poller::start(database.clone(), Arc::clone(&verifier), lifetime).await?;
        running.spawn(poller.run(running.shutdown()));
        let (keep, shutdown) = (settings.audit_retention, running.shutdown());
        running.spawn(audit_log::retain(database.clone(), keep, shutdown));
        let publisher = |queue| {
            let broker = settings.broker.clone();
            let (publisher, task) = Publisher::new(broker, queue, running.shutdown());
            running.spawn(task);
            publisher
        };
        Ok(Self {
            deletions: publisher(Queue::USER_DELETIONS),
            notifications: publisher(Queue::USER_NOTIFICATIONS),
            database,
            hasher,
            rules,
            signer,
            verifier,
            token_lifetime: lifetime,
            sign_up: settings.sign_up,
            sign_in_failure_status: StatusCode::from_u16(settings.sign_in_failure_status)?,
            channels: settings.channels,
            code_requests: settings.code_requests,
            email_verification: settings.email_verification,
            has_engine: settings.flow_engine.is_some(),
        })
    }
}

fn verifier(settings: &TokenSettings, signer: &Signer) -> Arc<Verifier> {
    let verifier = Verifier::new(&settings.issuer, &settings.audience);
    verifier.set_keys(signer.published());
    Arc::new(verifier)
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

fn health(service: &Service) -> Health {
    let database = service.database.clone();
    let verifier = Arc::clone(&service.verifier);
    let publishers = [service.deletions.clone(), service.notifications.clone()];
    Health::default()
        .required("database", move || {
            let database = database.clone();
            async move { database.is_usable().await }
        })
        .required("keys", move || {
            let has_keys = verifier.has_keys();
            async move { has_keys }
        })
        // Without it requests are answered still: what they ask for is done later, when a worker sweeps.
        .required("queue", move || {
            let connected = publishers.iter().all(Publisher::is_connected);
            async move { connected }
        })
}

/// The service's OpenAPI document.
#[must_use]
pub fn openapi() -> OpenApi {
    routes(App::new().into_utoipa_app()).split_for_parts().1
}

/// Every public operation. Those of one segment more precise than `{userId}` come first.
fn routes<T>(app: UtoipaApp<T>) -> UtoipaApp<T>
where
    T: ServiceFactory<ServiceRequest, Config = (), Error = Error, InitError = ()>,
{
    app.openapi(Base::openapi())
        .service(sign_in::routes::sign_in)
        .service(accounts::routes::create_user)
        .service(accounts::routes::current_user)
        .service(accounts::routes::verify_email)
        .service(passwords::routes::change_password)
        .service(passwords::routes::reset_password)
        .service(passwords::routes::forgot_password)
        .service(passwords::routes::reset_forgotten_password)
        .service(accounts::routes::list_users)
        .service(accounts::routes::count_users)
        .service(deletions::routes::list_deletions)
        .service(accounts::routes::get_user)
        .service(accounts::routes::update_user)
        .service(deletions::routes::delete_user)
        .service(deletions::routes::delete_status)
        .service(deletions::routes::cancel_deletion)
        .service(audit::routes::list_audit)
        .service(revocations::routes::keys)
}

fn app(
    service: Data<Service>,
    verifier: Data<Verifier>,
    health: Data<Health>,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = Error,
        InitError = (),
    >,
> {
    let app = App::new()
        .app_data(service)
        .app_data(verifier)
        .app_data(health)
        .app_data(PathConfig::default().error_handler(|_, _| Problem::not_found("path").into()))
        .wrap(from_fn(http_kit::request_context));
    let (app, document) = routes(app.into_utoipa_app()).split_for_parts();
    let refusals = Routes::of(&document);
    let document = Data::new(document);
    app.app_data(document)
        .route("/healthz", get().to(http_kit::healthz))
        .route("/readyz", get().to(http_kit::readyz))
        .route("/openapi.json", get().to(show_document))
        .route(
            "/internal/revocations",
            get().to(revocations::routes::revocations),
        )
        .default_service(actix_web::web::to(move |request: HttpRequest| {
            let problem = refusals.refuse(&request);
            async move { Err::<HttpResponse, _>(problem) }
        }))
}

async fn show_document(document: Data<OpenApi>) -> HttpResponse {
    HttpResponse::Ok().json(document.get_ref())
}
