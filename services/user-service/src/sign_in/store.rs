//! Sign-in in the database: names, the time of the last sign-in, and how many refusals were logged.

use audit_log::Entry;
use database::{Connection, Error, prepared};
use diesel::dsl::{now, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Nullable, Text, Timestamptz};
use values::UserId;

use super::requests::SignInName;
use crate::accounts::{self, TokenSubject};
use crate::client_network::ClientNetwork;
use crate::schema::{last_sign_ins, sign_in_refusals, users};

/// The user with the given name, before the password is checked.
#[derive(Debug, Clone, Queryable)]
pub(super) struct Candidate {
    pub(super) id: UserId,
    pub(super) password_hash: String,
    pub(super) is_active: bool,
    pub(super) epoch: i64,
}

#[derive(Queryable)]
pub(super) struct Found {
    pub(super) candidate: Option<Candidate>,
    highest_cost: Option<String>,
}

impl Found {
    /// The highest bcrypt cost of all stored hashes.
    pub(super) fn highest_cost(&self) -> Option<u32> {
        self.highest_cost.as_ref()?.parse().ok()
    }
}

/// One row, with the person of a name if there is one: a service account has no sign-in, even if a process of an earlier version
/// has given it a password. The DSL has neither `substring`, which the index `users_by_password_cost` holds, nor a join of a value.
const FIND_CANDIDATE: &str = "
SELECT users.id, password_hash, is_active, epoch,
    (SELECT max(substring(password_hash FROM 5 FOR 2)) FROM users) AS highest_cost
FROM (VALUES ($1)) AS given (name)
    LEFT JOIN sign_in_names ON sign_in_names.name = given.name
    LEFT JOIN users ON users.id = user_id AND NOT is_service";

/// Finds the user with a name. It does the same for a name that no user has.
pub(super) fn find_candidate(
    connection: &mut Connection,
    name: &SignInName,
) -> Result<Found, Error> {
    Ok(prepared(FIND_CANDIDATE)
        .bind::<Text, _>(&name.0)
        .returning::<(Nullable<(Binary, Text, Bool, BigInt)>, Nullable<Text>)>()
        .get_result(connection)?)
}

/// Counts a refused sign-in, and returns the number of refusals of its client network within the hour: those of
/// users, or those of unknown names.
pub(super) fn count_refusal(
    connection: &mut Connection,
    client: &ClientNetwork,
    known_user: bool,
) -> Result<i32, Error> {
    let columns = (
        sign_in_refusals::client_network,
        sign_in_refusals::known_user,
        sign_in_refusals::hour,
    );
    Ok(diesel::insert_into(sign_in_refusals::table)
        .values((
            sign_in_refusals::client_network.eq(client.as_str()),
            sign_in_refusals::known_user.eq(known_user),
            // The DSL has no `date_trunc`.
            sign_in_refusals::hour.eq(sql::<Timestamptz>("date_trunc('hour', now())")),
            sign_in_refusals::refusals.eq(1),
        ))
        .on_conflict(columns)
        .do_update()
        .set(sign_in_refusals::refusals.eq(sign_in_refusals::refusals + 1))
        .returning(sign_in_refusals::refusals)
        .get_result(connection)?)
}

/// Records a sign-in and its new hash, unless the account was changed since its password was read.
/// The user stays locked until the transaction ends: a concurrent change of the account either comes first, or waits.
/// Without a new hash the row is not written.
pub(super) fn record_sign_in(
    connection: &mut Connection,
    candidate: &Candidate,
    new_hash: Option<&str>,
    entry: Entry,
) -> Result<Option<TokenSubject>, Error> {
    let (id, epoch) = (candidate.id, candidate.epoch);
    let subject = accounts::store::lock_unchanged(connection, id, epoch)?;
    if subject.is_some() {
        if let Some(hash) = new_hash {
            diesel::update(users::table.find(id))
                .set(users::password_hash.eq(hash))
                .execute(connection)?;
        }
        let sign_in = diesel::update(last_sign_ins::table.find(id))
            .set(last_sign_ins::at.eq(now.into_sql::<Timestamptz>().nullable()))
            .returning(last_sign_ins::user_id);
        entry
            .record_with(sign_in)
            .get_result::<UserId>(connection)?;
    }
    Ok(subject)
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection as _;
    use diesel::prelude::*;
    use diesel::sql_types::Text;
    use testkit::TestDatabase;

    use super::{FIND_CANDIDATE, find_candidate};
    use crate::sign_in::requests::SignInName;

    #[derive(QueryableByName)]
    struct Line {
        #[diesel(sql_type = Text)]
        #[diesel(column_name = "QUERY PLAN")]
        text: String,
    }

    #[test]
    fn the_highest_cost_of_all_hashes_is_found_by_an_index_whoever_signs_in() {
        let database = TestDatabase::users(crate::MIGRATIONS);
        let mut connection = database.admin();
        connection
            .batch_execute("SET search_path = users; SET enable_seqscan = off")
            .unwrap();
        let find = |connection: &mut _, name: &str| {
            let found = find_candidate(connection, &SignInName::new(name)).unwrap();
            let highest_cost = found.highest_cost();
            let hash = found.candidate.map(|candidate| candidate.password_hash);
            (hash, highest_cost)
        };
        assert_eq!(find(&mut connection, "04"), (None, None));
        connection
            .batch_execute(
                "INSERT INTO users (id, username, username_key, email, email_key, password_hash, plan, scope)
                SELECT substring(sha256(cost::bytea) FOR 12), cost, cost, cost, cost, '$2b$' || cost || '$x',
                    'free', '{user}'
                FROM unnest(ARRAY['04', '13', '12']) AS cost",
            )
            .unwrap();
        let known = Some("$2b$04$x".to_owned());
        assert_eq!(find(&mut connection, "04"), (known, Some(13)));
        assert_eq!(find(&mut connection, "unknown"), (None, Some(13)));
        let explained = FIND_CANDIDATE.replace("$1", "'04'");
        let plan: Vec<Line> = diesel::sql_query(format!("EXPLAIN {explained}"))
            .load(&mut connection)
            .unwrap();
        assert!(
            plan.iter()
                .any(|line| line.text.contains("users_by_password_cost"))
        );
    }
}
