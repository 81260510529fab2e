use http_kit::{Problem, Query, combine_errors};
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};
use values::{FromText, Invalid, Names};

use crate::conditions::{parse_name, text_parameter};
use crate::{Conditions, Filter};

/// The maximum number of rows of a page.
pub const MAX_LIMIT: i64 = 1000;
const DEFAULT_LIMIT: i64 = 100;
/// The maximum offset: the database reads and discards every row before it.
const MAX_OFFSET: i64 = 10_000_000;

/// The direction of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first; `1` in the query string.
    Ascending,
    /// Largest first; `-1` in the query string.
    Descending,
}

impl Direction {
    /// The direction in SQL.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        }
    }
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort<S> {
    /// The field.
    pub by: S,
    /// The direction, also of the id that breaks ties.
    pub direction: Direction,
}

impl<S: Names> Sort<S> {
    /// Smallest first.
    pub fn ascending(by: S) -> Self {
        let direction = Direction::Ascending;
        Self { by, direction }
    }

    /// Largest first.
    pub fn descending(by: S) -> Self {
        let direction = Direction::Descending;
        Self { by, direction }
    }
}

impl<S: Names> FromText for Sort<S> {
    /// Parses `<field>:<direction>`.
    fn from_text(text: &str) -> Result<Self, Invalid> {
        let Some((field, direction)) = text.split_once(':') else {
            let message = format!(
                "Must be `<field>:<direction>`; the direction is 1 or -1, the field one of: {}.",
                S::list()
            );
            return Err(Invalid::new("invalid-sort", message));
        };
        let by = parse_name::<S>(field)?;
        match direction {
            "1" => Ok(Self::ascending(by)),
            "-1" => Ok(Self::descending(by)),
            _ => Err(Invalid::new(
                "invalid-direction",
                "The direction must be 1 (ascending) or -1 (descending).",
            )),
        }
    }
}

/// The requested page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Paging {
    /// The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the `Link` header leads to the next page.
    #[param(minimum = 1, maximum = 1000, default = 100, required = false)]
    pub limit: i64,
    /// How many rows to skip. At most 10,000 of more than 100,000 tasks in an order other than `created`; at most 1,000 of users with a `pattern` in an order other than `username`, if there are more than 100,000 users. Beyond that it is `400`, also where `Link` leads: use a filter, or that order.
    #[param(minimum = 0, maximum = 10_000_000, default = 0, required = false)]
    pub offset: i64,
}

impl Paging {
    /// Parses `limit` and `offset` of a list that has no other parameters.
    ///
    /// # Errors
    /// `400 validation-failed` with one entry for each invalid parameter.
    pub fn parse(query: &Query) -> Result<Self, Problem> {
        let limit = query.number("limit", 1..=MAX_LIMIT, DEFAULT_LIMIT);
        let offset = query.number("offset", 0..=MAX_OFFSET, 0);
        let (limit, offset) = combine_errors(limit, offset)?;
        Ok(Self { limit, offset })
    }

    /// Makes the page of which `rows` were loaded. `found` rows exist of those that [`Paging::rows_to_fetch`] asks for.
    pub fn page<T>(self, rows: Vec<T>, found: i64) -> Page<T> {
        Page {
            rows,
            paging: self,
            found,
        }
    }

    /// How many rows to load: one more than the page has, which shows whether there is a next page.
    pub fn rows_to_fetch(&self) -> i64 {
        self.limit + 1
    }

    /// The offset of the next page, if there may be one after `rows` of the `found` rows.
    pub fn next_offset(self, rows: i64, found: i64) -> Option<i64> {
        let next = self.offset.saturating_add(rows);
        (rows < found && next <= MAX_OFFSET).then_some(next)
    }
}

/// The rows of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows, at most as many as `paging` allows. There are fewer at the end of the list, and where more rows would
    /// be too large together.
    pub rows: Vec<T>,
    /// The requested page.
    pub paging: Paging,
    /// How many rows were found of those that [`Paging::rows_to_fetch`] asks for.
    pub found: i64,
}

impl<T> Page<T> {
    /// Converts the rows.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page {
            rows: self.rows.into_iter().map(change).collect(),
            paging: self.paging,
            found: self.found,
        }
    }
}

/// The parameters of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery<S, F> {
    /// The page.
    pub paging: Paging,
    /// The order.
    pub sort: Sort<S>,
    /// The conditions that rows must meet.
    pub conditions: Conditions<F>,
}

impl<S: Names, F: Filter> ListQuery<S, F> {
    /// Parses `limit`, `offset`, `sort`, `filter` and `pattern`. Absent parameters have their defaults.
    ///
    /// # Errors
    /// `400 validation-failed` with one entry for each invalid parameter.
    pub fn parse(query: &Query, default_sort: Sort<S>) -> Result<Self, Problem> {
        let page = combine_errors(Paging::parse(query), query.parsed("sort"));
        let ((paging, sort), conditions) = combine_errors(page, Conditions::parse(query))?;
        Ok(Self {
            paging,
            sort: sort.unwrap_or(default_sort),
            conditions,
        })
    }
}

impl<S: Names, F: Filter> IntoParams for ListQuery<S, F> {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let fields: Vec<_> = S::ALL.iter().map(|field| field.name()).collect();
        let sort = text_parameter(
            "sort",
            "`<field>:<direction>`; the direction is `1` (ascending) or `-1` (descending).",
            format!("^(({}):(1|-1))?$", fields.join("|")),
        );
        let mut parameters = Paging::into_params(&parameter_in);
        parameters.push(sort);
        parameters.extend(Conditions::<F>::into_params(parameter_in));
        parameters
    }
}

#[cfg(test)]
mod tests {
    use http_kit::Query;
    use proptest::prelude::*;

    use super::{Direction, ListQuery, Paging, Sort};
    use crate::Filter;

    values::names! {
        enum By {
            Created = "created",
            Title = "title",
        }
    }

    impl Filter for By {}

    fn parse(query: &str) -> Result<ListQuery<By, By>, Vec<(String, String)>> {
        let parsed = ListQuery::parse(&Query::parse(query), Sort::descending(By::Created));
        parsed.map_err(|problem| {
            let errors = problem.body().errors.into_iter();
            errors.map(|error| (error.field, error.message)).collect()
        })
    }

    #[test]
    fn absent_parameters_have_defaults() {
        let list = parse("sort=&limit=").unwrap();
        assert_eq!((list.paging.limit, list.paging.offset), (100, 0));
        assert_eq!(list.sort, Sort::descending(By::Created));
        assert!(list.conditions.filters.is_empty() && list.conditions.pattern.is_none());
    }

    #[test]
    fn a_sort_is_a_field_and_a_direction() {
        assert_eq!(
            parse("sort=title:1").unwrap().sort,
            Sort::ascending(By::Title)
        );
        let descending = parse("sort=title:-1").unwrap().sort;
        assert_eq!(descending.direction, Direction::Descending);
    }

    #[test]
    fn every_invalid_parameter_is_reported_with_the_allowed_values() {
        let errors = parse("limit=0&offset=-1&sort=colour:1&filter=x:1").unwrap_err();
        let expected = [
            ("limit", "Must be a whole number from 1 to 1000."),
            ("offset", "Must be a whole number from 0 to 10000000."),
            ("sort", "The field must be one of: created, title."),
            ("filter", "The field must be one of: created, title."),
        ];
        let expected = expected.map(|(field, message)| (field.to_owned(), message.to_owned()));
        assert_eq!(errors, expected);
        for query in [
            "sort=title:0",
            "sort=title:",
            "sort=title",
            "limit=1001",
            "offset=10000001",
            "limit=ten",
        ] {
            assert!(parse(query).is_err(), "{query}");
        }
    }

    #[test]
    fn the_next_page_begins_where_this_one_ends() {
        let paging = Paging {
            limit: 2,
            offset: 4,
        };
        assert_eq!(paging.rows_to_fetch(), 3);
        assert_eq!(paging.next_offset(2, 3), Some(6));
        assert_eq!(paging.next_offset(1, 2), Some(5));
        assert_eq!(paging.next_offset(2, 2), None);
    }

    proptest! {
        #[test]
        fn no_query_panics(query in any::<String>()) {
            let _ = parse(&query);
        }

        #[test]
        fn pages_do_not_overlap_and_omit_nothing(
            total in 0_i64..50,
            limit in 1_i64..20,
            max_size in 1_i64..20,
        ) {
            let (mut read, mut next) = (0, Some(0));
            while let Some(offset) = next {
                prop_assert_eq!(offset, read);
                let paging = Paging { limit, offset };
                let found = paging.rows_to_fetch().min(total - offset);
                let rows = found.min(limit).min(max_size);
                read += rows;
                next = paging.next_offset(rows, found);
            }
            prop_assert_eq!(read, total);
        }
    }
}
