use serde::Serialize;

/// The result of one call.
#[derive(Serialize)]
pub(crate) struct EraseResponse {
    pub(crate) deleted: usize,
    pub(crate) more: bool,
    /// There is more, but other transactions hold all of it: call again after a pause.
    pub(crate) blocked: bool,
}
