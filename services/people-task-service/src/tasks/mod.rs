//! Tasks: a signed-in user creates and edits them. `decisions` has how they are approved or rejected.

pub(crate) mod access;
pub(crate) mod creation_store;
pub(crate) mod credentials;
mod edit;
pub(crate) mod ended;
mod list_query;
pub(crate) mod metadata;
pub(crate) mod projection;
pub(crate) mod read;
pub(crate) mod requests;
pub(crate) mod responses;
mod round;
pub(crate) mod routes;
pub(crate) mod secrets;
pub(crate) mod store;

pub(crate) use read::find_permitted;
pub(crate) use round::change_in_round;
pub(crate) use store::{Task, task_columns};
