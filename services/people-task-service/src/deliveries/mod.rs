//! Deliveries: decisions and passed due dates on their way to webhooks, and the result of each attempt.

mod announcer;
mod backlog_store;
mod changes;
pub(crate) mod hosts;
mod lane_names;
mod requests;
mod responses;
pub(crate) mod routes;
pub(crate) mod store;
pub(crate) mod test_store;
pub(crate) mod worker;

use std::time::Duration;

use jobs::RetentionRule;
use messaging::Queue;

pub(crate) use self::announcer::{GATHERING, announce};
pub(crate) use self::lane_names::{
    LaneParts, due_message, group_of, host_of, lane_of, owner_of, scheme_and_host,
};
pub(crate) use self::responses::TestResult;
pub(crate) use self::store::DueDelivery;

/// Calls that tried webhooks are kept for as long as their number is limited by them.
pub(crate) const TEST_RETENTION: RetentionRule =
    RetentionRule::of_all("webhook_tests", "requested", Duration::from_hours(1));

/// The messages about deliveries that are due, which every worker gets.
pub const QUEUE: Queue = Queue::broadcast("webhook.due-deliveries");
