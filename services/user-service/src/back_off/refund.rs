use database::{Connection, Database, Error};

use super::attempt::CountedAttempt;
use super::store;

/// Passes on the result of checking the password of an attempt. With an error, which is no result, the attempt
/// does not count.
pub(crate) async fn refund_on_error<T, E: From<Error>>(
    database: &Database,
    attempt: &CountedAttempt,
    result: Result<T, E>,
) -> Result<T, E> {
    if result.is_err() {
        let attempt = attempt.clone();
        let refund = move |connection: &mut Connection| store::refund(connection, &attempt);
        database.transaction(refund).await?;
    }
    result
}
