//! A flow engine that only the user-service or only the deletion-worker has, or that is another server.

use std::time::Duration;

use actix_web::http::header::LOCATION;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use app_config::{Reader, Settings as _};
use user_service::deletions::Step;
use user_service::{DeletionWorkerSettings, UserServiceSettings, run, run_deletion_worker};

use crate::deletion_worker::fixture::Fixture;

const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts the user-service and then a worker, and returns why the worker did not start.
async fn refusal(fixture: &Fixture, service: &[(&str, &str)], worker: &[(&str, &str)]) -> String {
    let common = [("LISTEN_ADDRESS", "127.0.0.1:0"), ("BCRYPT_COST", "4")];
    let changes: Vec<_> = common.iter().chain(service).copied().collect();
    let mut reader = Reader::from_pairs(fixture.environment(&changes)).unwrap();
    let service = run(UserServiceSettings::read(&mut reader).unwrap()).await;
    let mut reader = Reader::from_pairs(fixture.environment(worker)).unwrap();
    let settings = DeletionWorkerSettings::read(&mut reader).unwrap();
    let refusal = run_deletion_worker(settings).await.err();
    service.unwrap().stop(STOP_TIMEOUT).await;
    refusal.map_or_else(String::new, |error| error.to_string())
}

#[actix_web::test]
async fn a_worker_whose_engine_is_unknown_to_the_service_does_not_start() {
    let fixture = Fixture::new().await;
    let without = [("FLOW_ENGINE_URL", "")];
    assert_eq!(refusal(&fixture, &[], &[]).await, "");
    assert_eq!(refusal(&fixture, &without, &without).await, "");
    let reason = refusal(&fixture, &without, &[]).await;
    let expected = "FLOW_ENGINE_URL is set for the deletion-worker but not for the user-service";
    assert!(reason.starts_with(expected), "{reason}");
    let reason = refusal(&fixture, &[], &without).await;
    let expected = "FLOW_ENGINE_URL is set for the user-service but not for the deletion-worker";
    assert!(reason.starts_with(expected), "{reason}");
}

#[actix_web::test]
async fn a_deletion_without_steps_at_the_workers_engine_fails_and_deletes_nothing() {
    let fixture = Fixture::new().await;
    let ada = fixture.user("ada@example.com");
    let job = fixture.delete_by(ada, &Step::for_new_deletion(false));
    let worker = fixture.worker(&[]).await;
    let ended = fixture.ended(job).await;
    assert_eq!((ended.status.as_str(), ended.steps_done), ("failed", 0));
    let failure = ended.failure.unwrap();
    assert_eq!(failure["attempts"], 1);
    let detail = failure["detail"].as_str().unwrap();
    assert!(detail.contains("FLOW_ENGINE_URL"), "{detail}");
    assert!(fixture.people_tasks.calls().is_empty());
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn engine_steps_fail_with_the_name_of_the_setting_when_no_engine_is_configured() {
    let fixture = Fixture::new().await;
    let worker = fixture
        .worker(&[("FLOW_ENGINE_URL", ""), ("DELETE_MAX_ATTEMPTS", "1")])
        .await;
    let job = fixture.delete(fixture.user("ada@example.com"));
    let failure = fixture.ended(job).await.failure.unwrap();
    assert!(
        failure["detail"]
            .as_str()
            .unwrap()
            .contains("FLOW_ENGINE_URL"),
        "{failure}"
    );
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn without_an_engine_the_other_steps_complete() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker(&[("FLOW_ENGINE_URL", "")]).await;
    let job = fixture.delete_by(
        fixture.user("ada@example.com"),
        &Step::for_new_deletion(false),
    );
    let ended = fixture.ended(job).await;
    assert_eq!((ended.status.as_str(), ended.steps_done), ("completed", 3));
    worker.stop(STOP_TIMEOUT).await;
}

/// A login page: it redirects every request to a path with the status 200.
async fn login_page(request: HttpRequest) -> HttpResponse {
    if request.path() == "/login" {
        return HttpResponse::Ok().finish();
    }
    HttpResponse::Found()
        .insert_header((LOCATION, "/login"))
        .finish()
}

#[actix_web::test]
async fn a_redirect_of_the_engine_deletes_nothing() {
    let server = HttpServer::new(|| App::new().default_service(web::to(login_page)));
    let server = server.workers(1).bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", server.addrs()[0]);
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    let fixture = Fixture::new().await;
    let settings = [
        ("FLOW_ENGINE_URL", url.as_str()),
        ("DELETE_MAX_ATTEMPTS", "1"),
    ];
    let worker = fixture.worker(&settings).await;
    let job = fixture.delete(fixture.user("ada@example.com"));
    let ended = fixture.ended(job).await;
    assert_eq!(ended.status, "failed");
    let failure = ended.failure.unwrap();
    assert!(
        failure["detail"].as_str().unwrap().contains("302"),
        "{failure}"
    );
    worker.stop(STOP_TIMEOUT).await;
    handle.stop(false).await;
}
