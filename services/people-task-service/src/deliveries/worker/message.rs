use messaging::{Disposition, Message};
use tokio::sync::{mpsc, oneshot};
use values::{DeliveryId, FromText as _};

/// A delivery that may be due, and where to reply once it has been handled.
#[derive(Debug)]
pub(super) struct DueDelivery {
    pub(super) delivery: DeliveryId,
    pub(super) reply: oneshot::Sender<Disposition>,
}

/// Passes a message to the dispatcher and waits until it has been handled. From then on the row says what
/// is next, so a slow receiver does not hold up messages.
pub(super) async fn handle_message(
    due: mpsc::Sender<DueDelivery>,
    message: Message,
) -> Disposition {
    let Ok(delivery) = DeliveryId::from_text(&message.id) else {
        return Disposition::Reject;
    };
    let (reply, handled) = oneshot::channel();
    if due.send(DueDelivery { delivery, reply }).await.is_err() {
        return Disposition::Requeue;
    }
    // The dispatcher drops what it does not handle before it stops.
    handled.await.unwrap_or(Disposition::Requeue)
}
