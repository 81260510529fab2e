//! Lists and counts of accounts. Every sort, filter and pattern has an index.

use database::{Connection, Error, LimitedRows, RowLimit, load_limited};
use diesel::dsl::count_star;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::Text;
use listing::{Direction, Sort, substring_pattern};
use serde_json::Value;

use super::user::User;
use crate::accounts::list_query::{UserConditions, UserFilter, UserListQuery, UserSort};
use crate::schema::users;

#[diesel::declare_sql_function]
extern "SQL" {
    fn lower(text: Text) -> Text;
}

type Condition = Box<
    dyn BoxableExpression<
            users::table,
            Pg,
            SqlType = diesel::sql_types::Nullable<diesel::sql_types::Bool>,
        >,
>;

/// The size of a user in bytes, approximately.
const SIZE: &str = "octet_length(username) + octet_length(email) + octet_length(plan) \
                    + octet_length(scope::text) + coalesce(octet_length(vendor::text), 0) \
                    + octet_length(allowed_private_components::text) + octet_length(metadata::text) + 512";

/// The rows of one page.
pub(crate) fn list(
    connection: &mut Connection,
    list: &UserListQuery,
    limit: RowLimit,
) -> Result<LimitedRows<User>, Error> {
    let mut query = users::table.select(User::as_select()).into_boxed();
    for condition in sql_conditions(&list.conditions) {
        query = query.filter(condition);
    }
    let query = ordered(query, list.sort)
        .limit(list.paging.rows_to_fetch())
        .offset(list.paging.offset);
    Ok(load_limited(connection, query, SIZE, limit)?)
}

/// The number of accounts that match.
pub(crate) fn count(
    connection: &mut Connection,
    conditions: &UserConditions,
) -> Result<i64, Error> {
    let mut query = users::table.select(count_star()).into_boxed();
    for condition in sql_conditions(conditions) {
        query = query.filter(condition);
    }
    Ok(query.first(connection)?)
}

fn sql_conditions(conditions: &UserConditions) -> Vec<Condition> {
    let filters = conditions
        .filters
        .iter()
        .map(|(field, value)| condition(*field, value));
    let pattern = conditions.pattern.as_ref().map(|pattern| -> Condition {
        let pattern = substring_pattern(&pattern.to_lowercase());
        Box::new(users::username_key.like(pattern).nullable())
    });
    filters.chain(pattern).collect()
}

fn condition(field: UserFilter, value: &str) -> Condition {
    let key = value.trim().to_lowercase();
    match field {
        UserFilter::Username => Box::new(users::username_key.eq(key).nullable()),
        UserFilter::Email => Box::new(users::email_key.eq(key).nullable()),
        UserFilter::Scope => Box::new(users::scope.contains(vec![value.to_owned()]).nullable()),
        // The index covers the first half.
        UserFilter::Plan => Box::new(
            lower(users::plan)
                .eq(lower(value.to_owned()))
                .and(users::plan.eq(value.to_owned()))
                .nullable(),
        ),
        // Matches the string itself and arrays that contain it.
        UserFilter::Vendor => Box::new(users::vendor.contains(Value::String(value.to_owned()))),
        UserFilter::IsActive => Box::new(users::is_active.eq(value == "true").nullable()),
    }
}

type Query<'a> = users::BoxedQuery<
    'a,
    Pg,
    diesel::helper_types::SqlTypeOf<diesel::helper_types::AsSelect<User, Pg>>,
>;

/// Ties are broken by id in the same direction. Only `lastSignIn` can be null, which comes last.
fn ordered(query: Query<'_>, sort: Sort<UserSort>) -> Query<'_> {
    use Direction::{Ascending, Descending};
    let query = match (sort.by, sort.direction) {
        (UserSort::Created, Ascending) => query.order(users::created.asc()),
        (UserSort::Created, Descending) => query.order(users::created.desc()),
        (UserSort::Mtime, Ascending) => query.order(users::mtime.asc()),
        (UserSort::Mtime, Descending) => query.order(users::mtime.desc()),
        (UserSort::Username, Ascending) => query.order(users::username_key.asc()),
        (UserSort::Username, Descending) => query.order(users::username_key.desc()),
        (UserSort::Email, Ascending) => query.order(users::email_key.asc()),
        (UserSort::Email, Descending) => query.order(users::email_key.desc()),
        (UserSort::Plan, Ascending) => query.order(lower(users::plan).asc()),
        (UserSort::Plan, Descending) => query.order(lower(users::plan).desc()),
        (UserSort::IsActive, Ascending) => query.order(users::is_active.asc()),
        (UserSort::IsActive, Descending) => query.order(users::is_active.desc()),
        (UserSort::LastSignIn, Ascending) => query.order(users::last_sign_in.asc()),
        (UserSort::LastSignIn, Descending) => query.order(users::last_sign_in.desc().nulls_last()),
    };
    match sort.direction {
        Ascending => query.then_order_by(users::id.asc()),
        Descending => query.then_order_by(users::id.desc()),
    }
}
