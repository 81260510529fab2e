//! Deliveries: decisions on their way to webhooks, and what became of each attempt.

mod error;
pub(crate) mod routes;
pub(crate) mod store;
pub(crate) mod worker;

use audit_log::RequestMeta;
use database::Database;
use diesel::PgConnection;
use listing::{Page, Paging};
use messaging::{Message, Publisher, Queue};
use serde_json::json;
use telemetry::RequestContext;
use url::Url;
use values::{DeliveryId, TaskId};

use crate::audit;
use crate::tasks;
use crate::tasks::access::{Action, Actor, Denied};

/// Identifiers of deliveries that are due.
pub const QUEUE: Queue = Queue::new("webhook.deliveries");

pub(crate) use error::Error;
pub(crate) use store::{Attempt, Delivery};

/// Scheme, host and port of a webhook's url: what fairness between receivers goes by.
pub(crate) fn origin_of(url: &str) -> String {
    // Every url was parsed when it was registered.
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.origin().ascii_serialization())
}

/// A delivery with its attempts, oldest first.
pub(crate) type Tried = (Delivery, Vec<Attempt>);

/// One page of a task's deliveries, oldest first; for the task's creator and administrators.
///
/// # Errors
/// Those of the task.
#[tracing::instrument(skip_all, fields(task.id = %task))]
pub(crate) async fn list(
    database: &Database,
    actor: Actor,
    task: TaskId,
    paging: Paging,
) -> Result<Page<Tried>, Error> {
    let rows = database
        .run(move |connection| {
            tasks::open(connection, &actor, task, Action::SeeDeliveries)?;
            let deliveries = store::of_task(connection, task, paging)?;
            Ok::<_, Error>(store::with_attempts(connection, deliveries)?)
        })
        .await?;
    Ok(paging.page(rows))
}

/// Sends a delivery again now, whatever became of it. One that is being sent at this moment is not
/// doubled.
///
/// # Errors
/// [`Error::NotFound`], and those of the task.
#[tracing::instrument(skip_all, fields(delivery.id = %id))]
pub(crate) async fn redeliver(
    database: &Database,
    publisher: &Publisher,
    actor: Actor,
    id: DeliveryId,
    origin: RequestMeta,
) -> Result<Tried, Error> {
    let (tried, restarted) = database
        .transaction(move |connection| restart(connection, &actor, id, origin))
        .await?;
    if restarted {
        tracing::info!("a delivery was started again");
        publisher.send([Message::new(id, RequestContext::current_or_fresh())]);
    }
    Ok(tried)
}

fn restart(
    connection: &mut PgConnection,
    actor: &Actor,
    id: DeliveryId,
    origin: RequestMeta,
) -> Result<(Tried, bool), Error> {
    let task = store::lock(connection, id)?.ok_or(Error::NotFound)?;
    let task = tasks::store::find(connection, task)?.ok_or(Error::NotFound)?;
    let allowed = actor.relations_to(&task).check(Action::SeeDeliveries);
    allowed.map_err(|denied| match denied {
        Denied::Hidden => Error::NotFound,
        Denied::Forbidden => tasks::Error::Forbidden.into(),
    })?;
    let restarted = store::restart(connection, id)?;
    if restarted {
        let redelivered = audit::Action::DeliveryRedelivered;
        let entry = redelivered.entry(actor, &task, Action::SeeDeliveries, origin);
        let entry = entry.detail(json!({ "deliveryId": id }));
        entry.record(connection)?;
    }
    let delivery = store::find(connection, id)?.ok_or(Error::NotFound)?;
    let tried = store::with_attempts(connection, vec![delivery])?;
    let tried = tried.into_iter().next().ok_or(Error::NotFound)?;
    Ok((tried, restarted))
}

#[cfg(test)]
mod tests {
    use super::origin_of;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (url, origin) in [
            ("http://a.example.com/x?y=1", "http://a.example.com"),
            ("https://A.example.com:443/", "https://a.example.com"),
            ("http://u:p@127.0.0.1:8090/", "http://127.0.0.1:8090"),
            ("http://[::1]:80/", "http://[::1]"),
        ] {
            assert_eq!(origin_of(url), origin);
        }
    }
}
