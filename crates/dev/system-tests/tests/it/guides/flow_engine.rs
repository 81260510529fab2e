//! The flow engine of `docs/flow-engine.md` gets decisions and deletes users' data.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Http, eventually};

use super::page::program;
use super::runner::installed;
use crate::harness::System;

const TOKEN: &str = "a token for the engine";
const ADA: &str = "ada@example.com";

/// The engine as a process, which ends with this value.
struct Engine(Child);

impl Drop for Engine {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Engine {
    async fn start(system: &System, address: SocketAddr, folder: &TempDir) -> Self {
        let file = folder.path().join("engine.py");
        fs::write(&file, program("flow-engine", "python")).unwrap();
        let child = Command::new("python3")
            .arg(file)
            .current_dir(folder.path())
            .env("COUNTERSIGN_URL", system.http.base())
            .env("ENGINE_URL", format!("http://{address}"))
            .env("FLOW_ENGINE_TOKEN", TOKEN)
            .env(
                "WEBHOOK_SECRET",
                format!("whsec_{}", STANDARD.encode([7; 32])),
            )
            .spawn()
            .unwrap();
        let engine = Self(child);
        eventually("the engine to listen", || async {
            TcpStream::connect(address).ok().map(drop)
        })
        .await;
        engine
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flow_engine_of_the_page_waits_continues_and_deletes() {
    if !installed(&["python3"]) {
        return;
    }
    let port = local_stack::ports::several(1).unwrap()[0];
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let url = format!("http://{address}");
    let settings = [
        ("FLOW_ENGINE_URL", url.as_str()),
        ("FLOW_ENGINE_TOKEN", TOKEN),
    ];
    let system = System::start_with(&settings).await;
    let folder = TempDir::new().unwrap();
    let _engine = Engine::start(&system, address, &folder).await;
    let engine = Http::to(address);
    let token = system.sign_up(ADA).await;
    let user = system.get("/user", &token).await.json;

    let start = json!({"token": token, "user": user});
    let started = engine.post("/flows").json(&start).send().await.expect(200);
    let flow = format!("/flows/{}", started.json["flow"]);
    let task = format!("/people-task/tasks/{}", started.text_of("taskId"));
    assert_eq!(engine.get(&flow).send().await.json["state"], "waiting");
    let forged = format!("/decisions?correlationId={}", started.json["flow"]);
    let forged = engine
        .post(&forged)
        .header("webhook-id", "1")
        .header("webhook-timestamp", "1")
        .header("webhook-signature", "v1,AAAA");
    let _ = forged
        .json(&json!({"status": "approved"}))
        .send()
        .await
        .expect(401);
    receives_a_test(&system, &task, &token).await;
    assert_eq!(engine.get(&flow).send().await.json["state"], "waiting");

    let path = format!("{task}/approve");
    let _ = system.put(&path, &token, &json!({})).await;
    eventually("the flow to continue", || async {
        let flow = engine.get(&flow).send().await.expect(200);
        (flow.json["state"] == "approved").then_some(())
    })
    .await;
    receives_the_delivery_again(&system, &task, &token).await;

    let id = user["id"].as_str().unwrap();
    deletes(&system, id).await;
    let _ = engine.get(&flow).send().await.expect(404);
    let refused = engine.post(&format!("/users/{id}/flows/stop")).send().await;
    assert_eq!(refused.status, 401);
    system.stop().await;
}

async fn receives_a_test(system: &System, task: &str, token: &str) {
    let webhooks = system.get(&format!("{task}/webhooks"), token).await.json;
    let id = webhooks[0]["id"].as_str().unwrap();
    let path = format!("/people-task/webhooks/{id}/test");
    let tested = system.post(&path, token, &json!({})).await.json;
    assert_eq!(tested["success"], true, "{tested}");
}

async fn receives_the_delivery_again(system: &System, task: &str, token: &str) {
    let path = format!("{task}/deliveries");
    let attempts = |delivery: &Value| delivery["attempts"].as_array().unwrap().len();
    let delivery = eventually("the delivery to end", || async {
        let deliveries = system.get(&path, token).await.json;
        (deliveries[0]["status"] == "sent").then(|| deliveries[0].clone())
    })
    .await;
    let again = format!(
        "/people-task/deliveries/{}/redeliver",
        delivery["id"].as_str().unwrap()
    );
    let _ = system.post(&again, token, &json!({})).await;
    eventually("the engine to accept it again", || async {
        let again = system.get(&path, token).await.json[0].clone();
        let is_sent = again["status"] == "sent" && attempts(&again) > attempts(&delivery);
        is_sent.then_some(())
    })
    .await;
}

async fn deletes(system: &System, user: &str) {
    let path = format!("/users/{user}");
    let request = system.http.delete(&path).bearer(&system.admin);
    let ticket = request.send().await.expect(200).text_of("ticket");
    let path = format!("{path}/delete-status/{ticket}");
    eventually("the deletion to end", || async {
        let status = system.get(&path, &system.admin).await.json;
        assert_ne!(status["status"], "failed", "{status}");
        (status["status"] == "completed").then_some(())
    })
    .await;
}
