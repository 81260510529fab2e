//! What an operator runs after an installation: `countersign doctor` and `countersign first-decision`.

use serde_json::Value;

use crate::command_line::CommandLine;
use crate::harness::System;

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_what_is_there_and_what_is_missing() {
    let system = System::start().await;
    let secrets = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(secrets.path().join(name), text).unwrap();
    let urls = &system.database.urls;
    write("users_service_database_url", &urls.users_service);
    write(
        "people_task_service_database_url",
        &urls.people_task_service,
    );
    write("amqp_url", &system.setting("AMQP_URL"));
    for unread in [
        "users_owner_database_url",
        "people_task_owner_database_url",
        "token_signing_key.pem",
        "webhook_signing_key.pem",
        "admin_password",
    ] {
        write(unread, "not read");
    }
    let mut cli = CommandLine::of(&system);
    let settings = ["TOKEN_SIGNING_KEY", "WEBHOOK_SIGNING_KEY"].map(|n| (n, system.setting(n)));
    cli.environment.extend(settings);
    cli.environment.extend([
        ("SECRETS_FOLDER", secrets.path().display().to_string()),
        ("USER_SERVICE_URL", system.http.base().to_owned()),
        ("PEOPLE_TASK_SERVICE_URL", system.http.base().to_owned()),
    ]);
    let found = cli.json(&["doctor"]).await;
    let state = |found: &Value, about: &str| {
        let mut findings = found.as_array().unwrap().iter();
        let finding = findings.find(|finding| finding["about"] == about).unwrap();
        finding["state"].as_str().unwrap().to_owned()
    };
    for about in [
        "secrets",
        "settings",
        "database people_task",
        "broker",
        "gateway",
        "administrator",
    ] {
        assert_eq!(state(&found, about), "ok", "{found}");
    }
    assert_eq!(state(&found, "mail"), "not set");

    write(
        "people_task_service_database_url",
        "postgres://a:b@127.0.0.1:9/c",
    );
    write("admin_password", "");
    write("settings.toml", "pubic_url = \"https://example.com\"\n");
    let file = secrets.path().join("settings.toml").display().to_string();
    let wrong = [
        ("LOG_FORMAT", "xml"),
        ("ADMIN_PASSWORD", "wrong password"),
        ("CONFIG_FILE", &file),
    ];
    let ran = cli.run_with(&["doctor", "--json"], &wrong, "").await;
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ran.code, 1);
    for about in ["secrets", "settings", "database people_task"] {
        assert_eq!(state(&found, about), "missing", "{found}");
    }
    assert_eq!(state(&found, "database users"), "ok");
    assert_eq!(state(&found, "setting"), "unknown");
    assert!(ran.stdout.contains("pubic_url"), "{}", ran.stdout);
    assert_eq!(state(&found, "administrator"), "not set");
    assert!(ran.stdout.contains("LOG_FORMAT"), "{}", ran.stdout);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_decision_is_made() {
    let system = System::start().await;
    let cli = CommandLine::of(&system);
    let decided = cli.json(&["first-decision"]).await;
    assert_eq!(decided["status"], "approved");
    assert!(decided["link"].as_str().unwrap().contains("/tasks?id="));
    system.stop().await;
}
