use std::time::Duration;

use audit_log::{Actor, RequestMeta};
use database::{Connection, Error};
use serde_json::json;
use values::{CredentialId, Fingerprint};

use super::requests::browser::Browser;
use super::start::{Granted, grant};
use super::store::{self, Exchange, Locked};
use super::{end, record_event};
use crate::accounts::TokenSubject;
use crate::audit::AuditAction;
use crate::context::Context;
use crate::credentials::CredentialKind;
use crate::credentials::store as credentials;
use crate::error::UserError;

/// What became of the session of a cookie.
enum Outcome {
    /// It was exchanged, and is valid for this many seconds.
    Exchanged(Box<TokenSubject>, CredentialId, i64),
    /// Another exchange was under way.
    Busy,
    /// There is none.
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
    let Some(given) = browser.cookie.clone() else {
        return Err(UserError::SessionEnded);
    };
    let next = given.replaced();
    let secrets = (given.secret(), next.secret());
    let settings = context.sessions;
    let run = move |connection: &mut Connection| {
        let Some(session) = store::lock(connection, given.fingerprint())? else {
            return Ok(Outcome::Unknown);
        };
        let exchange = Exchange {
            secrets,
            attempt,
            browser: &browser,
            settings,
        };
        exchange_locked(connection, &session, &exchange, &meta)
    };
    match context.database.transaction(run).await? {
        Outcome::Exchanged(subject, id, seconds) => {
            record_event("exchanged");
            let lifetime = Duration::from_secs(seconds.try_into().unwrap_or_default());
            Ok(grant(context, *subject, id, next, lifetime)?)
        }
        refused => Err(refusal(context, &refused)),
    }
}

/// Why there is no token. A value that came back also ends the tokens that the session has.
fn refusal(context: &Context, outcome: &Outcome) -> UserError {
    let (event, error) = match outcome {
        Outcome::Busy => ("busy", UserError::SessionBusy),
        Outcome::Replayed(_) => ("replayed", UserError::SessionEnded),
        Outcome::Unknown | Outcome::Exchanged(..) => ("refused", UserError::SessionEnded),
    };
    record_event(event);
    if let Outcome::Replayed(id) = outcome {
        tracing::warn!("a session ended, because a value of its cookie came back");
        end::note_ended(context, [*id]);
    }
    error
}

fn exchange_locked(
    connection: &mut Connection,
    session: &Locked,
    exchange: &Exchange<'_>,
    meta: &RequestMeta,
) -> Result<Outcome, Error> {
    let (given, _) = exchange.secrets;
    if !session.has_secret(given) && !session.was_exchanged(given, exchange.attempt) {
        if session.is_being_exchanged {
            return Ok(Outcome::Busy);
        }
        let action = AuditAction::SessionReplayed;
        let entry = action.entry(Actor::Anonymous, session.user, meta.clone());
        let entry = entry.detail(json!({"session": session.id}));
        let kind = CredentialKind::Session;
        credentials::end(connection, session.user, kind, session.id, entry)?;
        return Ok(Outcome::Replayed(session.id));
    }
    let Some(subject) = store::find_subject(connection, session.user)? else {
        return Ok(Outcome::Unknown);
    };
    let seconds = store::exchange(connection, session.id, exchange)?;
    Ok(Outcome::Exchanged(Box::new(subject), session.id, seconds))
}
