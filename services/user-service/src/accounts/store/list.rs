//! Lists and counts of accounts: [how they are read](../../../../../docs/decisions/user-segments.md).

use database::{Connection, Error};
use diesel::connection::SimpleConnection as _;
use listing::{AccessPaths, Few, First, Order, Page, PageLimits, Sort, Source, Table};

use super::User;
use super::list_conditions::{ListConditions, Segments, and};
use crate::accounts::list_query::{
    MAX_OFFSET_WITH_PATTERN, MAX_SORTED_USERS, UserConditions, UserListQuery, UserSort,
    offset_too_high,
};
use crate::error::UserError;

const TABLE: Table = Table {
    columns: "users.id, username, email, is_active, plan, scope, vendor, allowed_private_components, metadata, \
              email_confirmed, epoch, created, mtime, deletion_in_progress, is_service, \
              (SELECT at FROM last_sign_ins WHERE user_id = users.id) AS last_sign_in",
    joins: "JOIN users USING (id)",
    size: "octet_length(username) + octet_length(email) + octet_length(plan) \
           + octet_length(scope::text) + coalesce(octet_length(vendor::text), 0) \
           + octet_length(allowed_private_components::text) + octet_length(metadata::text) + 512",
};
/// At most this many users are found by their segments. If more match, the index of the sort has enough of them
/// among its first entries, or they all come late: then reading the whole index still takes a fraction of a second.
const FEW: i64 = 2_000;
/// At least this many users are searched for a pattern before all that match are sorted, and ten for each user up to
/// the end of the page.
const FIRST: i64 = 2_000;
/// Patterns of at least this many characters usually match so few users that they are found fastest by their trigrams.
const LONG_PATTERN: usize = 6;

pub(crate) fn list(
    connection: &mut Connection,
    list: &UserListQuery,
    limits: PageLimits,
) -> Result<Page<User>, UserError> {
    let is_deep = list.paging.offset > MAX_OFFSET_WITH_PATTERN;
    let is_sorted = list.conditions.pattern.is_some() && list.sort.by != UserSort::Username;
    if is_deep && is_sorted {
        let all = Segments::load(connection, &ListConditions::default())?;
        if all.users > MAX_SORTED_USERS {
            return Err(offset_too_high());
        }
    }
    let conditions = ListConditions::new(&list.conditions);
    let is_first_of_all = conditions.is_empty() && list.paging.offset == 0;
    if conditions.is_unique || is_first_of_all {
        return Ok(access_paths(list, conditions, None).load(connection, limits)?);
    }
    // Users may move to other segments meanwhile.
    let mut transaction = connection.build_transaction().repeatable_read().read_only();
    let page: Result<_, Error> = transaction.run(|connection| {
        let has_segments = !conditions.of_segments.is_empty();
        let segments = has_segments.then(|| Segments::load(connection, &conditions));
        let segments = segments.transpose()?;
        if let Some(Segments { users: 0, .. }) = segments {
            return Ok(list.paging.page(Vec::new(), 0));
        }
        let paths = access_paths(list, conditions, segments.as_ref());
        if paths.are_indexed() {
            // An estimate from old statistics must not make it read the table instead of an index.
            connection.batch_execute("SET LOCAL enable_seqscan = off")?;
        }
        paths.load(connection, limits)
    });
    Ok(page?)
}

pub(crate) fn count(
    connection: &mut Connection,
    conditions: &UserConditions,
) -> Result<i64, Error> {
    let conditions = ListConditions::new(conditions);
    if conditions.of_users.is_empty() {
        return Ok(Segments::load(connection, &conditions)?.users);
    }
    let matching = and(&[conditions.of_users, conditions.of_segments].concat());
    let matching = format!("users WHERE {matching}");
    listing::count(connection, &matching, conditions.binds, false)
}

struct SortKey {
    order: Order,
    /// The column or expression that the list is sorted by.
    key: &'static str,
}

impl SortKey {
    fn of(sort: Sort<UserSort>) -> Self {
        let key = match sort.by {
            UserSort::Created => "created",
            UserSort::Mtime => "mtime",
            UserSort::Username => "username_key",
            UserSort::Email => "email_key",
            UserSort::Plan => "lower(plan)",
            UserSort::IsActive => "is_active",
            UserSort::LastSignIn => "at",
        };
        let order = Order {
            direction: sort.direction,
            nullable: sort.by == UserSort::LastSignIn,
        };
        Self { order, key }
    }

    /// Users in the order of the index.
    fn in_order(&self, conditions: &[String]) -> Source {
        let (table, id) = if self.order.nullable {
            ("last_sign_ins", "user_id")
        } else {
            ("users", "id")
        };
        Source {
            rows: format!("{table} WHERE {}", and(conditions)),
            id,
            key: self.key,
        }
    }

    /// Users that are sorted. `OFFSET 0` keeps the planner from reading the index of the sort instead, which reads all
    /// users if those that match come last.
    fn to_sort(&self, conditions: &[String]) -> Source {
        let joined = if self.order.nullable {
            "users JOIN last_sign_ins AS signed_in (user_id, at, own_segment) ON user_id = id"
        } else {
            "users"
        };
        let users = format!(
            "SELECT id, {} AS sort_key FROM {joined} WHERE {} OFFSET 0",
            self.key,
            and(conditions)
        );
        Source {
            rows: format!("({users}) AS matching"),
            id: "id",
            key: "sort_key",
        }
    }
}

/// The paths to the users of a page. `segments` are those that match, if conditions are of segments.
fn access_paths(
    list: &UserListQuery,
    conditions: ListConditions,
    segments: Option<&Segments>,
) -> AccessPaths {
    let (mut binds, of_users) = (conditions.binds, conditions.of_users);
    let sort = SortKey::of(list.sort);
    let (number, condition) = match segments {
        _ if conditions.is_unique => (1, conditions.of_segments),
        Some(segments) => (segments.users, vec![segments.condition()]),
        None => (i64::MAX, Vec::new()),
    };
    let few = Few::Known(number, sort.to_sort(&[&*of_users, &condition].concat()));
    // `IS TRUE` keeps Postgres from using the index on segments, so that it reads the index of the sort and compares each
    // user with a hash table.
    let in_segments = segments.map(|segments| format!("{} IS TRUE", segments.condition()));
    let all: Vec<_> = of_users.iter().chain(&in_segments).cloned().collect();
    let all = sort.to_sort(&all);
    let start = segments.and_then(|segments| segments.start_of(list.sort.by, &mut binds));
    let in_order: Vec<_> = in_segments.into_iter().chain(start).collect();
    let (ordered, first) = if is_in_index(list) {
        (vec![sort.in_order(&[in_order, of_users].concat())], None)
    } else {
        // The first users in the order of an index, which are searched for a pattern.
        let first = First {
            source: sort.in_order(&in_order),
            order: sort.order,
            rows: FIRST.max(10 * (list.paging.offset + list.paging.rows_to_fetch())),
            max_end: i64::MAX,
            matching: format!("JOIN users USING (id) WHERE {}", and(&of_users)),
        };
        (Vec::new(), Some(first))
    };
    AccessPaths {
        table: &TABLE,
        binds,
        order: sort.order,
        ordered,
        // The best plan depends on the values, and planning takes a fraction of the time of reading a page.
        is_cached: false,
        few,
        max_few: FEW,
        first,
        all,
    }
}

/// Whether the index of the sort has all that users are compared with.
fn is_in_index(list: &UserListQuery) -> bool {
    list.conditions.pattern.as_ref().is_none_or(|pattern| {
        let is_short = pattern.chars().count() < LONG_PATTERN;
        let is_deep = list.paging.offset > MAX_OFFSET_WITH_PATTERN;
        list.sort.by == UserSort::Username && (is_short || is_deep)
    })
}
