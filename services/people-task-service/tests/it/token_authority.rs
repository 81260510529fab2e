//! Stands in for the user service: its keys, its revocation feed, and tokens.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::App;
use actix_web::web::{Data, Json, get};
use auth::{ADMIN_SCOPE, JwkSet, KeyScope, RevocationFeed, Signer, SigningKey, Subject};
use server::{HttpServerSettings, Running};
use testkit::{INCARNATION, ed25519_pem};
use values::{CredentialId, EmailAddress, FromText as _, UserId};

const ISSUER: &str = "countersign";

type Feed = Arc<Mutex<RevocationFeed>>;

/// Replaces the user service: publishes keys and raised epochs, and signs tokens.
#[derive(Debug)]
pub(crate) struct TokenAuthority {
    signer: Arc<Signer>,
    feed: Feed,
    running: Running,
}

impl TokenAuthority {
    /// Starts a server on a free port.
    pub(crate) fn start() -> Self {
        let key = SigningKey::from_pem(&ed25519_pem()).unwrap();
        let lifetime = Duration::from_secs(3600);
        let signer = Signer::new(&key, &[], ISSUER.to_owned(), ISSUER.to_owned(), lifetime);
        let signer = Arc::new(signer);
        let feed = Feed::new(Mutex::new(RevocationFeed {
            next: "1".to_owned(),
            incarnation: INCARNATION.to_owned(),
            ..RevocationFeed::default()
        }));
        let (listener, address) = server::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let mut running = Running::new();
        running.address = Some(address);
        let settings = HttpServerSettings::single_threaded();
        let keys = Data::new(signer.published().clone());
        let published = Data::new(Arc::clone(&feed));
        server::serve(&running, listener, settings, move || {
            App::new()
                .app_data(keys.clone())
                .app_data(published.clone())
                .route("/.well-known/jwks.json", get().to(get_keys))
                .route("/internal/revocations", get().to(get_revocations))
        })
        .unwrap();
        Self {
            signer,
            feed,
            running,
        }
    }

    /// `USER_SERVICE_URL` of a service that trusts this authority.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.running.address.unwrap())
    }

    /// Returns the signer, for unusual tokens.
    pub(crate) fn signer(&self) -> &Signer {
        &self.signer
    }

    /// Creates a user with this e-mail address. Returns the identifier and a token.
    pub(crate) fn user(&self, email: &str) -> (UserId, String) {
        let id = UserId::generate();
        (id, self.token(id, email, &["user"]))
    }

    /// Creates an administrator with this e-mail address. Returns the identifier and a token.
    pub(crate) fn admin(&self, email: &str) -> (UserId, String) {
        let id = UserId::generate();
        (id, self.token(id, email, &["user", ADMIN_SCOPE]))
    }

    /// Signs a token of epoch 0.
    pub(crate) fn token(&self, id: UserId, email: &str, scope: &[&str]) -> String {
        self.sign(self.subject(id, email, scope))
    }

    /// Creates a service account with this e-mail address. Returns a token that a key of it with all scopes is exchanged for.
    pub(crate) fn service_account(&self, email: &str) -> String {
        let mut subject = self.subject(UserId::generate(), email, &["user"]);
        subject.service = true;
        self.sign(subject)
    }

    /// Returns a token that a user's API key with these scopes is exchanged for.
    pub(crate) fn key_of(
        &self,
        id: UserId,
        email: &str,
        scope: &[&str],
        scopes: &[KeyScope],
    ) -> String {
        let (subject, key) = (self.subject(id, email, scope), CredentialId::generate());
        let lifetime = Duration::from_secs(300);
        let token = self.signer.sign_for(subject.of_key(key, scopes), lifetime);
        token.expose().to_owned()
    }

    /// Creates a user of a group of accounts that count as one. Returns the identifier and a token.
    pub(crate) fn member(&self, email: &str, group: UserId) -> (UserId, String) {
        let id = UserId::generate();
        let mut subject = self.subject(id, email, &["user"]);
        subject.group = Some(group.to_string());
        (id, self.sign(subject))
    }

    fn sign(&self, subject: Subject) -> String {
        self.signer.sign(subject).expose().to_owned()
    }

    fn subject(&self, id: UserId, email: &str, scope: &[&str]) -> Subject {
        let email = EmailAddress::from_text(email).unwrap();
        Subject {
            id,
            username: email.clone(),
            email,
            scope: scope.iter().map(ToString::to_string).collect(),
            epoch: 0,
            incarnation: self.feed.lock().unwrap().incarnation.clone(),
            email_verified: true,
            group: None,
            credential: None,
            key_scopes: None,
            service: false,
        }
    }

    /// Revokes the tokens of a user that have a lower epoch.
    pub(crate) fn raise(&self, user: UserId, epoch: i64) {
        let entry = (user.into(), epoch);
        self.feed.lock().unwrap().epochs.push(entry);
    }

    /// Starts another incarnation of the database, as a restore does: it revokes the tokens of all others.
    pub(crate) fn start_incarnation(&self, incarnation: &str) {
        let mut feed = self.feed.lock().unwrap();
        feed.incarnation = incarnation.to_owned();
        feed.epochs.clear();
    }

    /// Stops the server.
    pub(crate) async fn stop(&self) {
        assert!(self.running.stop(Duration::from_secs(5)).await);
    }
}

async fn get_keys(keys: Data<JwkSet>) -> Json<JwkSet> {
    Json((**keys).clone())
}

async fn get_revocations(feed: Data<Feed>) -> Json<RevocationFeed> {
    Json(feed.lock().unwrap().clone())
}
