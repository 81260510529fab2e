//! Users take turns, so one with very many rows that are due keeps no other waiting: the creators of tasks with mails, and
//! who registered webhooks with due dates. The accounts of a group are one of them. In tables and statements they are the
//! `creator`.

mod store;

use std::sync::Arc;

use database::{Connection, Error};
use parking_lot::Mutex;
use values::UserId;

pub(crate) use store::TurnTable;

/// How many of the oldest due rows are looked at. If there are no more, their creators are all that have any.
const OLDEST: i64 = 256;

/// Whose rows of a table are taken next. Creators take turns in the order of their identifiers. Each process has turns of its
/// own.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    table: TurnTable,
    last: Arc<Mutex<Option<UserId>>>,
}

/// Creators whose turn it is.
pub(crate) struct Turn {
    pub(crate) creators: Vec<UserId>,
    /// Whether others may have due rows, too.
    pub(crate) others: bool,
}

impl Turns {
    pub(crate) fn new(table: TurnTable) -> Self {
        Self {
            table,
            last: Arc::default(),
        }
    }

    /// Begins the turn of at most `limit` creators. How many rows one of them has does not matter for what it costs.
    pub(crate) fn begin(&self, connection: &mut Connection, limit: usize) -> Result<Turn, Error> {
        let last = *self.last.lock();
        let (creators, are_all) = store::creators_of_oldest(connection, self.table, OLDEST)?;
        let (turn, next) = if are_all {
            let turn = turn_of(creators, last, limit);
            let next = turn.creators.last().copied();
            (turn, next)
        } else {
            self.search(connection, last, limit)?
        };
        if next.is_some() {
            *self.last.lock() = next;
        }
        Ok(turn)
    }

    /// Looks for creators with due rows, from one to the next: first those after `last`, then those before. Returns the
    /// turn, and the creator after which the next one begins.
    fn search(
        &self,
        connection: &mut Connection,
        last: Option<UserId>,
        limit: usize,
    ) -> Result<(Turn, Option<UserId>), Error> {
        let (mut creators, mut end) = store::scan_creators(connection, self.table, last, limit)?;
        if let Some(last) = last
            && end.is_none()
        {
            let left = limit - creators.len();
            let (due, before) = store::scan_creators(connection, self.table, None, left)?;
            creators.extend(due.into_iter().take_while(|creator| *creator <= last));
            end = before.filter(|creator| *creator < last);
        }
        let next = end.or_else(|| creators.last().copied());
        let others = end.is_some();
        Ok((Turn { creators, others }, next))
    }
}

/// The turn after `last` of creators in their order, which are all.
fn turn_of(mut creators: Vec<UserId>, last: Option<UserId>, limit: usize) -> Turn {
    let earlier = creators.partition_point(|creator| Some(*creator) <= last);
    creators.rotate_left(earlier);
    let others = creators.len() > limit;
    creators.truncate(limit);
    Turn { creators, others }
}

#[cfg(test)]
mod tests {
    use values::{FromText as _, UserId};

    use super::turn_of;

    fn users(numbers: &[u8]) -> Vec<UserId> {
        let user = |number| UserId::from_text(&format!("{number:024x}")).unwrap();
        numbers.iter().map(user).collect()
    }

    #[test]
    fn a_turn_begins_after_the_last_one_and_comes_to_all() {
        for (last, limit, expected, others) in [
            (0, 3, [1, 3, 5].as_slice(), false),
            (3, 3, &[5, 1, 3], false),
            (4, 2, &[5, 1], true),
            (5, 1, &[1], true),
            (9, 9, &[1, 3, 5], false),
        ] {
            let last = users(&[last]).pop();
            let turn = turn_of(users(&[1, 3, 5]), last, limit);
            assert_eq!((turn.creators, turn.others), (users(expected), others));
        }
    }
}
