//! Tasks: created by a signed-in user, decided once by the approver.

pub(crate) mod access;
mod answer;
mod create;
mod credentials;
mod decide;
mod decision_store;
mod edit;
mod error;
mod fields;
mod list;
mod list_store;
mod parameters;
pub(crate) mod routes;
pub(crate) mod store;
mod task;
mod view;

use database::Database;
use diesel::PgConnection;
use values::TaskId;

use access::{Action, Actor, Relations};

pub(crate) use answer::TaskAnswer;
pub(crate) use create::NewTask;
pub(crate) use credentials::SignedIn;
pub(crate) use error::Error;
pub(crate) use fields::{DecisionBy, Description, TaskTitle};
pub(crate) use task::Task;

/// A task, for somebody who may do this to it: the only way to a task without locking it.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Forbidden`].
pub(crate) fn open(
    connection: &mut PgConnection,
    actor: &Actor,
    id: TaskId,
    action: Action,
) -> Result<(Task, Relations), Error> {
    let task = store::find(connection, id)?.ok_or(Error::NotFound)?;
    let relations = actor.relations_to(&task);
    relations.check(action)?;
    Ok((task, relations))
}

/// A task for a reader.
///
/// # Errors
/// [`Error::NotFound`].
#[tracing::instrument(skip_all, fields(task.id = %id))]
pub(crate) async fn read(
    database: &Database,
    actor: Actor,
    id: TaskId,
) -> Result<(Task, Relations), Error> {
    database
        .run(move |connection| open(connection, &actor, id, Action::Read))
        .await
}
