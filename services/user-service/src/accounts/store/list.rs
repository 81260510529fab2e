//! Lists and counts of accounts.
//!
//! A user's segment stands for the values of `is_active`, `plan`, `scope` and `vendor`. The table of segments is small,
//! and it says how many users match, so the way to read a page does not depend on the planner's estimates:
//!
//! - [`Way::Walk`]: the index of the sort, which has the segment, is read alone up to the end of the page.
//! - [`Way::CollectSegments`]: if few users match, they are found by their segments and sorted.
//! - [`Way::Window`], for patterns: the first users of the segments in the order of the sort are searched. If they do not fill the page,
//!   the pattern is rare, and [`Way::Collect`] finds and sorts all that match.

use database::{Connection, Error, LimitedRows, RowLimit, composed, limited_sql};
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::list_conditions::{ListConditions, of_segments};
use super::list_order::ListOrder;
use super::segment::Segment;
use super::user::{LAST_SIGN_IN, User};
use crate::accounts::list_query::{
    MAX_OFFSET_WITH_PATTERN, UserConditions, UserListQuery, UserSort,
};

/// The size of a user in bytes, approximately.
const SIZE: &str = "octet_length(username) + octet_length(email) + octet_length(plan) \
                    + octet_length(scope::text) + coalesce(octet_length(vendor::text), 0) \
                    + octet_length(allowed_private_components::text) + octet_length(metadata::text) + 512";
/// The columns of [`User`] that are in `users`.
const COLUMNS: &str = "users.id, username, email, is_active, plan, scope, vendor, allowed_private_components, metadata, \
                       email_confirmed, epoch, created, mtime, deletion_in_progress";
/// At most this many users are collected by their segments. If more match, the index of the sort has enough of them
/// among its first entries, or they all come late: then reading the whole index still takes a fraction of a second.
const FEW: i64 = 2_000;
/// At least this many users are searched for a pattern before all that match are collected, and ten for each user up to
/// the end of the page.
const WINDOW: i64 = 2_000;
/// Patterns of at least this many characters usually match so few users that they are found fastest by their trigrams.
const LONG_PATTERN: usize = 6;

/// How the identifiers of a page are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Walk,
    Window,
    Collect,
    CollectSegments,
}

#[derive(QueryableByName)]
struct FoundUser {
    #[diesel(embed)]
    user: User,
    #[diesel(sql_type = BigInt)]
    found: i64,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// The rows of one page.
pub(crate) fn list(
    connection: &mut Connection,
    list: &UserListQuery,
    limit: RowLimit,
) -> Result<LimitedRows<User>, Error> {
    let conditions = ListConditions::new(&list.conditions);
    let is_first = list.paging.offset == 0;
    if conditions.selects_one() || (conditions.is_empty() && is_first) {
        return Page::new(list, conditions, None, limit).load(connection);
    }
    in_one_snapshot(connection, |connection| {
        if !conditions.has_segments() {
            return Page::new(list, conditions, None, limit).load_as_planned(connection);
        }
        let matching = Matching::load(connection, &list.conditions)?;
        if matching.users == 0 {
            return Ok(LimitedRows::from_iter([]));
        }
        Page::new(list, conditions, Some(matching), limit).load_as_planned(connection)
    })
}

/// The segments that match the filters.
struct Matching {
    segments: Vec<Segment>,
    users: i64,
}

impl Matching {
    fn load(connection: &mut Connection, conditions: &UserConditions) -> Result<Self, Error> {
        let sql = ListConditions::new_for_segments(conditions);
        let statement = format!(
            "SELECT id, users, lower(plan) AS plan_key, is_active FROM user_segments WHERE {}",
            sql.of_segments()
        );
        let segments: Vec<Segment> = composed(statement, sql.texts, false).load(connection)?;
        Ok(Self {
            users: segments.iter().map(|segment| segment.users).sum(),
            segments,
        })
    }
}

/// Users may move to other segments meanwhile.
fn in_one_snapshot<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut transaction = connection.build_transaction().repeatable_read().read_only();
    transaction.run(work)
}

/// A page to load.
struct Page<'a> {
    list: &'a UserListQuery,
    conditions: ListConditions,
    matching: Option<Matching>,
    limit: RowLimit,
}

impl<'a> Page<'a> {
    fn new(
        list: &'a UserListQuery,
        conditions: ListConditions,
        matching: Option<Matching>,
        limit: RowLimit,
    ) -> Self {
        Self {
            list,
            conditions,
            matching,
            limit,
        }
    }

    fn way(&self) -> Way {
        if self.conditions.selects_one() {
            return Way::Collect;
        }
        if self
            .matching
            .as_ref()
            .is_some_and(|matching| matching.users <= FEW)
        {
            return Way::CollectSegments;
        }
        let Some(pattern) = &self.list.conditions.pattern else {
            return Way::Walk;
        };
        // The index of this sort has the username, too.
        let is_short = pattern.chars().count() < LONG_PATTERN;
        let is_deep = self.list.paging.offset > MAX_OFFSET_WITH_PATTERN;
        match self.list.sort.by {
            UserSort::Username if is_short || is_deep => Way::Walk,
            _ => Way::Window,
        }
    }

    fn load(&self, connection: &mut Connection) -> Result<LimitedRows<User>, Error> {
        let way = self.way();
        let users = self.load_by(connection, way)?;
        if way == Way::Window && users.found < self.list.paging.rows_to_fetch() {
            return self.load_by(connection, Way::Collect);
        }
        Ok(users)
    }

    /// Loads the page in a transaction with settings of the planner. Compiling a statement takes longer than most pages.
    /// An estimate from old statistics must not make it read the table instead of an index.
    fn load_as_planned(&self, connection: &mut Connection) -> Result<LimitedRows<User>, Error> {
        let settings = match self.way() {
            Way::Walk | Way::CollectSegments => {
                "SET LOCAL jit = off; SET LOCAL enable_seqscan = off"
            }
            Way::Window | Way::Collect => "SET LOCAL jit = off",
        };
        connection.batch_execute(settings)?;
        self.load(connection)
    }

    fn load_by(&self, connection: &mut Connection, way: Way) -> Result<LimitedRows<User>, Error> {
        let order = ListOrder::new(self.list.sort).by("sort_key", "id");
        let page = format!(
            "WITH page AS ({ids}) SELECT {COLUMNS}, {LAST_SIGN_IN} AS last_sign_in, page.sort_key \
             FROM page JOIN users USING (id) ORDER BY {order}",
            ids = self.ids(way)
        );
        let (rows, bytes) = (self.limit.rows.to_string(), self.limit.bytes.to_string());
        let sql = limited_sql(&page, SIZE, &rows, &bytes);
        // The best plan depends on the values, and planning takes a fraction of the time of reading a page.
        let statement = composed(sql, &self.conditions.texts, false);
        let users: Vec<FoundUser> = statement.load(connection)?;
        let users = users.into_iter().map(|found| (found.user, found.found));
        Ok(users.collect())
    }

    /// The statement that reads the identifiers of the page and their sort keys. `OFFSET 0` keeps the planner from walking
    /// the index of the sort instead, which reads all users if those that match come last.
    fn ids(&self, way: Way) -> String {
        let order = ListOrder::new(self.list.sort);
        let paging = self.list.paging;
        let page = format!("LIMIT {} OFFSET {}", paging.rows_to_fetch(), paging.offset);
        let window = WINDOW.max(10 * (paging.offset + paging.rows_to_fetch()));
        let ListOrder { table, id, key, .. } = order;
        let (by_column, by_key) = (order.by(key, id), order.by("sort_key", "id"));
        let segments = self.matching.as_ref().map(|matching| &*matching.segments);
        let conditions = match way {
            Way::CollectSegments => self.conditions.of_few_users(segments),
            _ => self.conditions.of_users(segments),
        };
        let start = segments.and_then(|segments| order.fixed_by(segments));
        let start = start.map_or(String::new(), |start| format!(" AND {start}"));
        match way {
            Way::Walk => format!(
                "SELECT {id} AS id, {key} AS sort_key FROM {table} WHERE {conditions}{start} ORDER BY {by_column} {page}"
            ),
            Way::Window => format!(
                "SELECT id, sort_key FROM (\
                    SELECT {id} AS id, {key} AS sort_key FROM {table} WHERE {matching}{start} \
                    ORDER BY {by_column} LIMIT {window}\
                ) AS first JOIN users USING (id) WHERE {conditions} ORDER BY {by_key} {page}",
                matching = of_segments(segments)
            ),
            Way::Collect | Way::CollectSegments => format!(
                "SELECT id, sort_key FROM (\
                    SELECT id, {key} AS sort_key FROM {users} WHERE {conditions} OFFSET 0\
                ) AS matching ORDER BY {by_key} {page}",
                users = order.tables_of_users()
            ),
        }
    }
}

/// The number of all accounts.
pub(crate) fn count_all(connection: &mut Connection) -> Result<i64, Error> {
    let all = UserConditions {
        filters: Vec::new(),
        pattern: None,
    };
    count(connection, &all)
}

/// The number of accounts that match.
pub(crate) fn count(
    connection: &mut Connection,
    conditions: &UserConditions,
) -> Result<i64, Error> {
    let sql = ListConditions::new(conditions);
    if !sql.has_users() {
        return Ok(Matching::load(connection, conditions)?.users);
    }
    if !sql.has_segments() {
        return count_users(connection, &sql, None);
    }
    in_one_snapshot(connection, |connection| {
        let matching = Matching::load(connection, conditions)?;
        count_users(connection, &sql, Some(&matching.segments))
    })
}

fn count_users(
    connection: &mut Connection,
    conditions: &ListConditions,
    segments: Option<&[Segment]>,
) -> Result<i64, Error> {
    let statement = format!(
        "SELECT count(*) AS count FROM users WHERE {}",
        conditions.of_users(segments)
    );
    let count: Count = composed(statement, &conditions.texts, false).get_result(connection)?;
    Ok(count.count)
}
