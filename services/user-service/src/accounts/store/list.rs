//! Lists and counts of accounts. Every sort, filter and pattern has an index.

use diesel::dsl::count_star;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use diesel::sql_types::Text;
use listing::{Conditions, Direction, ListQuery, Sort, substring_pattern};
use serde_json::Value;

use crate::accounts::list::{UserFilter, UserSort};
use crate::accounts::user::User;
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

/// The rows of one page, and one more if there is another page.
pub(in crate::accounts) fn list(
    connection: &mut PgConnection,
    list: &ListQuery<UserSort, UserFilter>,
) -> Result<Vec<User>, DieselError> {
    let mut query = users::table.select(User::as_select()).into_boxed();
    for condition in conditions(&list.conditions) {
        query = query.filter(condition);
    }
    ordered(query, list.sort)
        .limit(list.paging.rows_to_fetch())
        .offset(list.paging.offset)
        .load(connection)
}

/// How many accounts there are.
pub(in crate::accounts) fn count(
    connection: &mut PgConnection,
    wanted: &Conditions<UserFilter>,
) -> Result<i64, DieselError> {
    let mut query = users::table.select(count_star()).into_boxed();
    for condition in conditions(wanted) {
        query = query.filter(condition);
    }
    query.first(connection)
}

fn conditions(wanted: &Conditions<UserFilter>) -> Vec<Condition> {
    let filters = wanted
        .filters
        .iter()
        .map(|(field, value)| condition(*field, value));
    let pattern = wanted.pattern.as_ref().map(|pattern| -> Condition {
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
        // The first half is what the index knows.
        UserFilter::Plan => Box::new(
            lower(users::plan)
                .eq(lower(value.to_owned()))
                .and(users::plan.eq(value.to_owned()))
                .nullable(),
        ),
        // Holds for the string itself and for an array with it.
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
