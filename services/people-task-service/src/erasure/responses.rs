use serde::Serialize;

/// The result of one call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EraseResponse {
    /// Tasks, and webhooks of other tasks.
    pub(crate) deleted: usize,
    pub(crate) deleted_tasks: usize,
    pub(crate) more: bool,
    /// There is more, but other transactions hold all of it: call again after a pause.
    pub(crate) blocked: bool,
}
