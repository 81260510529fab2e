use std::time::Duration;

use audit_log::{Actor, AuthMethod, Entry, RequestMeta};
use database::{Connection, Error};
use serde_json::json;
use values::{CredentialId, Fingerprint, Secret, UserId};

use super::requests::{Browser, CookieValues};
use super::store::{self, Locked, NewSession};
use crate::accounts::{self, TokenSubject, User, signed_subject};
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;
use crate::credentials::store as credentials;
use crate::credentials::{CredentialKind, TOKEN_LIFETIME};
use crate::error::UserError;
use crate::sign_in::{SignInRequest, authenticate};

pub(super) struct Granted {
    pub(super) user: User,
    pub(super) token: Secret,
    pub(super) cookie: CookieValues,
    pub(super) lifetime: Duration,
}

/// Signs in by password and starts a session. It takes the place of the one that the browser has.
#[tracing::instrument(skip_all)]
pub(super) async fn start(
    context: &Context,
    browser: Browser,
    request: SignInRequest,
    meta: RequestMeta,
) -> Result<Granted, UserError> {
    let checked = authenticate(context, request, meta.clone()).await?.user;
    let (id, cookie) = (CredentialId::generate(), CookieValues::random());
    let settings = context.settings.sessions;
    let lifetime = settings.unused.min(settings.longest);
    let new = NewSession {
        id,
        cookie: cookie.clone(),
        browser,
        lifetime,
    };
    let changed = UserError::WrongCredentials(context.sign_in_failure_status);
    let begin = move |connection: &mut Connection| {
        let subject = accounts::store::lock_unchanged(connection, checked.id, checked.epoch)?;
        let subject = subject.ok_or(changed)?;
        let user = subject.user.id;
        let mut ended = end_earlier(connection, &new.browser, &meta)?;
        let entry = entry(AuditAction::SessionStarted, user, new.id, &meta);
        let entry = entry.authenticated_by(AuthMethod::Password);
        store::insert(connection, user, &new, entry)?;
        // Those that were not used for longest. Another one may have been used while this transaction waited for the lock.
        let sessions = store::of_user(connection, user, None)?;
        let others = sessions.iter().filter(|session| session.id != new.id);
        for excess in others.skip(settings.per_user.saturating_sub(1)) {
            end_by_user(connection, user, excess.id, &meta)?;
            ended.push(excess.id);
        }
        Ok::<_, UserError>((subject, ended))
    };
    let (subject, ended) = context.database.transaction(begin).await?;
    note_ended(context, ended);
    record_event("started");
    Ok(grant(context, subject, id, cookie, lifetime))
}

fn grant(
    context: &Context,
    subject: TokenSubject,
    id: CredentialId,
    cookie: CookieValues,
    lifetime: Duration,
) -> Granted {
    let mut signed = signed_subject(context, &subject);
    signed.credential = Some(id);
    let token = context
        .signer
        .sign_for(signed, TOKEN_LIFETIME.min(lifetime));
    Granted {
        user: subject.user,
        token,
        cookie,
        lifetime,
    }
}

/// What became of the session of a cookie.
enum Outcome {
    /// It was exchanged, and is valid for this many seconds.
    Exchanged(Box<TokenSubject>, CredentialId, i64),
    Busy,
    Unknown,
    /// A value that was replaced came back, and ended it.
    Replayed(CredentialId),
}

/// Exchanges a browser's session for an access token and replaces the value of its cookie.
#[tracing::instrument(skip_all)]
pub(super) async fn exchange(
    context: &Context,
    browser: Browser,
    attempt: Option<Fingerprint>,
    meta: RequestMeta,
) -> Result<Granted, UserError> {
    let given = browser.cookie.clone().ok_or(UserError::SessionEnded)?;
    let next = given.replaced();
    let secrets = (given.secret(), next.secret());
    let settings = context.settings.sessions;
    let run = move |connection: &mut Connection| {
        let Some(session) = store::lock(connection, given.fingerprint())? else {
            return Ok(Outcome::Unknown);
        };
        if !session.accepts(given.secret(), attempt) {
            return refuse(connection, &session, meta);
        }
        let Some(subject) = store::find_subject(connection, session.user)? else {
            return Ok(Outcome::Unknown);
        };
        let seconds =
            store::exchange(connection, session.id, secrets, attempt, &browser, settings)?;
        Ok(Outcome::Exchanged(Box::new(subject), session.id, seconds))
    };
    let (event, error) = match context.database.transaction(run).await? {
        Outcome::Exchanged(subject, id, seconds) => {
            record_event("exchanged");
            let lifetime = Duration::from_secs(seconds.try_into().unwrap_or_default());
            return Ok(grant(context, *subject, id, next, lifetime));
        }
        Outcome::Busy => ("busy", UserError::SessionBusy),
        Outcome::Unknown => ("refused", UserError::SessionEnded),
        Outcome::Replayed(id) => {
            tracing::warn!("a session ended, because a value of its cookie came back");
            note_ended(context, [id]);
            ("replayed", UserError::SessionEnded)
        }
    };
    record_event(event);
    Err(error)
}

/// Ends a session whose value came back, unless another exchange is under way.
fn refuse(
    connection: &mut Connection,
    session: &Locked,
    meta: RequestMeta,
) -> Result<Outcome, Error> {
    if session.is_being_exchanged {
        return Ok(Outcome::Busy);
    }
    let entry = AuditAction::SessionReplayed.entry(Actor::Anonymous, session.user, meta);
    let entry = entry.detail(json!({"session": session.id}));
    let kind = CredentialKind::Session;
    credentials::end(connection, session.user, kind, session.id, entry)?;
    Ok(Outcome::Replayed(session.id))
}

/// Ends the session of a browser, if it has one.
#[tracing::instrument(skip_all)]
pub(super) async fn end_own(
    context: &Context,
    browser: Browser,
    meta: RequestMeta,
) -> Result<(), Error> {
    let end = move |connection: &mut Connection| end_earlier(connection, &browser, &meta);
    let ended = context.database.transaction(end).await?;
    note_ended(context, ended);
    Ok(())
}

/// Ends a session of a user. `false` if it has ended, or is another user's.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(super) async fn end_one(
    context: &Context,
    user: UserId,
    id: CredentialId,
    actor: RequestActor,
) -> Result<bool, Error> {
    let entry = actor.entry(AuditAction::SessionEnded, user);
    let entry = entry.detail(json!({"session": id}));
    let end = move |connection: &mut Connection| {
        credentials::end(connection, user, CredentialKind::Session, id, entry)
    };
    let has_ended = context.database.transaction(end).await?;
    note_ended(context, has_ended.then_some(id));
    Ok(has_ended)
}

/// Ends the session of a browser's cookie. Returns the sessions that ended.
fn end_earlier(
    connection: &mut Connection,
    browser: &Browser,
    meta: &RequestMeta,
) -> Result<Vec<CredentialId>, Error> {
    let Some(cookie) = &browser.cookie else {
        return Ok(Vec::new());
    };
    let Some(session) = store::lock(connection, cookie.fingerprint())? else {
        return Ok(Vec::new());
    };
    end_by_user(connection, session.user, session.id, meta)?;
    Ok(vec![session.id])
}

fn end_by_user(
    connection: &mut Connection,
    user: UserId,
    id: CredentialId,
    meta: &RequestMeta,
) -> Result<bool, Error> {
    let entry = entry(AuditAction::SessionEnded, user, id, meta);
    credentials::end(connection, user, CredentialKind::Session, id, entry)
}

/// Makes this process refuse the tokens of sessions at once. Other processes read the feed.
fn note_ended(context: &Context, ended: impl IntoIterator<Item = CredentialId>) {
    let ended = ended.into_iter().inspect(|_| record_event("ended"));
    context.verifier.revocations().end(ended);
}

fn record_event(event: &'static str) {
    metrics::counter!("session_events_total", "event" => event).increment(1);
}

fn entry(action: AuditAction, user: UserId, session: CredentialId, meta: &RequestMeta) -> Entry {
    let entry = action.entry(Actor::User(user), user, meta.clone());
    entry.detail(json!({"session": session}))
}
