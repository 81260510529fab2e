use audit_log::{Actor, AuthMethod, RequestMeta};
use database::Connection;
use serde_json::json;
use values::{Secret, UserId};

use super::attempt::{Attempt, AttemptKey};
use super::error::SignInError;
use super::store::{self, Candidate};
use crate::accounts::{User, sign_token};
use crate::audit::AuditAction;
use crate::context::Context;
use crate::hashing::{NewPassword, Password};

/// How often an attempt starts over because the account changed while its password was checked.
const MAX_RACES: usize = 2;

/// Checks the password of an attempt and signs a token for its user.
#[tracing::instrument(skip_all, fields(user.id))]
pub(super) async fn authenticate(
    context: &Context,
    attempt: Attempt,
    password: Secret,
) -> Result<(User, Secret), SignInError> {
    let mut user = None;
    for _ in 0..MAX_RACES {
        let (candidate, key) = count_attempt(context, attempt.clone()).await?;
        user = candidate.as_ref().map(|found| found.id);
        let hash = candidate.as_ref().map(|found| found.password_hash.clone());
        let is_right = verify_password(context, &key, &password, hash).await?;
        let Some(candidate) = candidate.filter(|_| is_right) else {
            record_outcome("failed");
            return Err(refuse(context, user, attempt.meta, SignInError::InvalidCredentials).await);
        };
        tracing::Span::current().record("user.id", candidate.id.to_string());
        let new_hash = hash_of_current_cost(context, &key, &candidate, &password).await;
        let is_active = candidate.is_active;
        if let Some(user) = record_success(context, key, candidate, new_hash, &attempt.meta).await?
        {
            record_outcome("signed-in");
            let token = sign_token(context, &user)?;
            return Ok((user, token));
        }
        if !is_active {
            record_outcome("inactive");
            return Err(refuse(context, user, attempt.meta, SignInError::Inactive).await);
        }
    }
    Err(refuse(context, user, attempt.meta, SignInError::InvalidCredentials).await)
}

/// Records a refused attempt and returns its error. The same statements run for an unknown name.
async fn refuse(
    context: &Context,
    user: Option<UserId>,
    meta: RequestMeta,
    refusal: SignInError,
) -> SignInError {
    let inactive = matches!(refusal, SignInError::Inactive);
    // A new identifier belongs to no user.
    let id = user.unwrap_or_else(UserId::generate);
    let record = move |connection: &mut Connection| {
        let user = store::lock_user(connection, id)?;
        let entry = AuditAction::SignInRefused.entry_about(Actor::Anonymous, user, meta);
        let entry = if inactive {
            let entry = entry.authenticated_by(AuthMethod::Password);
            entry.detail(json!({"reason": "account-inactive"}))
        } else {
            entry.detail(json!({"reason": "invalid-credentials"}))
        };
        entry.record(connection)?;
        Ok::<_, database::Error>(())
    };
    match context.database.transaction(record).await {
        Ok(()) => refusal,
        Err(error) => error.into(),
    }
}

/// Finds the candidate and counts the attempt, unless the name must wait.
async fn count_attempt(
    context: &Context,
    attempt: Attempt,
) -> Result<(Option<Candidate>, AttemptKey), SignInError> {
    let count = move |connection: &mut Connection| {
        let (candidate, key) = store::find_candidate(connection, &attempt)?;
        match store::count_attempt(connection, &key)? {
            Some(wait) => {
                record_outcome("waiting");
                Err(SignInError::TooManyAttempts(wait))
            }
            None => Ok((candidate, key)),
        }
    };
    context.database.transaction(count).await
}

/// Whether the password is correct. An attempt whose password could not be checked does not count.
async fn verify_password(
    context: &Context,
    key: &AttemptKey,
    password: &Secret,
    hash: Option<String>,
) -> Result<bool, SignInError> {
    let claimed = Password::from(password.clone());
    let verified = context
        .hasher
        .verify(&key.client_network, claimed, hash)
        .await;
    if verified.is_err() {
        let key = key.clone();
        let refund = move |connection: &mut Connection| {
            Ok::<_, SignInError>(store::refund_attempt(connection, &key)?)
        };
        context.database.transaction(refund).await?;
    }
    Ok(verified?)
}

/// Records the sign-in and deletes the failures that a correct password clears. `None` if the account is
/// inactive or was changed concurrently.
async fn record_success(
    context: &Context,
    key: AttemptKey,
    candidate: Candidate,
    new_hash: Option<String>,
    meta: &RequestMeta,
) -> Result<Option<User>, SignInError> {
    let id = candidate.id;
    let entry = AuditAction::SignedIn.entry(Actor::User(id), id, meta.clone());
    let entry = entry.authenticated_by(AuthMethod::Password);
    let record = move |connection: &mut Connection| {
        // Every transaction locks the user before the failures, so that two of them cannot deadlock.
        let new_hash = new_hash.as_deref();
        let user = store::record_sign_in(connection, &candidate, new_hash, entry)?;
        store::delete_failures(connection, &key)?;
        Ok::<_, SignInError>(user)
    };
    context.database.transaction(record).await
}

/// A new hash, if the stored one does not have the current cost. The sign-in succeeds without it, too.
async fn hash_of_current_cost(
    context: &Context,
    key: &AttemptKey,
    candidate: &Candidate,
    password: &Secret,
) -> Option<String> {
    if !context.hasher.is_outdated(&candidate.password_hash) {
        return None;
    }
    let password = NewPassword::verified(password.clone());
    context
        .hasher
        .hash(&key.client_network, password)
        .await
        .ok()
}

fn record_outcome(outcome: &'static str) {
    metrics::counter!("sign_ins_total", "outcome" => outcome).increment(1);
}
