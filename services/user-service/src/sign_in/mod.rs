//! Sign-in by username or e-mail address, and the waiting that slows down guessing.
//!
//! An unknown name and a wrong password are one: the same answer, the same database statements and
//! one bcrypt check of the same cost. Nothing tells them apart, the waiting included.

mod account;
mod back_off;
mod bodies;
mod client_address;
mod error;
mod refusal;
pub(crate) mod routes;
pub(crate) mod store;

use audit_log::{Actor, AuthMethod, RequestMeta};
use diesel::{PgConnection, Queryable};
use values::{Secret, UserId};

pub(crate) use account::SignInName;
pub(crate) use client_address::client_address;
use error::SignInError;
use refusal::Refusal;

use crate::accounts::{User, sign_token};
use crate::audit::Action;
use crate::context::Context;
use crate::hashing::{NewPassword, Password};

/// An account that is changed while its password is being checked is looked at once more.
const LOOKS: usize = 2;

/// Somebody who wants to sign in.
#[derive(Debug, Clone)]
struct Attempt {
    name: SignInName,
    client_address: String,
    origin: RequestMeta,
}

/// The rows in which an attempt counts.
#[derive(Debug, Clone)]
struct Tally {
    account: [u8; 32],
    client_address: String,
}

/// The user whose name was given, before the password is checked.
#[derive(Debug, Clone, Queryable)]
struct Candidate {
    id: UserId,
    password_hash: String,
    is_active: bool,
    epoch: i64,
}

/// Signs somebody in.
#[tracing::instrument(skip_all, fields(user.id))]
async fn sign_in(
    context: &Context,
    attempt: Attempt,
    password: Secret,
) -> Result<(User, Secret), SignInError> {
    let mut known = None;
    for _ in 0..LOOKS {
        let (candidate, tally) = begin(context, attempt.clone()).await?;
        known = candidate.as_ref().map(|found| found.id);
        let hash = candidate.as_ref().map(|found| found.password_hash.clone());
        let right = judge(context, &tally, &password, hash).await?;
        let Some(candidate) = candidate.filter(|_| right) else {
            count("failed");
            return Err(refuse(context, known, attempt.origin, Refusal::InvalidCredentials).await);
        };
        tracing::Span::current().record("user.id", candidate.id.to_string());
        let renewed = renewed_hash(context, &candidate, &password).await;
        let is_active = candidate.is_active;
        if let Some(user) = succeed(context, tally, candidate, renewed, &attempt.origin).await? {
            count("signed-in");
            let token = sign_token(context, &user)?;
            return Ok((user, token));
        }
        if !is_active {
            count("inactive");
            return Err(refuse(context, known, attempt.origin, Refusal::Inactive).await);
        }
    }
    Err(refuse(context, known, attempt.origin, Refusal::InvalidCredentials).await)
}

/// Notes that an attempt was judged and refused. A name that nobody has causes the same statements.
/// Returns why the attempt fails.
async fn refuse(
    context: &Context,
    known: Option<UserId>,
    origin: RequestMeta,
    refusal: Refusal,
) -> SignInError {
    // Nobody has an identifier that was made just now.
    let wanted = known.unwrap_or_else(UserId::generate);
    let note = move |connection: &mut PgConnection| {
        let user = store::stays(connection, wanted)?;
        let entry = Action::SignInRefused.entry_about(Actor::Anonymous, user, origin);
        refusal.explain(entry).record(connection)?;
        Ok::<_, SignInError>(())
    };
    match context.database.transaction(note).await {
        Ok(()) => refusal.into(),
        Err(error) => error,
    }
}

/// Finds the candidate and counts the attempt, unless the account must wait.
async fn begin(
    context: &Context,
    attempt: Attempt,
) -> Result<(Option<Candidate>, Tally), SignInError> {
    let begin = move |connection: &mut PgConnection| {
        let (candidate, tally) = store::candidate(connection, &attempt)?;
        match store::count_attempt(connection, &tally)? {
            Some(wait) => {
                count("waiting");
                Err(SignInError::TooManyAttempts(wait))
            }
            None => Ok((candidate, tally)),
        }
    };
    context.database.transaction(begin).await
}

/// Whether the password is right. An attempt that could not be judged does not count.
async fn judge(
    context: &Context,
    tally: &Tally,
    password: &Secret,
    hash: Option<String>,
) -> Result<bool, SignInError> {
    let claimed = Password::from(password.clone());
    let judged = context.hasher.verify(claimed, hash).await;
    if judged.is_err() {
        let tally = tally.clone();
        let uncount = move |connection: &mut PgConnection| {
            Ok::<_, SignInError>(store::uncount_attempt(connection, &tally)?)
        };
        context.database.transaction(uncount).await?;
    }
    Ok(judged?)
}

/// Takes the failures back that a right password ends, and notes the sign-in. `None` when the account
/// is inactive, or was changed meanwhile.
async fn succeed(
    context: &Context,
    tally: Tally,
    candidate: Candidate,
    renewed_hash: Option<String>,
    origin: &RequestMeta,
) -> Result<Option<User>, SignInError> {
    let id = candidate.id;
    let entry = Action::SignedIn.entry(Actor::User(id), id, origin.clone());
    let entry = entry.authenticated_by(AuthMethod::Password);
    let note = move |connection: &mut PgConnection| {
        // A new password takes the user and then the failures, too: they do not wait for each other.
        let renewed_hash = renewed_hash.as_deref();
        let user = store::note_sign_in(connection, &candidate, renewed_hash, entry)?;
        store::forget_failures(connection, &tally)?;
        Ok::<_, SignInError>(user)
    };
    context.database.transaction(note).await
}

/// A hash of the current cost, if the stored one has another. A sign-in does not fail for want of it.
async fn renewed_hash(
    context: &Context,
    candidate: &Candidate,
    password: &Secret,
) -> Option<String> {
    if !context.hasher.is_outdated(&candidate.password_hash) {
        return None;
    }
    let password = NewPassword::verified(password.clone());
    context.hasher.hash(password).await.ok()
}

fn count(outcome: &'static str) {
    metrics::counter!("sign_ins_total", "outcome" => outcome).increment(1);
}
