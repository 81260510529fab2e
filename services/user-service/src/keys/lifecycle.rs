//! Makes keys, exchanges them for tokens, ends them, and confirms them: after a restore they are off, until an administrator
//! turns them on again.

use audit_log::RequestMeta;
use auth::{ADMIN_SCOPE, ApiKey, Caller, ExchangedKey, KeyScope};
use database::{Connection, Error};
use serde_json::json;
use values::{CredentialId, Invalid, Names as _, UserId};

use super::notices::{NewKeyMails, notice_due};
use super::requests::CreateKeyRequest;
use super::store::{self, Key, NewKey};
use crate::accounts::{self, User, signed_subject};
use crate::audit::{AuditAction, RequestActor};
use crate::back_off::{self, AttemptKey, name_hash};
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::credentials::store as credentials;
use crate::credentials::{CredentialKind, TOKEN_LIFETIME};
use crate::error::UserError;
use crate::notifications::Channel;
use crate::sign_in::record_refusal;

/// What failed tries of keys are counted by, beside their network. It is no e-mail address.
const FAILURES: &str = "api-keys";
/// Keys that one transaction confirms.
const CONFIRMED: i64 = 200;

/// Makes a key for a user, and returns it with its text. A person is mailed, because the caller may have a stolen token.
#[tracing::instrument(skip_all, fields(user.id = %owner))]
pub(super) async fn create(
    context: &Context,
    owner: UserId,
    caller: &Caller,
    request: CreateKeyRequest,
    meta: RequestMeta,
) -> Result<(Key, String), UserError> {
    let scopes: Vec<_> = request.scopes.iter().map(|scope| scope.name()).collect();
    let (by_other, notice) = (caller.id() != owner, context.settings.keys.notice);
    let due = request.expires.and_then(|end| notice_due(end, notice));
    let new = NewKey {
        key: ApiKey::generate(CredentialId::generate()),
        user: owner,
        notice_due: due,
        request,
        created_by: by_other.then_some(caller.id()),
    };
    let (epoch, most) = (caller.epoch(), context.settings.keys.per_user);
    let mails = can_mail(context).then(|| NewKeyMails::new(context, &meta));
    let text = new.key.expose().to_owned();
    let entry = RequestActor::new(caller, meta).entry(AuditAction::KeyCreated, owner);
    let entry = entry.detail(json!({"createdKey": new.key.id(), "scopes": scopes}));
    let insert = move |connection: &mut Connection| {
        let owner = lock_owner(connection, &new, epoch)?;
        check(&new, &owner, epoch)?;
        let count = store::count(connection, owner.id)?;
        if usize::try_from(count).is_ok_and(|count| count >= most) {
            return Err(UserError::TooManyKeys(most));
        }
        let mails = mails.filter(|_| !owner.is_service);
        let mail = mails.map(|mails| mails.insert(connection, &new, &owner));
        let mail = mail.transpose()?.flatten();
        Ok((store::insert(connection, &new, entry)?, mail))
    };
    let (shown, mail) = context.database.transaction(insert).await?;
    context.notifications.send(mail);
    record_event("created");
    tracing::info!(key.id = %shown.id, "an API key was made");
    Ok((shown, text))
}

/// Locks the user of a key, and the administrator who makes it, so that what ends the administrator's account does not miss it.
/// `epoch` is that of the caller's token.
fn lock_owner(connection: &mut Connection, new: &NewKey, epoch: i64) -> Result<User, UserError> {
    if let Some(administrator) = new.created_by {
        accounts::store::lock_active_admins(connection)?;
        let unchanged = accounts::store::lock_unchanged(connection, administrator, epoch)?;
        unchanged.ok_or(UserError::CallerGone)?;
    }
    accounts::store::lock(connection, new.user)?.ok_or(UserError::NotFound("user"))
}

/// Refuses a key that the user may not have. `epoch` is that of the caller's token.
fn check(new: &NewKey, owner: &User, epoch: i64) -> Result<(), UserError> {
    let scopes = &new.request.scopes;
    if new.created_by.is_none() && epoch != owner.epoch {
        return Err(UserError::CallerGone);
    }
    if !owner.is_active || owner.deletion_in_progress {
        return Err(UserError::KeysOfInactiveUser);
    }
    let is_admin = owner.scope.iter().any(|scope| scope == ADMIN_SCOPE);
    if scopes.contains(&KeyScope::Admin) && !is_admin {
        let message = "Must not have `admin`, because the user is no administrator.";
        return Err(of_scopes("not-an-administrator", message));
    }
    let is_for_person = new.created_by.is_some() && !owner.is_service;
    if scopes.contains(&KeyScope::TasksDecide) && is_for_person {
        let message = "Must not have `tasks:decide`: a key that an administrator makes for a person never decides.";
        return Err(of_scopes("decides-for-a-person", message));
    }
    Ok(())
}

fn of_scopes(code: &'static str, message: &'static str) -> UserError {
    UserError::InvalidField("scopes", Invalid::new(code, message))
}

/// Ends a key of a user. Its tokens are refused within a second.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(super) async fn end(
    context: &Context,
    user: UserId,
    id: CredentialId,
    actor: RequestActor,
) -> Result<(), UserError> {
    let entry = actor.entry(AuditAction::KeyEnded, user);
    let entry = entry.detail(json!({"endedKey": id}));
    let end = move |connection: &mut Connection| {
        credentials::end(connection, user, CredentialKind::Key, id, entry)
    };
    if !context.database.transaction(end).await? {
        return Err(UserError::NotFound("key"));
    }
    context.verifier.revocations().end([id]);
    record_event("ended");
    Ok(())
}

pub(super) async fn confirm(
    context: &Context,
    user: UserId,
    id: CredentialId,
    actor: RequestActor,
) -> Result<(), UserError> {
    let confirm = move |connection: &mut Connection| confirm_one(connection, user, id, actor);
    let confirmed = context.database.transaction(confirm).await?;
    if confirmed.ok_or(UserError::NotFound("key"))? {
        record_event("confirmed");
    }
    Ok(())
}

/// Confirms the keys of all users, and returns their number. If it fails on the way, some are confirmed.
pub(super) async fn confirm_all(context: &Context, actor: RequestActor) -> Result<usize, Error> {
    let (mut total, mut after) = (0, None);
    loop {
        let actor = actor.clone();
        let confirm = move |connection: &mut Connection| {
            let keys = store::unconfirmed(connection, after, CONFIRMED)?;
            let mut confirmed = 0;
            for (id, user) in &keys {
                let is_new = confirm_one(connection, *user, *id, actor.clone())?;
                confirmed += usize::from(is_new == Some(true));
            }
            Ok::<_, Error>((keys.last().map(|(id, _)| *id), confirmed))
        };
        let (last, confirmed) = context.database.transaction(confirm).await?;
        if last.is_none() {
            return Ok(total);
        }
        after = last;
        total += confirmed;
        (0..confirmed).for_each(|_| record_event("confirmed"));
    }
}

fn confirm_one(
    connection: &mut Connection,
    user: UserId,
    id: CredentialId,
    actor: RequestActor,
) -> Result<Option<bool>, Error> {
    let entry = actor.entry(AuditAction::KeyConfirmed, user);
    let entry = entry.detail(json!({"confirmedKey": id}));
    store::confirm(connection, user, id, entry)
}

/// Exchanges a key for an access token, and records its use. A text that was never a key counts as a failed try of the network,
/// which must wait after several in a row. Only gateways refuse a key, which they do not know yet, for what others have tried.
#[tracing::instrument(skip_all, fields(key.id = %key.id()))]
pub(super) async fn exchange(
    context: &Context,
    key: ApiKey,
    meta: RequestMeta,
) -> Result<ExchangedKey, UserError> {
    let (id, wanted) = (key.id(), key.clone());
    let find = move |connection: &mut Connection| {
        let found = store::find_valid(connection, &wanted)?;
        if found.as_ref().is_some_and(|found| !found.is_recorded) {
            store::record_use(connection, id)?;
        }
        Ok::<_, Error>(found)
    };
    let Some(found) = context.database.run(find).await? else {
        return Err(refuse(context, key, meta).await?);
    };
    record_event("exchanged");
    let lifetime = found.lifetime(TOKEN_LIFETIME);
    // A scope that a later version gave counts for nothing.
    let known = |name: &String| KeyScope::from_name(name);
    let scopes: Vec<_> = found.scopes.iter().filter_map(known).collect();
    let subject = signed_subject(context, &found.subject).of_key(key.id(), &scopes);
    let signer = &context.signer;
    let token = signer.sign_for(subject, lifetime);
    Ok(ExchangedKey {
        token: token.expose().to_owned(),
        seconds: signer.lifetime().min(lifetime).as_secs(),
    })
}

/// Records that a text is refused, and says why. A key that has ended, or is off, guesses nothing and does not count.
async fn refuse(context: &Context, key: ApiKey, meta: RequestMeta) -> Result<UserError, UserError> {
    record_event("refused");
    let network = ClientNetwork::of(&meta);
    let count = move |connection: &mut Connection| {
        let refused = store::find_refused(connection, &key)?;
        if !refused.is_off && !refused.has_ended {
            let key = AttemptKey::of_network(name_hash(FAILURES), &network);
            back_off::count(connection, key)?;
        }
        Ok::<_, UserError>(refused)
    };
    let refused = context.database.transaction(count).await?;
    record_refusal(context, refused.user, meta, "invalid-key").await?;
    Ok(if refused.is_off {
        UserError::KeyOff
    } else {
        UserError::InvalidKey
    })
}

pub(crate) fn can_mail(context: &Context) -> bool {
    Channel::configured(&context.settings.channels).contains(&Channel::Mail)
}

fn record_event(event: &'static str) {
    metrics::counter!("key_events_total", "event" => event).increment(1);
}
