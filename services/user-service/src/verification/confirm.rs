use audit_log::RequestMeta;
use database::Connection;
use values::Secret;

use super::error::VerificationError;
use crate::accounts;
use crate::context::Context;

/// Confirms an e-mail address by the code that was sent to it.
#[tracing::instrument(skip_all)]
pub(super) async fn confirm(
    context: &Context,
    code: &Secret,
    meta: RequestMeta,
) -> Result<(), VerificationError> {
    let code = code.fingerprint();
    let verify = move |connection: &mut Connection| {
        accounts::store::verify_email(connection, code, meta)?.ok_or(VerificationError::InvalidCode)
    };
    context.database.transaction(verify).await.map(drop)
}
