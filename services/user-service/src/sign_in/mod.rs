//! Sign-in by username or e-mail address, and the waiting that slows down guessing.
//!
//! An unknown name and a wrong password are one: the same answer, the same database statements and
//! one bcrypt check of the same cost. Nothing tells them apart, the waiting included.

mod account;
mod back_off;
mod client_address;
mod error;
pub(crate) mod routes;
pub(crate) mod store;

use diesel::PgConnection;
use values::{Secret, UserId};

pub(crate) use account::SignInName;
use error::SignInError;

use crate::accounts::User;
use crate::app::Service;
use crate::passwords::{NewPassword, Password};

/// An account that is changed while its password is being checked is looked at once more.
const LOOKS: usize = 2;

/// Somebody who wants to sign in.
#[derive(Debug, Clone)]
struct Attempt {
    name: SignInName,
    client_address: String,
}

/// The user whose name was given, before the password is checked.
#[derive(Debug, Clone)]
struct Candidate {
    id: UserId,
    password_hash: String,
    is_active: bool,
    epoch: i64,
}

/// Signs somebody in.
#[tracing::instrument(skip_all, fields(user.id))]
async fn sign_in(
    service: &Service,
    attempt: Attempt,
    password: Secret,
) -> Result<(User, Secret), SignInError> {
    for _ in 0..LOOKS {
        let candidate = look(service, attempt.clone()).await?;
        let hash = candidate.as_ref().map(|found| found.password_hash.clone());
        let claimed = Password::from(password.clone());
        let right = service.hasher.verify(claimed, hash).await?;
        let Some(candidate) = candidate.filter(|_| right) else {
            return Err(fail(service, attempt).await?);
        };
        tracing::Span::current().record("user.id", candidate.id.to_string());
        if !candidate.is_active {
            count("inactive");
            return Err(SignInError::Inactive);
        }
        let renewed = renewed_hash(service, &candidate, &password).await;
        if let Some(user) = succeed(service, attempt.clone(), candidate, renewed).await? {
            count("signed-in");
            let token = service.signer.sign(user.subject())?;
            return Ok((user, token));
        }
    }
    Err(SignInError::InvalidCredentials)
}

/// Finds the candidate, unless the account must wait.
async fn look(service: &Service, attempt: Attempt) -> Result<Option<Candidate>, SignInError> {
    let look = move |connection: &mut PgConnection| {
        check_wait(connection, &attempt)?;
        Ok(store::candidate(connection, &attempt)?)
    };
    service.database.run(look).await
}

fn check_wait(connection: &mut PgConnection, attempt: &Attempt) -> Result<(), SignInError> {
    match store::wait(connection, attempt)? {
        Some(wait) => {
            count("waiting");
            Err(SignInError::TooManyAttempts(wait))
        }
        None => Ok(()),
    }
}

async fn fail(service: &Service, attempt: Attempt) -> Result<SignInError, SignInError> {
    count("failed");
    let note = move |connection: &mut PgConnection| {
        Ok::<_, SignInError>(store::count_failure(connection, &attempt)?)
    };
    service.database.transaction(note).await?;
    Ok(SignInError::InvalidCredentials)
}

/// `None` when the account was changed meanwhile.
async fn succeed(
    service: &Service,
    attempt: Attempt,
    candidate: Candidate,
    renewed_hash: Option<String>,
) -> Result<Option<User>, SignInError> {
    let note = move |connection: &mut PgConnection| {
        // Guesses that ran side by side with this one may have failed since it began. Without this
        // look, sending them all at once would be the way around the waiting.
        check_wait(connection, &attempt)?;
        store::forget_failures(connection, &attempt)?;
        Ok(store::note_sign_in(
            connection,
            &candidate,
            renewed_hash.as_deref(),
        )?)
    };
    service.database.transaction(note).await
}

/// A hash of the current cost, if the stored one has another. A sign-in does not fail for want of it.
async fn renewed_hash(
    service: &Service,
    candidate: &Candidate,
    password: &Secret,
) -> Option<String> {
    if !service.hasher.is_outdated(&candidate.password_hash) {
        return None;
    }
    let password = NewPassword::known(password.clone());
    service.hasher.hash(password).await.ok()
}

fn count(outcome: &'static str) {
    metrics::counter!("sign_ins_total", "outcome" => outcome).increment(1);
}
