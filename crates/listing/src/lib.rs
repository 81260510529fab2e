//! Lists and counts, from the query string to the response.
//!
//! - [`ListQuery`] parses `limit`, `offset`, `sort`, `filter` and `pattern`; [`Conditions`] parses the last
//!   two, for counts, and [`Paging`] the first two. They document themselves in OpenAPI. An enum lists what a
//!   list can be sorted and filtered by ([`Names`](values::Names), [`Filter`]), so that an error can say what is allowed.
//!   Errors report every invalid parameter, not only the first.
//! - A store describes its list: as a [`Statement`] if one index has its rows in their order, or else as
//!   [`AccessPaths`], of which the first one that serves is taken. Either loads a [`Page`] within [`PageLimits`].
//! - [`Lists`] runs lists and counts, and limits the memory that their pages take. [`EncodedPage`] is the response.

mod access;
mod conditions;
mod encoded_page;
mod lists;
mod pattern;
mod query;
mod statement;

pub use access::{AccessPaths, Few, First, Indexed, Order, Source, Table, count};
pub use conditions::{ANY_TEXT, Conditions, Filter, text_parameter};
pub use encoded_page::{CountResponse, EncodedPage, next_link};
pub use lists::Lists;
pub use pattern::substring_pattern;
pub use query::{Direction, ListQuery, MAX_LIMIT, Page, Paging, Sort};
pub use statement::{Bind, Binds, PageLimits, Statement};
