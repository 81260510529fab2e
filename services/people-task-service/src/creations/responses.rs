//! The answer to a new task.

use actix_web::body::BoxBody;
use actix_web::http::header::ETAG;
use actix_web::{HttpRequest, HttpResponse, Responder};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ArrayBuilder, Ref};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use values::Secret;

use crate::idempotency::IDEMPOTENT_REPLAYED;
use crate::tasks::responses::{TaskResponse, changed_schema, etag};
use crate::webhooks::responses::WebhookResponse;

/// A new task, with its webhooks if the request had some.
#[derive(Serialize)]
pub(crate) struct NewTaskResponse {
    #[serde(flatten)]
    pub(super) task: TaskResponse,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) webhooks: Option<Vec<WebhookResponse>>,
}

pub(super) enum CreationAnswer {
    New(Box<NewTaskResponse>),
    /// It is stored for repeats.
    Stored {
        body: Map<String, Value>,
        replayed: bool,
    },
}

impl NewTaskResponse {
    /// Adds the secrets: the approver's and the requester's.
    pub(super) fn answer(mut self, secrets: &[Secret; 2]) -> CreationAnswer {
        self.task = self.task.with_secrets(secrets.each_ref().map(Some));
        CreationAnswer::New(Box::new(self))
    }
}

impl CreationAnswer {
    /// Adds the secrets to a stored answer.
    pub(super) fn stored(body: &str, [approver, requester]: &[Secret; 2], replayed: bool) -> Self {
        let mut body: Map<String, Value> = serde_json::from_str(body).unwrap_or_default();
        for (name, secret) in [("approverSecret", approver), ("requesterSecret", requester)] {
            body.insert(name.to_owned(), secret.expose().into());
        }
        Self::Stored { body, replayed }
    }
}

impl Responder for CreationAnswer {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        // A new task has its first version.
        let mut response = HttpResponse::Ok();
        response.insert_header((ETAG, etag(1)));
        match self {
            Self::New(created) => response.json(created),
            Self::Stored { body, replayed } => {
                if replayed {
                    response.insert_header(IDEMPOTENT_REPLAYED);
                }
                response.json(body)
            }
        }
    }
}

impl PartialSchema for NewTaskResponse {
    fn schema() -> RefOr<Schema> {
        let webhooks = ArrayBuilder::new()
            .items(Ref::from_schema_name(WebhookResponse::name()))
            .description(Some(
                "The webhooks, in the order of the request, if it had some.",
            ));
        changed_schema::<TaskResponse>(|task| {
            task.properties
                .insert("webhooks".to_owned(), webhooks.into());
            task.description =
                Some("A new task, with its webhooks if the request had some.".to_owned());
        })
    }
}

impl ToSchema for NewTaskResponse {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        TaskResponse::schemas(schemas);
        schemas.push((
            WebhookResponse::name().into_owned(),
            WebhookResponse::schema(),
        ));
        WebhookResponse::schemas(schemas);
    }
}
