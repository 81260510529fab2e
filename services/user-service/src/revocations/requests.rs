use http_kit::{Problem, Query};

/// The query of the feed.
#[derive(Debug)]
pub(super) struct FeedRequest {
    pub(super) cursor: Option<i64>,
}

impl FeedRequest {
    pub(super) fn parse(query: &Query) -> Result<Self, Problem> {
        let cursor = match query.first("cursor") {
            Some(_) => Some(query.number("cursor", 0..=i64::MAX, 0)?),
            None => None,
        };
        Ok(Self { cursor })
    }
}
