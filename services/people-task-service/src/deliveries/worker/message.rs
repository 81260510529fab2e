use messaging::{Disposition, Message};
use tokio::sync::mpsc;

use crate::deliveries::DueDelivery;
use crate::deliveries::due::parse_due_message;

/// Passes a message to the dispatcher. The rows do not depend on it, so it is done when it is received.
pub(super) async fn handle_message(
    due: mpsc::Sender<Vec<DueDelivery>>,
    message: Message,
) -> Disposition {
    match parse_due_message(&message.body) {
        None => Disposition::Reject,
        Some(deliveries) => match due.send(deliveries).await {
            Ok(()) => Disposition::Done,
            Err(_) => Disposition::Requeue,
        },
    }
}
