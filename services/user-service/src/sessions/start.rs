use std::time::Duration;

use audit_log::{AuthMethod, RequestMeta};
use database::{Connection, Error};
use values::{CredentialId, Secret, UserId};

use super::requests::browser::Browser;
use super::requests::cookie::CookieValues;
use super::store::NewSession;
use super::{end, entry, record_event, store};
use crate::accounts::{self, TokenSubject, User, signed_subject};
use crate::audit::AuditAction;
use crate::context::Context;
use crate::credentials::store as credentials;
use crate::credentials::{CredentialKind, TOKEN_LIFETIME};
use crate::error::UserError;
use crate::sign_in::{SignInRequest, authenticate};

/// What a browser gets for a session.
pub(super) struct Granted {
    pub(super) user: User,
    pub(super) token: Secret,
    pub(super) cookie: CookieValues,
    /// How long the cookie is valid.
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
    let checked = authenticate(context, request, meta.clone()).await?;
    let (id, cookie) = (CredentialId::generate(), CookieValues::random());
    let lifetime = context.sessions.unused.min(context.sessions.longest);
    let new = NewSession {
        id,
        cookie: cookie.clone(),
        browser,
        lifetime,
    };
    let per_user = context.sessions.per_user;
    let changed = UserError::WrongCredentials(context.sign_in_failure_status);
    let begin = move |connection: &mut Connection| {
        begin(connection, &checked, &new, per_user, &meta)?.ok_or(changed)
    };
    let (subject, ended) = context.database.transaction(begin).await?;
    end::note_ended(context, ended);
    record_event("started");
    Ok(grant(context, subject, id, cookie, lifetime)?)
}

/// Inserts a session of a user whose password was checked. Returns the user, and the sessions that ended in its place.
/// `None` if the user was changed since.
fn begin(
    connection: &mut Connection,
    checked: &TokenSubject,
    new: &NewSession,
    per_user: usize,
    meta: &RequestMeta,
) -> Result<Option<(TokenSubject, Vec<CredentialId>)>, Error> {
    let checked = &checked.user;
    let subject = accounts::store::lock_unchanged(connection, checked.id, checked.epoch)?;
    let Some(subject) = subject else {
        return Ok(None);
    };
    let user = subject.user.id;
    let mut ended = end::end_earlier(connection, &new.browser, meta)?;
    let entry = entry(AuditAction::SessionStarted, user, new.id, meta);
    let entry = entry.authenticated_by(AuthMethod::Password);
    store::insert(connection, user, new, entry)?;
    ended.extend(end_excess(connection, user, per_user, meta)?);
    Ok(Some((subject, ended)))
}

/// Signs the token of a session.
pub(super) fn grant(
    context: &Context,
    subject: TokenSubject,
    id: CredentialId,
    cookie: CookieValues,
    lifetime: Duration,
) -> Result<Granted, auth::SignError> {
    let (signer, signed) = (&context.signer, signed_subject(context, &subject));
    let token = signer.sign_for_credential(signed, id, TOKEN_LIFETIME.min(lifetime))?;
    Ok(Granted {
        user: subject.user,
        token,
        cookie,
        lifetime,
    })
}

/// Ends the sessions of a user that were not used for longest, but for this many.
fn end_excess(
    connection: &mut Connection,
    user: UserId,
    per_user: usize,
    meta: &RequestMeta,
) -> Result<Vec<CredentialId>, Error> {
    let sessions = store::of_user(connection, user, None)?;
    let excess = sessions.into_iter().skip(per_user);
    let excess: Vec<_> = excess.map(|session| session.id).collect();
    for id in &excess {
        let entry = entry(AuditAction::SessionEnded, user, *id, meta);
        credentials::end(connection, user, CredentialKind::Session, *id, entry)?;
    }
    Ok(excess)
}
