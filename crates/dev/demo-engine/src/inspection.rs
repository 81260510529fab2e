//! Endpoints that show received calls and control the simulated failures.

use actix_web::{HttpResponse, web};
use serde_json::json;

use crate::control::ControlChange;
use crate::engine::Engine;
use crate::journal::{Filter, Received};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/received")
                .route(web::get().to(list_received))
                .route(web::delete().to(clear_received)),
        )
        .service(
            web::resource("/control")
                .route(web::get().to(show_control))
                .route(web::put().to(change_control)),
        );
}

async fn list_received(engine: web::Data<Engine>, filter: web::Query<Filter>) -> HttpResponse {
    let items = engine.journal.matching(&filter);
    let items: Vec<&Received> = items.iter().map(AsRef::as_ref).collect();
    HttpResponse::Ok().json(json!({ "items": items }))
}

async fn clear_received(engine: web::Data<Engine>) -> HttpResponse {
    engine.journal.clear();
    HttpResponse::Ok().json(json!({}))
}

async fn show_control(engine: web::Data<Engine>) -> HttpResponse {
    HttpResponse::Ok().json(engine.control())
}

async fn change_control(
    engine: web::Data<Engine>,
    change: web::Json<ControlChange>,
) -> HttpResponse {
    HttpResponse::Ok().json(engine.change_control(&change))
}
