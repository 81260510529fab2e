use std::time::Duration;

use http_kit::Problem;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{MAX_LIMIT, Paging};

/// Rows that are read and written down at once, in all lists of the process: a little more than four of the
/// longest pages. With what is made of it on its way to the answer, a row may take some hundred kilobytes.
const ROWS: u16 = 4_200;
/// How long a list waits for others.
const PATIENCE: Duration = Duration::from_secs(3);

const _: () = assert!(4 * (MAX_LIMIT + 1) < ROWS as i64);

static FREE: Semaphore = Semaphore::const_new(ROWS as usize);

/// Room for the rows of a page. It is given back when dropped, which is when the answer is made.
#[derive(Debug)]
#[must_use = "rows are counted for as long as the room is held"]
pub struct Room {
    _rows: SemaphorePermit<'static>,
}

impl Paging {
    /// Waits for room for the rows of the page, so that many long pages at once do not fill the memory.
    ///
    /// # Errors
    /// `503 overloaded` when there is none for 3 s.
    pub async fn room(&self) -> Result<Room, Problem> {
        let rows = u32::try_from(self.rows_to_fetch()).unwrap_or(u32::MAX);
        let rows = tokio::time::timeout(PATIENCE, FREE.acquire_many(rows)).await;
        match rows {
            Ok(Ok(rows)) => Ok(Room { _rows: rows }),
            _ => Err(Problem::unavailable(
                "overloaded",
                "Too many long lists at once. Try again soon, or ask for fewer with `limit`.",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn four_of_the_longest_pages_have_room_and_a_fifth_waits_for_one_of_them() {
        let longest = Paging {
            limit: MAX_LIMIT,
            offset: 0,
        };
        let mut rooms = Vec::new();
        for _ in 0..4 {
            rooms.push(longest.room().await.unwrap());
        }
        assert_eq!(longest.room().await.unwrap_err().code(), "overloaded");
        // The first of the two is asked first, and waits.
        let (room, ()) = tokio::join!(longest.room(), async { drop(rooms.pop()) });
        assert!(room.is_ok());
    }
}
