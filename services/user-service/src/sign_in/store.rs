//! Sign-in in the database: names, the time of the last sign-in, and how many refusals were logged.

use audit_log::Entry;
use database::{Connection, Error};
use diesel::dsl::{now, sql};
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text, Timestamptz};
use values::UserId;

use super::requests::SignInName;
use crate::accounts::TokenSubject;
use crate::client_network::ClientNetwork;
use crate::schema::{last_sign_ins, sign_in_names, sign_in_refusals, users};

/// The user with the given name, before the password is checked.
#[derive(Debug, Clone, Queryable)]
pub(super) struct Candidate {
    pub(super) id: UserId,
    pub(super) password_hash: String,
    pub(super) is_active: bool,
    pub(super) epoch: i64,
}

/// The user with a name.
pub(super) fn find_candidate(
    connection: &mut Connection,
    name: &SignInName,
) -> Result<Option<Candidate>, Error> {
    Ok(sign_in_names::table
        .inner_join(users::table)
        .filter(sign_in_names::name.eq(name.as_str()))
        .select((
            users::id,
            users::password_hash,
            users::is_active,
            users::epoch,
        ))
        .first(connection)
        .optional()?)
}

#[derive(QueryableByName)]
struct HighestCost {
    #[diesel(sql_type = Nullable<Text>)]
    cost: Option<String>,
}

/// The DSL has no `substring`. The index `users_by_password_cost` holds this expression.
const HIGHEST_COST: &str = "SELECT max(substring(password_hash FROM 5 FOR 2)) AS cost FROM users";

/// The highest bcrypt cost of all stored hashes.
pub(super) fn find_highest_cost(connection: &mut Connection) -> Result<Option<u32>, Error> {
    let highest: HighestCost = diesel::sql_query(HIGHEST_COST).get_result(connection)?;
    Ok(highest.cost.and_then(|cost| cost.parse().ok()))
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
///
/// The user stays locked until the transaction ends: a concurrent change of the account either comes first, or waits.
/// Without a new hash the row is not written.
pub(super) fn record_sign_in(
    connection: &mut Connection,
    candidate: &Candidate,
    new_hash: Option<&str>,
    entry: Entry,
) -> Result<Option<TokenSubject>, Error> {
    let unchanged = users::table
        .find(candidate.id)
        .filter(users::epoch.eq(candidate.epoch))
        .filter(users::is_active);
    let subject: Option<TokenSubject> = match new_hash {
        Some(hash) => diesel::update(unchanged)
            .set(users::password_hash.eq(hash))
            .returning(TokenSubject::as_returning())
            .get_result(connection)
            .optional()?,
        None => unchanged
            .select(TokenSubject::as_select())
            .for_no_key_update()
            .first(connection)
            .optional()?,
    };
    if subject.is_some() {
        let sign_in = diesel::update(last_sign_ins::table.find(candidate.id))
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

    use super::{HIGHEST_COST, find_highest_cost};

    #[derive(QueryableByName)]
    struct Line {
        #[diesel(sql_type = Text)]
        #[diesel(column_name = "QUERY PLAN")]
        text: String,
    }

    #[test]
    fn the_highest_cost_of_all_hashes_is_found_by_an_index() {
        let database = TestDatabase::users(crate::MIGRATIONS);
        let mut connection = database.admin();
        connection
            .batch_execute("SET search_path = users; SET enable_seqscan = off")
            .unwrap();
        assert_eq!(find_highest_cost(&mut connection).unwrap(), None);
        connection
            .batch_execute(
                "INSERT INTO users (id, username, username_key, email, email_key, password_hash, plan, scope)
                SELECT substring(sha256(cost::bytea) FOR 12), cost, cost, cost, cost, '$2b$' || cost || '$x',
                    'free', '{user}'
                FROM unnest(ARRAY['04', '13', '12']) AS cost",
            )
            .unwrap();
        assert_eq!(find_highest_cost(&mut connection).unwrap(), Some(13));
        let plan: Vec<Line> = diesel::sql_query(format!("EXPLAIN {HIGHEST_COST}"))
            .load(&mut connection)
            .unwrap();
        assert!(
            plan.iter()
                .any(|line| line.text.contains("users_by_password_cost"))
        );
    }
}
