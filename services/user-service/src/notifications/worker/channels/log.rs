use values::Names as _;

use crate::notifications::worker::notification::Notification;

/// Logs the link. This is the only place where a code is logged, and for development only.
pub(super) fn send(notification: &Notification) {
    tracing::info!(
        user.id = %notification.user,
        kind = notification.kind.name(),
        link = notification.link.expose(),
        "link with a code (FORGOT_PASSWORD_LOG is on)"
    );
}
