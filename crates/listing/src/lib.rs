//! The query parameters that all lists share: filter, sort, pattern and paging.
//!
//! - [`ListQuery`] parses `limit`, `offset`, `sort`, `filter` and `pattern`; [`Conditions`] parses the last
//!   two, for counts, and [`Paging`] the first two. They document themselves in OpenAPI. An enum lists what a
//!   list can be sorted and filtered by ([`Names`](values::Names), [`Filter`]), so that an error can say what is allowed.
//! - [`Page`] holds the rows of one page; [`next_link`] leads to the next one.
//! - [`substring_pattern`] escapes a text for `LIKE`.
//!
//! Errors report every invalid parameter, not only the first. Nothing here depends on SQL.

mod conditions;
mod page;
mod parameters;
mod pattern;
mod query;

pub use conditions::{ANY_TEXT, Conditions, Filter};
pub use page::{CountResponse, Page, next_link};
pub use pattern::substring_pattern;
pub use query::{Direction, ListQuery, MAX_LIMIT, Paging, Sort};
