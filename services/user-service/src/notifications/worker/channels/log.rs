use crate::notifications::worker::notice::Notice;

/// Writes the link into the log: the one place where a code appears there, for development only.
pub(super) fn send(notice: &Notice) {
    tracing::info!(
        user.id = %notice.user,
        kind = notice.kind.name(),
        link = notice.link.expose(),
        "a link with a code, because FORGOT_PASSWORD_LOG is on"
    );
}
