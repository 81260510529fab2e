use anyhow::Context as _;
use app_config::Csv;
use audit_log::{Actor, Entry, RequestMeta};
use auth::{ADMIN_SCOPE, Caller};
use database::Connection;
use messaging::Message;
use serde_json::Value;
use values::{Secret, UserId};

use super::requests::{AdminFields, CreateUserRequest, NewUserNames};
use super::store::{self, NewUser, TokenSubject, User};
use super::token::{revoke_earlier_tokens, sign_token};
use crate::audit::{AuditAction, RequestActor};
use crate::back_off;
use crate::client_network::ClientNetwork;
use crate::code_limits::count_mail;
use crate::context::Context;
use crate::error::UserError;
use crate::notifications::CodeRequest;
use crate::password_rules::NewPassword;
use crate::settings::{CodeRequestSettings, FirstAdmin};

/// The scope of every user who signs up.
const USER_SCOPE: &str = "user";

/// Creates an account and signs the user in, unless it is a service account or an API key creates it. `caller` is an administrator, or holds one of the scopes of
/// `API_USER_CREATE_SCOPE`. The token of an inactive user is revoked from the start.
#[tracing::instrument(skip_all)]
pub(super) async fn create(
    context: &Context,
    request: CreateUserRequest,
    caller: Option<Caller>,
    meta: RequestMeta,
) -> Result<(User, Option<Secret>), UserError> {
    let by_key = caller.as_ref().is_some_and(|caller| caller.key().is_some());
    let new_scopes = request.by_admin.scope.as_ref();
    if by_key && new_scopes.is_some_and(|scopes| scopes.0.iter().any(|one| one == ADMIN_SCOPE)) {
        return Err(UserError::KeyNotAccepted);
    }
    let client = ClientNetwork::of(&meta);
    let password_hash = context.hasher.hash(&client, request.password);
    let password_hash = password_hash.await?;
    let is_service = request.by_admin.service == Some(true);
    let confirmation = CodeRequest::for_new_address(context).filter(|_| !is_service);
    let limits = context.settings.code_requests;
    let fields = request.by_admin.names();
    let (names, chosen) = (request.names, request.by_admin);
    let new = new_user(context, names, chosen, password_hash);
    // Whom an administrator trusts creates accounts for others.
    let own_client = (!is_trusted(context, caller.as_ref())).then_some(client);
    let entry = match caller {
        Some(caller) => RequestActor::new(&caller, meta).entry(AuditAction::UserCreated, new.id),
        None => AuditAction::UserCreated.entry(Actor::Anonymous, new.id, meta),
    };
    let entry = if fields.is_empty() {
        entry
    } else {
        entry.fields(&fields)
    };
    let insert = move |connection: &mut Connection| {
        let own_client = own_client.as_ref();
        insert(connection, &new, own_client, limits, confirmation, entry)
    };
    let (subject, user, messages) = context.database.transaction(insert).await?;
    context.notifications.send(messages);
    let signs_in = !is_service && !by_key;
    let token = signs_in.then(|| sign_token(context, &subject));
    if !user.is_active {
        revoke_earlier_tokens(context, &user);
    }
    metrics::counter!("sign_ups_total").increment(1);
    Ok((user, token))
}

/// Whether an administrator gave the caller the right to create accounts. By the scope that every user has, a stranger has it who
/// has signed up once.
fn is_trusted(context: &Context, caller: Option<&Caller>) -> bool {
    let scopes = context.settings.sign_up.scopes.iter();
    let mut given = scopes
        .flat_map(|Csv(scopes)| scopes)
        .filter(|scope| *scope != USER_SCOPE);
    caller.is_some_and(|caller| caller.is_admin() || given.any(|scope| caller.has_scope(scope)))
}

/// Inserts an account. Returns the subject of its token and the account, whose epoch is higher if it is inactive. A stranger's
/// sign-up counts as a request for a code; over the limit there is none, and the user can ask for one later.
fn insert(
    connection: &mut Connection,
    new: &NewUser,
    own_client: Option<&ClientNetwork>,
    limits: CodeRequestSettings,
    mut confirmation: Option<CodeRequest>,
    entry: Entry,
) -> Result<(TokenSubject, User, Vec<Message>), UserError> {
    let group = own_client.map(|client| store::group_of_network(connection, client));
    let group = group.transpose()?;
    let subject = store::insert(connection, new, group.as_deref(), entry)?;
    if let Some(client) = own_client {
        back_off::record_network(connection, new.id, client)?;
        if confirmation.is_some() && !count_mail(connection, limits, client)? {
            confirmation = None;
        }
    }
    let queued = confirmation.map(|code| code.queue(connection, Some(new.id), None));
    let (_, messages) = queued.transpose()?.unwrap_or_default();
    let user = if new.is_active {
        subject.user.clone()
    } else {
        store::raise_epoch(connection, new.id)?
    };
    Ok((subject, user, messages))
}

fn new_user(
    context: &Context,
    names: NewUserNames,
    chosen: AdminFields,
    password_hash: String,
) -> NewUser {
    let defaults = &context.settings.sign_up;
    NewUser {
        id: UserId::generate(),
        username: names.username,
        email: names.email,
        password_hash,
        is_active: chosen.is_active.unwrap_or(true),
        plan: chosen
            .plan
            .map_or_else(|| defaults.plan.clone(), |plan| plan.0),
        scope: chosen
            .scope
            .map_or_else(|| vec![USER_SCOPE.to_owned()], |scope| scope.0),
        vendor: match chosen.vendor {
            Some(vendor) => vendor.map(|vendor| vendor.0),
            None => defaults.vendor.clone().map(Value::String),
        },
        metadata: chosen.metadata.unwrap_or_default().0,
        // An administrator vouches for the address of a service account, which gets no codes.
        email_confirmed: chosen.service == Some(true),
        is_service: chosen.service == Some(true),
    }
}

/// Creates the first administrator if there is none and one is wanted. Never overwrites anything.
pub(crate) async fn create_first_admin(context: &Context, admin: FirstAdmin) -> anyhow::Result<()> {
    let Some((username, password)) = admin.username.zip(admin.password) else {
        return Ok(());
    };
    let (database, hasher) = (&context.database, &context.hasher);
    if database.run(store::has_admin).await? {
        return Ok(());
    }
    let password = NewPassword::parse(&password, context.rules).context("ADMIN_PASSWORD")?;
    let hash = hasher.hash(&ClientNetwork::internal(), password).await?;
    let names = NewUserNames {
        email: username.clone(),
        username,
    };
    let mut new = new_user(context, names, AdminFields::default(), hash);
    new.scope.push(ADMIN_SCOPE.to_owned());
    new.email_confirmed = true;
    let entry = AuditAction::FirstAdminMade.entry(Actor::Service, new.id, RequestMeta::internal());
    let insert = move |connection: &mut Connection| {
        store::lock_first_admin(connection)?;
        if store::has_admin(connection)? {
            return Ok(false);
        }
        store::insert(connection, &new, None, entry)?;
        Ok(true)
    };
    match database.transaction(insert).await {
        Ok(true) => tracing::info!("created the first administrator"),
        Ok(false) => {}
        Err(UserError::UsernameTaken | UserError::EmailTaken) => {
            tracing::warn!(
                "there is no administrator, and ADMIN_USERNAME belongs to a user without the scope `admin`: choose another ADMIN_USERNAME"
            );
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
