use values::{FromText, Invalid, RevocableId};

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

/// The order in which entries are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// Everything, by the time of the raise in microseconds since 1970.
    All,
    /// Changes, by the number of their transaction.
    Changes,
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
            id: None,
            resume: None,
        }
    }

    /// The text of a cursor inside of a scan, from which the scan continues.
    pub(super) fn continued(scan: Scan, at: i64, id: RevocableId, resume: i64) -> String {
        let scan = match scan {
            Scan::All => "all",
            Scan::Changes => "changes",
        };
        format!("{scan}.{at}.{id}.{resume}")
    }
}

impl FromText for FeedCursor {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("invalid-cursor", "Must be a cursor of an earlier page.");
        let number = |text: &str| text.parse().ok().filter(|number: &i64| *number >= 0);
        let parts: Vec<&str> = text.split('.').collect();
        let (scan, at, id, resume) = match *parts {
            [transaction] => {
                return number(transaction)
                    .map(Self::changes_since)
                    .ok_or_else(invalid);
            }
            ["all", at, id, resume] => (Scan::All, at, id, resume),
            ["changes", at, id, resume] => (Scan::Changes, at, id, resume),
            _ => return Err(invalid()),
        };
        let at = number(at).ok_or_else(invalid)?;
        let resume = number(resume).ok_or_else(invalid)?;
        let id = RevocableId::from_text(id).map_err(|_| invalid())?;
        Ok(Self {
            scan,
            at,
            id: Some(id),
            resume: Some(resume),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_parsed_from_its_text() {
        let id = RevocableId::generate();
        for scan in [Scan::All, Scan::Changes] {
            let text = FeedCursor::continued(scan, 7, id, 5);
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
