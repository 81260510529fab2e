use database::Database;
use values::TaskId;

use crate::deliveries::scheme_and_host;
use crate::tasks::access::{Actor, Permission};
use crate::tasks::find_permitted;
use crate::webhooks::error::WebhookError;
use crate::webhooks::store::{self, Webhook};

/// The webhooks of a task, oldest first. Who may not see the URL of one sees its scheme and host.
pub(crate) async fn list(
    database: &Database,
    actor: Actor,
    task: TaskId,
) -> Result<Vec<Webhook>, WebhookError> {
    database
        .run(move |connection| {
            let (_, mut relations) = find_permitted(connection, &actor, task, Permission::Read)?;
            let mut webhooks = store::load_of_task(connection, task)?;
            for webhook in &mut webhooks {
                relations.registrant = actor.user() == Some(webhook.registered_by);
                if !relations.allow(Permission::SeeWebhookUrl) {
                    webhook.url = scheme_and_host(&webhook.url);
                    webhook.options = None;
                }
            }
            Ok(webhooks)
        })
        .await
}
