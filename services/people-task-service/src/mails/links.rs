use app_config::PublicUrl;
use values::{Secret, TaskId};

/// The link that opens a task. `purpose` has further parameters: a proposed decision, or the recipient's role.
pub(super) fn task_link(
    public_url: &PublicUrl,
    task: TaskId,
    secret: &Secret,
    purpose: &str,
) -> Secret {
    let secret = secret.expose();
    Secret::new(format!(
        "{public_url}/tasks?taskId={task}&secret={secret}{purpose}"
    ))
}

/// The link by which a recipient opts out of reminders.
pub(super) fn unsubscribe_link(public_url: &PublicUrl, token: &str) -> Secret {
    Secret::new(format!(
        "{public_url}/people-task/reminders/unsubscribe?token={token}"
    ))
}
