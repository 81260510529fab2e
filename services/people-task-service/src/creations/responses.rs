use actix_web::body::BoxBody;
use actix_web::http::header::ETAG;
use actix_web::{HttpRequest, HttpResponse, Responder};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use values::Secret;

use crate::idempotency::IDEMPOTENT_REPLAYED;
use crate::tasks::{TaskResponse, etag};
use crate::webhooks::responses::WebhookResponse;

/// A new task, with its webhooks if the request had some.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewTaskResponse {
    #[serde(flatten)]
    pub(super) task: TaskResponse,
    /// The webhooks, in the order of the request, if it had some.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) webhooks: Option<Vec<WebhookResponse>>,
}

/// The answer to a request for a task, or to a repeat of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreationAnswer {
    #[serde(flatten)]
    without_secrets: IndexMap<String, Box<RawValue>>,
    approver_secret: String,
    requester_secret: String,
    #[serde(skip)]
    replayed: bool,
}

impl CreationAnswer {
    /// Adds the approver's and the requester's secrets to a response as it is stored.
    pub(super) fn new(body: &str, [approver, requester]: &[Secret; 2], replayed: bool) -> Self {
        Self {
            without_secrets: serde_json::from_str(body).unwrap_or_default(),
            approver_secret: approver.expose().to_owned(),
            requester_secret: requester.expose().to_owned(),
            replayed,
        }
    }
}

impl Responder for CreationAnswer {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        // A new task has its first version.
        let mut response = HttpResponse::Ok();
        response.insert_header((ETAG, etag(1)));
        if self.replayed {
            response.insert_header(IDEMPOTENT_REPLAYED);
        }
        response.json(self)
    }
}
