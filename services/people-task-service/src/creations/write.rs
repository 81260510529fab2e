//! How new tasks are written: those that wait for the database together.

use std::collections::HashMap;

use database::{
    BatchLimits, BatchOutcomes, Batches, Connection, Database, Error, column, transaction,
};
use values::TaskId;

use crate::creations::responses::NewTaskResponse;
use crate::error::TaskError;
use crate::idempotency::{Repeatable, StoredAnswer, store as answers};
use crate::mailing::Mailing;
use crate::tasks::Task;
use crate::tasks::access::Actor;
use crate::tasks::creation_store::{self, NewTask};
use crate::tasks::projection::FieldSelection;
use crate::tasks::responses::TaskResponse;
use crate::webhooks::register::{Registration, register_for_new};
use crate::webhooks::responses::WebhookResponse;

/// A new task with what is written together with it.
pub(crate) struct Creation {
    pub(super) new: NewTask,
    /// `None` if the response has no webhooks.
    pub(super) webhooks: Option<Vec<Registration>>,
    pub(super) repeat: Option<Repeatable>,
    /// Who asks, and what the response has.
    pub(super) actor: Actor,
    pub(super) fields: FieldSelection,
}

pub(crate) enum Created {
    /// A task was created. This is the response, without its secrets.
    New(Box<NewTaskResponse>),
    /// A task was created. This is what the request and its repeats get.
    Stored(StoredAnswer),
    /// An earlier request created it.
    Earlier(StoredAnswer),
}

/// Creates tasks. Those that wait for the database are created together.
pub(crate) type Creations = Batches<Creation, Created, TaskError>;

pub(crate) fn creations(database: Database, mailing: &Mailing) -> Creations {
    let reminders = mailing.reminders();
    let create = move |connection: &mut _, creations: &[_], _| {
        create_together(connection, creations, &reminders)
    };
    Batches::new(database, BatchLimits::SERVICE, create)
}

/// Most tasks are inserted by one statement, which needs no transaction around it.
fn create_together(
    connection: &mut Connection,
    creations: &[Creation],
    reminders: &[f64],
) -> Result<BatchOutcomes<Created, TaskError>, Error> {
    let is_plain =
        |creation: &Creation| creation.repeat.is_none() && creation.registrations().is_empty();
    if creations.iter().all(is_plain) {
        return create_all(connection, creations, reminders);
    }
    transaction(connection, |connection| {
        create_all(connection, creations, reminders)
    })
}

fn create_all(
    connection: &mut Connection,
    creations: &[Creation],
    reminders: &[f64],
) -> Result<BatchOutcomes<Created, TaskError>, Error> {
    let repeats = column(creations, |creation| creation.repeat.as_ref());
    let earlier = answers::claim(connection, &repeats)?;
    let both = || creations.iter().zip(&earlier);
    let new = both().filter(|(_, earlier)| matches!(earlier, Ok(None)));
    let new: Vec<_> = new.map(|(creation, _)| &creation.new).collect();
    let inserted = creation_store::insert(connection, &new, reminders)?;
    let tasks = new.into_iter().filter_map(|new| {
        let created = inserted.get(&new.id)?;
        Some((new.id, new.task(*created)))
    });
    let mut tasks: HashMap<TaskId, Task> = tasks.collect();
    write_webhooks(connection, creations, &tasks)?;
    let mut stored = write_answers(connection, creations, &tasks)?;
    let outcomes = creations.iter().zip(earlier).map(|(creation, earlier)| {
        let id = creation.new.id;
        Some(match earlier {
            Err(error) => Err(error.into()),
            Ok(Some(answer)) => Ok(Created::Earlier(answer)),
            Ok(None) => match (tasks.remove(&id), stored.remove(&id)) {
                (None, _) => Err(TaskError::CallerErased),
                (_, Some(answer)) => Ok(Created::Stored(answer)),
                (Some(task), None) => Ok(Created::New(Box::new(creation.response(task)))),
            },
        })
    });
    Ok(outcomes.collect())
}

fn write_webhooks(
    connection: &mut Connection,
    creations: &[Creation],
    tasks: &HashMap<TaskId, Task>,
) -> Result<(), Error> {
    let with_task = creations.iter().filter_map(|creation| {
        let task = tasks.get(&creation.new.id)?;
        Some(creation.registrations().iter().map(move |new| (new, task)))
    });
    let registrations: Vec<_> = with_task.flatten().collect();
    register_for_new(connection, &registrations)
}

/// Writes what repeats get, and returns it by the tasks.
fn write_answers(
    connection: &mut Connection,
    creations: &[Creation],
    tasks: &HashMap<TaskId, Task>,
) -> Result<HashMap<TaskId, StoredAnswer>, Error> {
    let answers = creations.iter().filter_map(|creation| {
        let task = tasks.get(&creation.new.id)?;
        Some((creation.repeat.as_ref()?, creation.answer(task)))
    });
    let answers: Vec<_> = answers.collect();
    answers::insert(connection, &answers)?;
    let answers = answers.into_iter().map(|(_, answer)| (answer.task, answer));
    Ok(answers.collect())
}

impl Creation {
    fn registrations(&self) -> &[Registration] {
        self.webhooks.as_deref().unwrap_or_default()
    }

    /// How many bytes of options its webhooks add.
    pub(super) fn option_bytes(&self) -> u64 {
        let all = self.registrations().iter().map(Registration::bytes);
        all.fold(0, u64::saturating_add)
    }

    /// How many of its webhooks have options.
    pub(super) fn with_options(&self) -> u64 {
        let with = self.registrations().iter().filter(|new| new.has_options());
        u64::try_from(with.count()).unwrap_or(u64::MAX)
    }

    fn answer(&self, task: &Task) -> StoredAnswer {
        let response = self.response(task.clone());
        StoredAnswer {
            body: serde_json::to_string(&response).unwrap_or_default(),
            task: task.id,
            secrets: self.new.secrets.told.clone(),
        }
    }

    fn response(&self, task: Task) -> NewTaskResponse {
        let relations = self.actor.relations_to(&task);
        let webhooks = self.webhooks.as_ref().map(|webhooks| {
            let webhooks = webhooks.iter().map(Registration::webhook);
            webhooks
                .map(|webhook| WebhookResponse::new(webhook, self.fields.is_plugin))
                .collect()
        });
        NewTaskResponse {
            task: TaskResponse::new(task, relations, &self.fields),
            webhooks,
        }
    }
}
