use values::{FromText, Invalid, Names as _, RevocableId};

/// Where a page of the feed starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FeedCursor {
    pub(super) scan: Scan,
    /// The position of the page's first entry in the order of the scan; entries of the same position are in the
    /// order of their identifiers.
    pub(super) at: i64,
    pub(super) id: Option<RevocableId>,
    /// The transaction from which changes follow after the last page. The first page finds it.
    pub(super) resume: Option<i64>,
}

values::names! {
    /// The order in which entries are read.
    pub(super) enum Scan {
        /// Everything, by the time of the raise in microseconds since 1970.
        All = "all",
        /// Changes, by the number of their transaction.
        Changes = "changes",
    }
}

impl FeedCursor {
    pub(super) const ALL: Self = Self {
        scan: Scan::All,
        at: 0,
        id: None,
        resume: None,
    };

    /// Changes from this transaction on.
    pub(super) fn changes_since(transaction: i64) -> Self {
        Self {
            scan: Scan::Changes,
            at: transaction,
            ..Self::ALL
        }
    }

    /// The text of the cursor after a page, and whether its page should be read at once. `entry` is the first one that is left.
    ///
    /// The pages of one scan come from different snapshots. What has changed since the first one follows: after a scan of
    /// everything at once, and after one of changes in the next poll. While an old transaction is unfinished, that would be the
    /// same changes again and again.
    pub(super) fn after(self, entry: Option<(i64, RevocableId)>, resume: i64) -> (String, bool) {
        match entry {
            Some((at, id)) => (format!("{}.{at}.{id}.{resume}", self.scan.name()), true),
            None => {
                let more = self.resume.is_some() && self.scan == Scan::All;
                (resume.to_string(), more)
            }
        }
    }
}

impl FromText for FeedCursor {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        parse(text)
            .ok_or_else(|| Invalid::new("invalid-cursor", "Must be a cursor of an earlier page."))
    }
}

fn parse(text: &str) -> Option<FeedCursor> {
    let number = |text: &str| text.parse().ok().filter(|number: &i64| *number >= 0);
    let parts: Vec<&str> = text.split('.').collect();
    match *parts {
        [transaction] => number(transaction).map(FeedCursor::changes_since),
        [scan, at, id, resume] => Some(FeedCursor {
            scan: Scan::from_name(scan)?,
            at: number(at)?,
            id: Some(RevocableId::from_text(id).ok()?),
            resume: Some(number(resume)?),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_parsed_from_its_text() {
        let id = RevocableId::generate();
        for scan in [Scan::All, Scan::Changes] {
            let (text, _) = FeedCursor {
                scan,
                ..FeedCursor::ALL
            }
            .after(Some((7, id)), 5);
            let expected = FeedCursor {
                scan,
                at: 7,
                id: Some(id),
                resume: Some(5),
            };
            assert_eq!(FeedCursor::from_text(&text).unwrap(), expected);
        }
        let changes = FeedCursor::changes_since(42);
        assert_eq!(FeedCursor::from_text("42").unwrap(), changes);
    }

    #[test]
    fn other_texts_are_no_cursors() {
        let id = "65b8f0a2c3d4e5f601234567";
        for text in ["", "x", "-1", "all", "all.1.2.3", "99999999999999999999"] {
            assert!(FeedCursor::from_text(text).is_err(), "{text}");
        }
        for text in [format!("some.1.{id}.1"), format!("all.1.{id}.-1")] {
            assert!(FeedCursor::from_text(&text).is_err(), "{text}");
        }
    }
}
