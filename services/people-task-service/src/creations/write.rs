use std::collections::HashMap;

use database::{
    BatchLimits, BatchOutcomes, Batches, Connection, Database, Error, column, transaction,
};
use values::TaskId;

use crate::creations::responses::NewTaskResponse;
use crate::error::TaskError;
use crate::idempotency::{Repeatable, StoredAnswer, store as answers};
use crate::mailing::Mailing;
use crate::tasks::creation_store::{self, NewTask};
use crate::tasks::{Actor, FieldSelection, Task, TaskResponse};
use crate::webhooks::register::register_for_new;
use crate::webhooks::responses::WebhookResponse;
use crate::webhooks::store::Registration;

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

pub(crate) struct Created {
    /// What the request gets, and its repeats, too.
    pub(super) answer: StoredAnswer,
    /// Whether an earlier request created the task.
    pub(super) is_earlier: bool,
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
    let tasks = creation_store::insert(connection, &new, reminders)?;
    write_webhooks(connection, creations, &tasks)?;
    let new = write_answers(connection, creations, tasks)?;
    let outcomes = new.into_iter().zip(earlier).map(|(new, earlier)| {
        let earlier = earlier?;
        let is_earlier = earlier.is_some();
        let answer = earlier.or(new).ok_or(TaskError::CallerErased)?;
        Ok(Created { answer, is_earlier })
    });
    Ok(outcomes.map(Some).collect())
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

/// Returns the answers of the tasks that were created, and writes those that repeats get.
fn write_answers(
    connection: &mut Connection,
    creations: &[Creation],
    mut tasks: HashMap<TaskId, Task>,
) -> Result<Vec<Option<StoredAnswer>>, Error> {
    let answers = creations.iter().map(|creation| {
        let task = tasks.remove(&creation.new.id)?;
        Some(creation.answer(task))
    });
    let answers: Vec<_> = answers.collect();
    let stored = creations
        .iter()
        .zip(&answers)
        .filter_map(|(creation, answer)| {
            let repeat = creation.repeat.as_ref()?;
            Some((repeat, answer.clone()?))
        });
    answers::insert(connection, &stored.collect::<Vec<_>>())?;
    Ok(answers)
}

impl Creation {
    fn registrations(&self) -> &[Registration] {
        self.webhooks.as_deref().unwrap_or_default()
    }

    pub(super) fn option_bytes(&self) -> u64 {
        let all = self.registrations().iter().map(Registration::bytes);
        all.fold(0, u64::saturating_add)
    }

    /// How many of its webhooks have options.
    pub(super) fn with_options(&self) -> u64 {
        let webhooks = self.registrations().iter().map(|new| &new.webhook);
        let with = webhooks.filter(|webhook| webhook.options.is_some());
        u64::try_from(with.count()).unwrap_or(u64::MAX)
    }

    fn answer(&self, task: Task) -> StoredAnswer {
        let (id, relations) = (task.id, self.actor.relations_to(&task));
        let webhooks = self.webhooks.as_ref().map(|webhooks| {
            let webhooks = webhooks.iter().map(|new| new.webhook.clone());
            webhooks
                .map(|webhook| WebhookResponse::new(webhook, self.fields.is_plugin))
                .collect()
        });
        let response = NewTaskResponse {
            task: TaskResponse::new(task, relations, &self.fields),
            webhooks,
        };
        StoredAnswer {
            body: serde_json::to_string(&response).unwrap_or_default(),
            task: id,
            secrets: self.new.secrets.told.clone(),
        }
    }
}
