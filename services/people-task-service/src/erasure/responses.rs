use serde::Serialize;

/// The result of one call.
#[derive(Serialize)]
pub(crate) struct EraseResponse {
    pub(crate) deleted: usize,
    pub(crate) more: bool,
}
