use database::{Connection, Error};
use diesel::prelude::*;
use values::UserId;

use crate::schema;

/// Keeps tokens of this incarnation from adding rows for a user. It waits for transactions that are adding some.
pub(crate) fn record_erased_user(
    connection: &mut Connection,
    user: UserId,
    incarnation: &str,
) -> Result<(), Error> {
    let record = schema::record_erased_user(user, incarnation);
    diesel::select(record).execute(connection)?;
    Ok(())
}
