use database::{Connection, Error, composed};
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text};
use diesel::{Queryable, RunQueryDsl as _};
use listing::{Binds, substring_pattern};

use crate::accounts::list_query::{UserConditions, UserFilter, UserSort};

#[derive(Debug, Default)]
pub(super) struct ListConditions {
    pub(super) binds: Binds,
    /// Those that segments do not decide.
    pub(super) of_users: Vec<String>,
    /// Those that segments decide, on a row of `user_segments` or `users`.
    pub(super) of_segments: Vec<String>,
    /// Whether at most one user matches, because usernames and addresses are unique.
    pub(super) is_unique: bool,
}

impl ListConditions {
    pub(super) fn new(conditions: &UserConditions) -> Self {
        let mut sql = Self::default();
        for (field, value) in &conditions.filters {
            let mut text = || sql.binds.text(value);
            let condition = match field {
                UserFilter::Username => {
                    sql.add_unique("username_key", value);
                    continue;
                }
                UserFilter::Email => {
                    sql.add_unique("email_key", value);
                    continue;
                }
                UserFilter::Scope => format!("scope @> ARRAY[{}]", text()),
                UserFilter::Plan => format!("plan = {}", text()),
                // Matches the string itself and arrays that contain it.
                UserFilter::Vendor => format!("vendor @> to_jsonb({})", text()),
                UserFilter::IsActive => format!("is_active = {}", value == "true"),
            };
            sql.of_segments.push(condition);
        }
        if let Some(pattern) = &conditions.pattern {
            let pattern = substring_pattern(&pattern.to_lowercase());
            let pattern = sql.binds.text(pattern);
            sql.of_users.push(format!("username_key LIKE {pattern}"));
        }
        sql
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of_segments.is_empty() && self.of_users.is_empty()
    }

    fn add_unique(&mut self, column: &str, value: &str) {
        let key = self.binds.text(value.trim().to_lowercase());
        self.of_users.push(format!("{column} = {key}"));
        self.is_unique = true;
    }
}

/// Segments of users: those with the same `is_active`, `plan`, `scope` and `vendor`.
#[derive(Debug, Queryable)]
pub(super) struct Segments {
    ids: Vec<i64>,
    pub(super) users: i64,
    /// The plan as lists are sorted by it, if all have the same.
    plan_key: Option<String>,
    /// `is_active`, if all have the same.
    is_active: Option<bool>,
}

impl Segments {
    pub(super) fn load(
        connection: &mut Connection,
        conditions: &ListConditions,
    ) -> Result<Self, Error> {
        let statement = format!(
            "SELECT coalesce(array_agg(id), '{{}}') AS ids, coalesce(sum(users), 0)::bigint AS users, \
                 CASE WHEN count(DISTINCT lower(plan)) = 1 THEN min(lower(plan)) END AS plan_key, \
                 CASE WHEN count(DISTINCT is_active) = 1 THEN bool_and(is_active) END AS is_active \
             FROM user_segments WHERE {}",
            and(&conditions.of_segments)
        );
        Ok(composed(statement, conditions.binds.clone(), false)
            .returning::<(Array<BigInt>, BigInt, Nullable<Text>, Nullable<Bool>)>()
            .get_result(connection)?)
    }

    /// The condition that a row of a user belongs to one of them.
    pub(super) fn condition(&self) -> String {
        let ids: Vec<_> = self.ids.iter().map(i64::to_string).collect();
        format!("(segment = ANY ('{{{}}}'::bigint[]))", ids.join(","))
    }

    /// The condition for the sort key of all their users, if it is the same. Reading an index begins with the first of
    /// them.
    pub(super) fn start_of(&self, sort: UserSort, binds: &mut Binds) -> Option<String> {
        match sort {
            UserSort::Plan => {
                let plan = binds.text(self.plan_key.as_ref()?);
                Some(format!("lower(plan) = {plan}"))
            }
            UserSort::IsActive => Some(format!("is_active = {}", self.is_active?)),
            _ => None,
        }
    }
}

pub(super) fn and(conditions: &[String]) -> String {
    if conditions.is_empty() {
        return "true".to_owned();
    }
    conditions.join(" AND ")
}
