use audit_log::RequestMeta;
use auth::{ApiKey, ExchangedKey, KeyScope};
use database::{Connection, Error};
use values::Names as _;

use super::record_event;
use super::store;
use crate::accounts::signed_subject;
use crate::back_off::{self, AttemptKey, name_hash};
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::credentials::TOKEN_LIFETIME;
use crate::error::UserError;
use crate::sign_in::record_refusal;

/// What failed tries of keys are counted by, beside their network. It is no e-mail address.
const FAILURES: &str = "api-keys";

/// Exchanges a key for an access token, and records its use. A text that was never a key counts as a failed sign-in of the
/// network, which must wait after several in a row; but a key is never refused for what others have tried.
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
        record_event("refused");
        let network = ClientNetwork::of(&meta);
        let count = move |connection: &mut Connection| {
            // A key that has ended guesses nothing, and does not count.
            if !store::has_ended(connection, id)? {
                let key = AttemptKey::of_network(name_hash(FAILURES), &network);
                back_off::count(connection, key)?;
            }
            Ok::<_, UserError>(store::find_user(connection, id)?)
        };
        let user = context.database.transaction(count).await?;
        record_refusal(context, user, meta, "invalid-key").await?;
        return Err(UserError::InvalidKey);
    };
    record_event("exchanged");
    let lifetime = found.lifetime(TOKEN_LIFETIME);
    // A scope that a later version gave counts for nothing.
    let scopes = found.scopes.iter();
    let scopes: Vec<_> = scopes
        .filter_map(|name| KeyScope::from_name(name))
        .collect();
    let (signer, subject) = (&context.signer, signed_subject(context, &found.subject));
    let token = signer.sign_for_key(subject, key.id(), &scopes, lifetime)?;
    Ok(ExchangedKey {
        token: token.expose().to_owned(),
        seconds: signer.lifetime().min(lifetime).as_secs(),
    })
}
