use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::sql_types::Text;
use listing::substring_pattern;

use super::segment::Segment;
use crate::accounts::list_query::{UserConditions, UserFilter};

/// The values that are bound to a statement.
#[derive(Debug, Default)]
pub(super) struct Texts(Vec<String>);

impl Texts {
    /// Adds a value and returns its placeholder.
    fn add(&mut self, text: String) -> String {
        self.0.push(text);
        format!("${}", self.0.len())
    }
}

impl QueryFragment<Pg> for Texts {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for text in &self.0 {
            out.push_bind_param::<Text, _>(text)?;
        }
        Ok(())
    }
}

/// The conditions of a list as SQL.
#[derive(Debug, Default)]
pub(super) struct ListConditions {
    segments: Vec<String>,
    users: Vec<String>,
    selects_one: bool,
    pub(super) texts: Texts,
}

impl ListConditions {
    pub(super) fn new(conditions: &UserConditions) -> Self {
        let mut sql = Self::new_for_segments(conditions);
        for (field, value) in &conditions.filters {
            let column = match field {
                UserFilter::Username => "username_key",
                UserFilter::Email => "email_key",
                _ => continue,
            };
            let key = sql.texts.add(value.trim().to_lowercase());
            sql.users.push(format!("{column} = {key}"));
            sql.selects_one = true;
        }
        if let Some(pattern) = &conditions.pattern {
            let pattern = substring_pattern(&pattern.to_lowercase());
            let pattern = sql.texts.add(pattern);
            sql.users.push(format!("username_key LIKE {pattern}"));
        }
        sql
    }

    /// Only the conditions that segments decide.
    pub(super) fn new_for_segments(conditions: &UserConditions) -> Self {
        let mut sql = Self::default();
        for (field, value) in &conditions.filters {
            let mut text = || sql.texts.add(value.clone());
            let condition = match field {
                UserFilter::Username | UserFilter::Email => continue,
                UserFilter::Scope => format!("scope @> ARRAY[{}]", text()),
                UserFilter::Plan => format!("plan = {}", text()),
                // Matches the string itself and arrays that contain it.
                UserFilter::Vendor => format!("vendor @> to_jsonb({})", text()),
                UserFilter::IsActive => format!("is_active = {}", value == "true"),
            };
            sql.segments.push(condition);
        }
        sql
    }

    /// Whether at most one user matches, because usernames and addresses are unique.
    pub(super) fn selects_one(&self) -> bool {
        self.selects_one
    }

    /// Whether all users match.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.users.is_empty()
    }

    /// Whether there are conditions that segments decide.
    pub(super) fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Whether there are conditions that segments do not decide.
    pub(super) fn has_users(&self) -> bool {
        !self.users.is_empty()
    }

    /// The conditions for rows of `user_segments`.
    pub(super) fn of_segments(&self) -> String {
        and(&self.segments)
    }

    /// The conditions for rows of `users`, where `segments` are those that match. `IS TRUE` keeps Postgres from using the
    /// index on segments, so that it reads the index of the sort and compares each user with a hash table.
    pub(super) fn of_users(&self, segments: Option<&[Segment]>) -> String {
        self.with_segments(segments, " IS TRUE")
    }

    /// The same conditions, in the form for which the index on segments is used.
    pub(super) fn of_few_users(&self, segments: Option<&[Segment]>) -> String {
        self.with_segments(segments, "")
    }

    fn with_segments(&self, segments: Option<&[Segment]>, form: &str) -> String {
        let mut conditions = self.users.clone();
        conditions.extend(segments.map(|segments| format!("{}{form}", is_in(segments))));
        and(&conditions)
    }
}

/// The condition that a row of a user belongs to one of the given segments, for which no index on segments is used.
pub(super) fn of_segments(segments: Option<&[Segment]>) -> String {
    segments.map_or("true".to_owned(), |segments| {
        format!("{} IS TRUE", is_in(segments))
    })
}

fn is_in(segments: &[Segment]) -> String {
    let ids: Vec<_> = segments
        .iter()
        .map(|segment| segment.id.to_string())
        .collect();
    format!("(segment = ANY ('{{{}}}'::bigint[]))", ids.join(","))
}

fn and(conditions: &[String]) -> String {
    if conditions.is_empty() {
        return "true".to_owned();
    }
    conditions.join(" AND ")
}
