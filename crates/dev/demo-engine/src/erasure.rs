//! The five calls that erase a user's data in the flow engine.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;
use subtle::ConstantTimeEq;

use crate::engine::Engine;
use crate::users::{Outcome, Step};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    let erasing = |step| {
        move |engine: web::Data<Engine>, id: web::Path<String>, request: HttpRequest| async move {
            erase(&engine, &id, step, &request).await
        }
    };
    let stop = web::post().to(erasing(Step::StopFlows));
    let delete = |step| web::delete().to(erasing(step));
    config
        .route("/users/{id}", web::get().to(show))
        .route("/users/{id}/flows/stop", stop)
        .route("/users/{id}/flows", delete(Step::Flows))
        .route("/users/{id}/logs", delete(Step::Logs))
        .route("/users/{id}/accounts", delete(Step::Accounts))
        .route("/users/{id}/tokens", delete(Step::Tokens));
}

async fn show(engine: web::Data<Engine>, id: web::Path<String>) -> HttpResponse {
    HttpResponse::Ok().json(engine.users.lock().get(&id))
}

async fn erase(engine: &Engine, id: &str, step: Step, request: &HttpRequest) -> HttpResponse {
    if !is_authorized(engine, request) {
        return HttpResponse::Unauthorized()
            .insert_header((header::WWW_AUTHENTICATE, "Bearer"))
            .json(json!({"message": "The bearer token is missing or wrong."}));
    }
    if let Some(outage) = engine.outage() {
        return outage;
    }
    let control = engine.control();
    engine.pause(control.delay).await;

    let mut users = engine.users.lock();
    let user = users.get(id);
    let response = response(step, user.erase(step, control.fail, control.accepted));
    let status = response.status().as_u16();
    user.record_call(step, status);
    tracing::info!(user.id = id, ?step, status, "erasure");
    response
}

fn response(step: Step, outcome: Outcome) -> HttpResponse {
    match (outcome, step) {
        (Outcome::Failed, _) => HttpResponse::InternalServerError()
            .json(json!({"message": "The demo engine simulates a failure."})),
        (Outcome::Working(left), _) => {
            let seconds = left.as_millis().div_ceil(1_000).max(1);
            HttpResponse::Accepted()
                .insert_header((header::RETRY_AFTER, seconds.to_string()))
                .json(json!({}))
        }
        // The contract has two responses for "nothing to erase". Both are used.
        (Outcome::Done(0), Step::StopFlows) => HttpResponse::NoContent().finish(),
        (Outcome::Done(0), _) => {
            HttpResponse::NotFound().json(json!({"message": "There is nothing to delete."}))
        }
        (Outcome::Done(count), Step::StopFlows) => {
            HttpResponse::Ok().json(json!({"stopped": count}))
        }
        (Outcome::Done(count), _) => HttpResponse::Ok().json(json!({"deleted": count})),
    }
}

fn is_authorized(engine: &Engine, request: &HttpRequest) -> bool {
    let Some(expected) = &engine.token else {
        return true;
    };
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.as_bytes().split_first_chunk::<7>());
    given.is_some_and(|(scheme, token)| {
        scheme.eq_ignore_ascii_case(b"bearer ")
            && bool::from(token.ct_eq(expected.expose().as_bytes()))
    })
}
