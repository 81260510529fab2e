use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::App;
use actix_web::web::{Data, Json, get};
use auth::{ADMIN_SCOPE, JwkSet, RemoteSettings, RevocationFeed, Signer, SigningKey, Subject};
use service_runtime::{HttpServerSettings, Running};
use values::{EmailAddress, FromText, UserId};

use crate::keys::ed25519_pem;

const ISSUER: &str = "countersign";

/// What the feed answers: users and their raised epochs.
type Raised = Arc<Mutex<Vec<(UserId, i64)>>>;

/// Stands in for the user service: publishes keys, publishes raised epochs, and signs tokens.
#[derive(Debug)]
pub struct TokenAuthority {
    signer: Arc<Signer>,
    raised: Raised,
    running: Running,
}

impl TokenAuthority {
    /// Starts serving on a free port.
    ///
    /// # Panics
    /// When there is no port.
    #[must_use]
    pub fn start() -> Self {
        // Services that ask it need a provider; the binaries' entry installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let key = SigningKey::from_pem(&ed25519_pem()).unwrap();
        let lifetime = Duration::from_secs(3600);
        let signer = Signer::new(&key, &[], ISSUER.to_owned(), ISSUER.to_owned(), lifetime);
        let signer = Arc::new(signer);
        let raised = Raised::default();
        let (listener, address) = service_runtime::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let mut running = Running::new();
        running.address = Some(address);
        let settings = HttpServerSettings::single_threaded();
        let (keys, feed) = (
            Data::new(signer.published().clone()),
            Data::new(Arc::clone(&raised)),
        );
        service_runtime::serve(&running, listener, settings, move || {
            App::new()
                .app_data(keys.clone())
                .app_data(feed.clone())
                .route("/.well-known/jwks.json", get().to(keys_of))
                .route("/internal/revocations", get().to(revocations_of))
        })
        .unwrap();
        Self {
            signer,
            raised,
            running,
        }
    }

    /// Settings that make a service trust this authority.
    ///
    /// # Panics
    /// Never: the address is a url.
    #[must_use]
    pub fn settings(&self) -> RemoteSettings {
        let address = self.running.address.unwrap();
        RemoteSettings {
            user_service_url: app_config::SettingValue::parse(&format!("http://{address}"))
                .unwrap(),
            issuer: ISSUER.to_owned(),
            audience: ISSUER.to_owned(),
        }
    }

    /// The signer, for tokens that are unusual.
    #[must_use]
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// A new user with this e-mail address: the identifier and a token.
    #[must_use]
    pub fn user(&self, email: &str) -> (UserId, String) {
        let id = UserId::generate();
        (id, self.token(id, email, &["user"]))
    }

    /// A new administrator with this e-mail address: the identifier and a token.
    #[must_use]
    pub fn admin(&self, email: &str) -> (UserId, String) {
        let id = UserId::generate();
        (id, self.token(id, email, &["user", ADMIN_SCOPE]))
    }

    /// A token of epoch 0.
    ///
    /// # Panics
    /// When `email` is none.
    #[must_use]
    pub fn token(&self, id: UserId, email: &str, scope: &[&str]) -> String {
        let email = EmailAddress::from_text(email).unwrap();
        let subject = Subject {
            id,
            username: email.clone(),
            email,
            scope: scope.iter().map(ToString::to_string).collect(),
            epoch: 0,
            email_verified: true,
        };
        self.signer.sign(subject).unwrap().expose().to_owned()
    }

    /// Revokes every token of a user whose epoch is lower.
    pub fn raise(&self, user: UserId, epoch: i64) {
        self.raised.lock().unwrap().push((user, epoch));
    }

    /// Goes away, as a user service that was stopped.
    pub async fn stop(&self) {
        self.running.stop(Duration::from_secs(5)).await;
    }
}

async fn keys_of(keys: Data<JwkSet>) -> Json<JwkSet> {
    Json((**keys).clone())
}

async fn revocations_of(raised: Data<Raised>) -> Json<RevocationFeed> {
    let epochs = raised.lock().unwrap().clone();
    Json(RevocationFeed { cursor: 1, epochs })
}
