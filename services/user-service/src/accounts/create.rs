use audit_log::{Actor, RequestMeta};
use auth::Caller;
use database::Connection;
use values::{Secret, UserId};

use super::confirmation::Confirmation;
use super::error::AccountError;
use super::requests::CreateUserRequest;
use super::store::{self, NewUser, User};
use super::token::sign_token;
use crate::audit::{AuditAction, RequestActor};
use crate::back_off;
use crate::client_network::ClientNetwork;
use crate::context::Context;

/// The scope of every user who signs up.
pub(super) const USER_SCOPE: &str = "user";

/// Creates an account and signs the user in. `caller` is set when sign-up requires a token.
#[tracing::instrument(skip_all)]
pub(super) async fn create(
    context: &Context,
    client: &ClientNetwork,
    request: CreateUserRequest,
    caller: Option<Caller>,
    meta: RequestMeta,
) -> Result<(User, Secret), AccountError> {
    let password_hash = context.hasher.hash(client, request.password).await?;
    let confirmation = Confirmation::required(context);
    let new = NewUser {
        id: UserId::generate(),
        username: request.names.username,
        email: request.names.email,
        password_hash,
        plan: context.sign_up.plan.clone(),
        scope: vec![USER_SCOPE.to_owned()],
        vendor: context.sign_up.vendor.clone(),
        metadata: request.metadata.0,
        email_verified: confirmation.is_none(),
    };
    // Someone else's token creates an account for another person.
    let own_client = caller.is_none().then(|| client.clone());
    let entry = match caller {
        Some(caller) => RequestActor::new(&caller, meta).entry(AuditAction::UserCreated, new.id),
        None => AuditAction::UserCreated.entry(Actor::Anonymous, new.id, meta),
    };
    let insert = move |connection: &mut Connection| {
        let subject = store::insert(connection, &new, entry)?;
        let id = subject.user.id;
        if let Some(client) = own_client {
            back_off::record_network(connection, id, &client)?;
        }
        let queued = confirmation.map(|confirmation| confirmation.queue(connection, id));
        Ok::<_, AccountError>((subject, queued.transpose()?.unwrap_or_default()))
    };
    let (subject, messages) = context.database.transaction(insert).await?;
    context.notifications.send(messages);
    let token = sign_token(context, &subject)?;
    metrics::counter!("sign_ups_total").increment(1);
    Ok((subject.user, token))
}
