//! Accounts: sign-up, what a user sees of itself, and administration.
//!
//! The database decides whether a name is free and which administrator is the last one; the code
//! translates. Whatever makes earlier tokens wrong raises the epoch in the same transaction.

mod answers;
mod bodies;
mod confirmation;
mod creator;
mod error;
mod fields;
mod first_admin;
mod list;
mod parameters;
pub(crate) mod routes;
pub(crate) mod store;
mod token;
mod update;
mod user;

use audit_log::{Actor, Entry, RequestMeta};
use auth::{ADMIN_SCOPE, Caller};
use diesel::PgConnection;
use listing::{Conditions, ListQuery, Page};
use messaging::Message;
use values::{EmailAddress, Secret, UserId};

pub(crate) use answers::{Empty, SignedIn};
use confirmation::Confirmation;
pub(crate) use error::AccountError;
pub(crate) use first_admin::create_first_admin;
pub(crate) use token::{revoke_earlier_tokens, sign_token};
pub(crate) use user::User;

use crate::audit::{Action, Author};
use crate::context::Context;
use crate::hashing::{NewPassword, Password};
use fields::Metadata;
use list::{UserFilter, UserSort};
use update::{UserChange, UserUpdate};
use user::NewUser;

/// The scope of every user who signs up.
const USER_SCOPE: &str = "user";

/// What somebody who signs up gives.
#[derive(Debug)]
struct SignUp {
    username: EmailAddress,
    email: EmailAddress,
    password: NewPassword,
    metadata: Metadata,
}

/// Makes an account and signs it in. The creator is whoever had to show a token for it.
#[tracing::instrument(skip_all)]
async fn sign_up(
    context: &Context,
    wanted: SignUp,
    creator: Option<Caller>,
    origin: RequestMeta,
) -> Result<(User, Secret), AccountError> {
    let password_hash = context.hasher.hash(wanted.password).await?;
    let confirmation = Confirmation::required(context);
    let new = NewUser {
        id: UserId::generate(),
        username: wanted.username,
        email: wanted.email,
        password_hash,
        plan: context.sign_up.plan.clone(),
        scope: vec![USER_SCOPE.to_owned()],
        vendor: context.sign_up.vendor.clone(),
        metadata: wanted.metadata.0,
        email_verified: confirmation.is_none(),
    };
    let entry = match creator {
        Some(caller) => Author::new(&caller, origin).entry(Action::UserCreated, new.id),
        None => Action::UserCreated.entry(Actor::Anonymous, new.id, origin),
    };
    let insert = move |connection: &mut PgConnection| {
        let user = store::insert(connection, &new, entry)?;
        let asked = confirmation.map(|how| how.ask(connection, user.id));
        Ok::<_, AccountError>((user, asked.transpose()?.unwrap_or_default()))
    };
    let (user, messages) = context.database.transaction(insert).await?;
    context.notifications.send(messages);
    let token = sign_token(context, &user)?;
    metrics::counter!("sign_ups_total").increment(1);
    Ok((user, token))
}

/// The user of a token.
async fn current(context: &Context, id: UserId) -> Result<User, AccountError> {
    get(context, id).await.map_err(|error| match error {
        AccountError::NotFound => AccountError::CallerGone,
        other => other,
    })
}

async fn get(context: &Context, id: UserId) -> Result<User, AccountError> {
    let find = move |connection: &mut PgConnection| {
        store::find(connection, id)?.ok_or(AccountError::NotFound)
    };
    context.database.run(find).await
}

async fn list(
    context: &Context,
    query: ListQuery<UserSort, UserFilter>,
) -> Result<Page<User>, AccountError> {
    let paging = query.paging;
    let rows = context
        .database
        .run(move |connection| Ok::<_, AccountError>(store::list(connection, &query)?))
        .await?;
    Ok(paging.page(rows))
}

async fn count(context: &Context, conditions: Conditions<UserFilter>) -> Result<i64, AccountError> {
    let count = move |connection: &mut PgConnection| Ok(store::count(connection, &conditions)?);
    context.database.run(count).await
}

/// Changes an account. Tokens are revoked if what they say or rest on becomes another value.
#[tracing::instrument(skip_all, fields(user.id = %id))]
async fn update(
    context: &Context,
    id: UserId,
    mut wanted: UserUpdate,
    author: Author,
) -> Result<User, AccountError> {
    let password_hash = match wanted.password.take() {
        Some(password) => hash_if_new(context, id, password).await?,
        None => None,
    };
    let confirmation = Confirmation::required(context);
    let entry = author.entry(Action::UserUpdated, id);
    let change = move |connection: &mut PgConnection| {
        change(connection, id, wanted, password_hash, confirmation, entry)
    };
    let (user, messages) = context.database.transaction(change).await?;
    context.notifications.send(messages);
    revoke_earlier_tokens(context, &user);
    Ok(user)
}

/// The hash of a password that is not the current one. The comparison is made without a transaction
/// around it: whoever changes the password meanwhile comes after us.
async fn hash_if_new(
    context: &Context,
    id: UserId,
    password: NewPassword,
) -> Result<Option<String>, AccountError> {
    let current = context
        .database
        .run(move |connection| store::password_hash(connection, id)?.ok_or(AccountError::NotFound))
        .await?;
    let same = Password::from(password.clone());
    if context.hasher.verify(same, Some(current)).await? {
        return Ok(None);
    }
    Ok(Some(context.hasher.hash(password).await?))
}

fn change(
    connection: &mut PgConnection,
    id: UserId,
    wanted: UserUpdate,
    password_hash: Option<String>,
    confirmation: Option<Confirmation>,
    entry: Entry,
) -> Result<(User, Vec<Message>), AccountError> {
    let admins = if wanted.may_demote() {
        store::lock_active_admins(connection)?
    } else {
        Vec::new()
    };
    let user = store::lock(connection, id)?.ok_or(AccountError::NotFound)?;
    if wanted.may_demote() {
        check_not_last_admin(&user, &admins)?;
    }
    let mut change = UserChange::of(&user, wanted, password_hash);
    if change.is_empty() {
        return Ok((user, Vec::new()));
    }
    let confirmation = confirmation.filter(|_| change.moves_email(&user));
    change.email_verified = confirmation.is_some().then_some(false);
    let entry = entry.fields(&change.fields());
    let user = store::update(connection, id, &change, entry)?;
    let asked = confirmation.map(|how| how.ask(connection, id));
    Ok((user, asked.transpose()?.unwrap_or_default()))
}

/// Refuses what would leave nobody to administer the system. `admins` are those that
/// [`store::lock_active_admins`] found.
pub(crate) fn check_not_last_admin(user: &User, admins: &[UserId]) -> Result<(), AccountError> {
    if user.is_active_admin() && admins.iter().all(|admin| *admin == user.id) {
        return Err(AccountError::LastAdmin);
    }
    Ok(())
}

/// The scopes of the administrator that is made at start.
fn admin_scopes() -> Vec<String> {
    vec![USER_SCOPE.to_owned(), ADMIN_SCOPE.to_owned()]
}
