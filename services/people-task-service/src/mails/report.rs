use database::{Connection, Database, Error};
use values::MailId;

use crate::mails::requests::Report;
use crate::mails::store;

/// Records what became of a mail that was claimed: it is deleted, or becomes due again.
///
/// # Errors
/// Only the database can fail.
pub(super) async fn record(database: &Database, id: MailId, report: Report) -> Result<(), Error> {
    let record = move |connection: &mut Connection| match report.pause {
        Some(pause) => store::postpone(connection, id, report.attempt, pause),
        None => store::delete(connection, id),
    };
    database.run(record).await
}
