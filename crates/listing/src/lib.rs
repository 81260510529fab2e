//! Lists and counts, from the query string to the response. Errors report every invalid parameter, not only the first.

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
