//! What sessions and keys have in common in the database.

use audit_log::{Changes, Entry};
use database::{Connection, Error, prepared};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary};
use values::{CredentialId, Names as _, UserId};

use super::CredentialKind;
use crate::schema::credentials;

/// The table and its key, for the deletion of a user's rows.
pub(crate) const TABLE: (&str, &str) = ("credentials", "id");

/// Conditions of a credential that is valid, but for its user.
macro_rules! valid {
    ($kind:expr) => {
        credentials::table
            .filter(credentials::kind.eq($kind.name()))
            .filter(credentials::expires.gt(diesel::dsl::now))
            .filter(credentials::incarnation.eq(crate::schema::database_incarnation()))
    };
}
pub(crate) use valid;

pub(crate) fn end_keys(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    diesel::delete(credentials::table)
        .filter(credentials::user_id.eq(user))
        .filter(credentials::kind.eq(CredentialKind::Key.name()))
        .execute(connection)?;
    Ok(())
}

/// Ends a user's credential of a kind, with an audit entry. `false` if it had ended before, or is another user's.
pub(crate) fn end(
    connection: &mut Connection,
    user: UserId,
    kind: CredentialKind,
    id: CredentialId,
    entry: Entry,
) -> Result<bool, Error> {
    let end = diesel::delete(credentials::table.find(id))
        .filter(credentials::kind.eq(kind.name()))
        .filter(credentials::user_id.eq(user))
        .returning(credentials::id);
    let ended = entry
        .record_with(end)
        .get_result::<CredentialId>(connection);
    Ok(ended.optional()?.is_some())
}

/// Forgets for at most `batch` keys that a user made them for others. It does not wait for keys that other transactions hold,
/// which lock them in any order.
pub(crate) fn forget_maker_batch(
    connection: &mut Connection,
    user: UserId,
    batch: i64,
) -> Result<Changes, Error> {
    let forget = prepared(
        "UPDATE credentials SET created_by = NULL WHERE id = ANY(ARRAY(
            SELECT id FROM credentials WHERE created_by = $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
    );
    let forget = forget.bind::<Binary, _>(user).bind::<BigInt, _>(batch);
    let rows = forget.execute(connection)?;
    let left = credentials::table.filter(credentials::created_by.eq(user));
    Ok(Changes {
        rows: i64::try_from(rows).unwrap_or(i64::MAX),
        more: diesel::select(exists(left)).get_result(connection)?,
    })
}

#[cfg(test)]
mod tests {
    use audit_log::Changes;
    use diesel::Connection as _;
    use diesel::connection::SimpleConnection as _;
    use testkit::TestDatabase;
    use values::{FromText as _, UserId};

    use super::forget_maker_batch;

    /// Three keys that another user made.
    const KEYS: &str = "
        SET search_path = users;
        INSERT INTO users (id, username, email, username_key, email_key, password_hash, plan, scope)
        VALUES (decode(repeat('00', 12), 'hex'), 'ada', 'ada', 'ada', 'ada', 'x', 'free', '{user}');
        INSERT INTO credentials
            (id, user_id, kind, fingerprint, incarnation, expires, client_network, program, name, scopes, created_by)
        SELECT substr(sha256(n::text::bytea), 1, 12), decode(repeat('00', 12), 'hex'), 'key', sha256(n::text::bytea),
            '', 'infinity', '', '', 'a', '{}', decode(repeat('01', 12), 'hex')
        FROM generate_series(1, 3) AS n";

    #[test]
    fn the_maker_of_a_key_that_another_transaction_holds_is_forgotten_later() {
        let database = TestDatabase::users(crate::MIGRATIONS);
        let url = database.users_url();
        let mut connection = database::Connection::establish(url.expose()).unwrap();
        connection.batch_execute("SET lock_timeout = '5s'").unwrap();
        let mut other = database.admin();
        other.batch_execute(KEYS).unwrap();
        let lock = "BEGIN; SELECT FROM credentials ORDER BY id LIMIT 1 FOR UPDATE";
        other.batch_execute(lock).unwrap();
        let maker = UserId::from_text(&"01".repeat(12)).unwrap();
        for (batch, rows, more) in [(1, 1, true), (9, 1, true), (9, 0, true)] {
            let changes = forget_maker_batch(&mut connection, maker, batch).unwrap();
            assert_eq!(changes, Changes { rows, more });
        }
        other.batch_execute("ROLLBACK").unwrap();
        let changes = forget_maker_batch(&mut connection, maker, 9).unwrap();
        let (rows, more) = (1, false);
        assert_eq!(changes, Changes { rows, more });
    }
}
