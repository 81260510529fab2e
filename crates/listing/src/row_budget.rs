use std::sync::Arc;
use std::time::Duration;

use http_kit::Problem;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{MAX_LIMIT, Paging};

/// The maximum number of rows in memory: a little more than four of the longest pages. While it is serialized, a row can
/// take several hundred kilobytes.
const ROWS: u16 = 4_200;
/// How long a list waits for other lists.
const MAX_WAIT: Duration = Duration::from_secs(3);

const _: () = assert!(4 * (MAX_LIMIT + 1) < ROWS as i64);

/// Limits how many rows all lists of a process hold in memory at the same time.
#[derive(Debug, Clone)]
pub struct RowBudget {
    rows: Arc<Semaphore>,
}

/// The right to hold the rows of a page in memory. Dropping it returns them to the budget.
#[derive(Debug)]
#[must_use = "the rows are counted only while the permit is held"]
pub struct RowPermit {
    _rows: OwnedSemaphorePermit,
}

impl Default for RowBudget {
    fn default() -> Self {
        let rows = Arc::new(Semaphore::new(ROWS.into()));
        Self { rows }
    }
}

impl RowBudget {
    /// Waits until the rows of a page fit into the budget.
    ///
    /// # Errors
    /// `503 overloaded` when they do not within 3 s.
    pub async fn acquire_rows(&self, paging: Paging) -> Result<RowPermit, Problem> {
        let rows = u32::try_from(paging.rows_to_fetch()).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.rows).acquire_many_owned(rows);
        match tokio::time::timeout(MAX_WAIT, permit).await {
            Ok(Ok(rows)) => Ok(RowPermit { _rows: rows }),
            _ => Err(Problem::unavailable(
                "overloaded",
                "Too many long lists are being read. Try again shortly, or ask for fewer rows with `limit`.",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn four_of_the_longest_pages_fit_and_a_fifth_waits_for_one_of_them() {
        let budget = RowBudget::default();
        let longest = Paging {
            limit: MAX_LIMIT,
            offset: 0,
        };
        let mut permits = Vec::new();
        for _ in 0..4 {
            permits.push(budget.acquire_rows(longest).await.unwrap());
        }
        let refused = budget.acquire_rows(longest).await.unwrap_err();
        assert_eq!(refused.code(), "overloaded");
        // join! polls the first future first, so it is already waiting when the permit is dropped.
        let (permit, ()) = tokio::join!(budget.acquire_rows(longest), async {
            drop(permits.pop());
        });
        assert!(permit.is_ok());
    }
}
