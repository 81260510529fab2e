//! Filter, sort, pattern and paging of lists: the query parameters that all lists share.
//!
//! - [`ListQuery`] reads `limit`, `offset`, `sort`, `filter` and `pattern`; [`Conditions`] reads the last
//!   two, for counts, and [`Paging`] the first two. They describe themselves in OpenAPI documents. What a list can be sorted and filtered by is an enum that lists all its names
//!   ([`Names`], [`Filter`]), so a refusal can say what is allowed.
//! - [`Page`] holds the rows of one page and says in the header `Link` where the next one is.
//! - [`Room`] limits how many rows of all lists are in memory at once.
//! - [`substring_pattern`] makes a text safe for `LIKE`.
//!
//! Every wrong parameter is named, not only the first. Nothing here knows SQL.

mod conditions;
mod page;
mod parameters;
mod pattern;
mod query;
mod room;

pub use conditions::{ANY_TEXT, Conditions, Filter};
pub use page::Page;
pub use pattern::substring_pattern;
pub use query::{Direction, ListQuery, MAX_LIMIT, Names, Paging, Sort};
pub use room::Room;
