//! Tasks: a signed-in user creates and edits them. `decisions` has how they are approved or rejected.

mod access;
pub(crate) mod creation_store;
mod credentials;
mod edit;
pub(crate) mod ended;
mod list_query;
mod metadata;
mod projection;
pub(crate) mod read;
mod requests;
mod responses;
mod round;
pub(crate) mod routes;
mod secrets;
pub(crate) mod store;

pub(crate) use access::{Actor, DecidedVia, Permission, Relations};
pub(crate) use creation_store::NewTask;
pub(crate) use credentials::{AuthenticatedUser, PartialCredentials};
pub(crate) use metadata::{Metadata, is_metadata_key};
pub(crate) use projection::{FieldSelection, TaskField};
pub(crate) use read::find_permitted;
pub(crate) use requests::{NewTaskFields, Precondition, TaskVersion, byte_length};
pub(crate) use responses::{Occasion, TaskResponse, etag};
pub(crate) use round::change_in_round;
pub(crate) use secrets::NewSecrets;
pub(crate) use store::{Task, find_tasks, task_columns};
