use audit_log::{Actor, AuthMethod, RequestMeta};
use database::Connection;
use serde_json::json;
use values::UserId;

use super::requests::{SignInName, SignInRequest};
use super::store::{self, Candidate, Found};
use crate::accounts::{self, TokenSubject};
use crate::audit::AuditAction;
use crate::back_off::{self, AttemptKey, CountedAttempt};
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::error::UserError;
use crate::hashing::Verdict;
use crate::password_rules::NewPassword;

/// How often an attempt starts over because the account changed while its password was checked.
const MAX_RACES: usize = 2;
/// The reason that the audit log gives for the right password of an inactive account.
const INACTIVE: &str = "account-inactive";
/// How many refusals of unknown names are logged for one client network and hour.
const LOGGED_FOR_UNKNOWN_NAMES: i32 = 60;
/// How many refusals of users are logged for one client network and hour. They are kept for longer, but a
/// network would need many users to reach it, because each user's attempts must wait.
const LOGGED_FOR_USERS: i32 = 600;

/// Checks the password of an attempt, and returns the user for whom a token can be signed.
#[tracing::instrument(skip_all, fields(user.id))]
pub(crate) async fn authenticate(
    context: &Context,
    SignInRequest { name, password }: SignInRequest,
    meta: RequestMeta,
) -> Result<TokenSubject, UserError> {
    let client = &ClientNetwork::of(&meta);
    let status = context.sign_in_failure_status;
    let mut user = None;
    for _ in 0..MAX_RACES {
        let (found, counted) = count_attempt(context, name.clone(), client.clone()).await?;
        user = found.candidate.as_ref().map(|found| found.id);
        // This takes the same time whether or not there is a candidate.
        let stored = found.candidate.as_ref();
        let stored = stored.map(|candidate| candidate.password_hash.clone());
        let (claimed, highest) = (password.clone(), found.highest_cost());
        let hasher = &context.hasher;
        let verified = hasher.verify_in_equal_time(client, claimed, stored, highest);
        let verified = verified.await.map_err(UserError::from);
        let verdict = back_off::refund_on_error(&context.database, &counted, verified).await?;
        let is_right = verdict != Verdict::Wrong;
        let Some(candidate) = found.candidate.filter(|_| is_right) else {
            record_outcome("failed");
            return Err(refuse(context, user, meta, UserError::WrongCredentials(status)).await);
        };
        tracing::Span::current().record("user.id", candidate.id.to_string());
        let is_outdated = verdict == Verdict::RightInOtherForm
            || context.hasher.is_outdated(&candidate.password_hash);
        let renewed = is_outdated.then(|| NewPassword::verified(&password));
        let new_hash = match renewed.flatten() {
            // The sign-in succeeds without it, too.
            Some(password) => context.hasher.hash(client, password).await.ok(),
            None => None,
        };
        let is_active = candidate.is_active;
        let recorded = record_success(context, &meta, counted, candidate, new_hash).await?;
        if let Some(subject) = recorded {
            record_outcome("signed-in");
            return Ok(subject);
        }
        if !is_active {
            record_outcome("inactive");
            return Err(refuse(context, user, meta, UserError::AccountInactive).await);
        }
    }
    Err(refuse(context, user, meta, UserError::WrongCredentials(status)).await)
}

/// Finds the candidate and counts the attempt, unless the name must wait.
async fn count_attempt(
    context: &Context,
    name: SignInName,
    client: ClientNetwork,
) -> Result<(Found, CountedAttempt), UserError> {
    let count = move |connection: &mut Connection| {
        let found = store::find_candidate(connection, &name)?;
        let user = found.candidate.as_ref().map(|found| found.id);
        let key = AttemptKey::load(connection, name.name_hash(), user, &client)?;
        let counted = back_off::count(connection, key).inspect_err(|error| {
            if matches!(error, UserError::TooManyAttempts(_)) {
                record_outcome("waiting");
            }
        })?;
        Ok((found, counted))
    };
    context.database.transaction(count).await
}

/// Records the sign-in and deletes the failures that a correct password clears. `None` if the account is
/// inactive or was changed concurrently.
async fn record_success(
    context: &Context,
    meta: &RequestMeta,
    counted: CountedAttempt,
    candidate: Candidate,
    new_hash: Option<String>,
) -> Result<Option<TokenSubject>, UserError> {
    let id = candidate.id;
    let entry = AuditAction::SignedIn.entry(Actor::User(id), id, meta.clone());
    let entry = entry.authenticated_by(AuthMethod::Password);
    let client = ClientNetwork::of(meta);
    let attempt = counted.clone();
    let record = move |connection: &mut Connection| {
        // Every transaction locks the user before the failures, so that two of them cannot deadlock.
        let new_hash = new_hash.as_deref();
        let user = store::record_sign_in(connection, &candidate, new_hash, entry)?;
        if user.is_some() {
            back_off::record_network(connection, id, &client)?;
        }
        back_off::delete_failures(connection, &counted)?;
        Ok::<_, UserError>(user)
    };
    let recorded = context.database.transaction(record).await;
    back_off::refund_on_error(&context.database, &attempt, recorded).await
}

fn record_outcome(outcome: &'static str) {
    metrics::counter!("sign_ins_total", "outcome" => outcome).increment(1);
}

async fn refuse(
    context: &Context,
    user: Option<UserId>,
    meta: RequestMeta,
    refusal: UserError,
) -> UserError {
    let reason = match refusal {
        UserError::AccountInactive => INACTIVE,
        _ => "invalid-credentials",
    };
    match record_refusal(context, user, meta, reason).await {
        Ok(()) => refusal,
        Err(error) => error.into(),
    }
}

/// Records a refused attempt to prove a password. The same statements run for an unknown name.
///
/// One client network cannot fill the audit log: its last entry of an hour says that it reached the limit.
pub(crate) async fn record_refusal(
    context: &Context,
    user: Option<UserId>,
    meta: RequestMeta,
    reason: &'static str,
) -> Result<(), database::Error> {
    let client = ClientNetwork::of(&meta);
    // A new identifier belongs to no user.
    let id = user.unwrap_or_else(UserId::generate);
    let record = move |connection: &mut Connection| {
        let user = accounts::store::lock_against_deletion(connection, id)?;
        let limit = if user.is_some() {
            LOGGED_FOR_USERS
        } else {
            LOGGED_FOR_UNKNOWN_NAMES
        };
        let refusals = store::count_refusal(connection, &client, user.is_some())?;
        if refusals > limit {
            metrics::counter!("sign_in_refusals_not_logged_total").increment(1);
            return Ok::<_, database::Error>(());
        }
        let entry = AuditAction::SignInRefused.entry(Actor::Anonymous, user, meta);
        let entry = if reason == INACTIVE {
            entry.authenticated_by(AuthMethod::Password)
        } else {
            entry
        };
        let detail = if refusals == limit {
            json!({"reason": reason, "limitReached": true})
        } else {
            json!({"reason": reason})
        };
        entry.detail(detail).record(connection)?;
        Ok(())
    };
    context.database.transaction(record).await
}
