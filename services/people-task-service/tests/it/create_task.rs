use serde_json::{Value, json};

use crate::fixture::{DEFAULT_FIELDS, Fixture};

#[tokio::test]
async fn a_new_task_has_public_and_two_secrets() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let reply = app
        .try_create(
            &ada,
            json!({
                "title": "  Buy a printer ",
                "description": " The first one jams.\n",
                "decisionBy": "2026-12-31 17:00:00",
                "approver": " Grace@Example.com ",
            }),
        )
        .await
        .expect(200);
    let mut expected = DEFAULT_FIELDS.to_vec();
    expected.extend(["public", "approverSecret", "requesterSecret"]);
    expected.sort_unstable();
    assert_eq!(reply.fields(), expected);
    assert_eq!(reply.json["title"], "Buy a printer");
    assert_eq!(reply.json["description"], " The first one jams.\n");
    assert_eq!(reply.json["decisionBy"], "2026-12-31 17:00:00");
    assert_eq!(reply.json["approver"], "Grace@Example.com");
    assert_eq!(reply.json["status"], "pending");
    assert_eq!(reply.json["public"], false);
    let id = reply.text_of("id");
    assert!(
        id.len() == 24
            && id
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    );
    let (approver, requester) = (
        reply.text_of("approverSecret"),
        reply.text_of("requesterSecret"),
    );
    assert_ne!(approver, requester);
    for secret in [&approver, &requester] {
        assert!(secret.len() == 64 && secret.bytes().all(|b| b.is_ascii_hexdigit()));
        // Only the hash is stored.
        assert!(
            app.database
                .rows_that_hold("people_task", secret)
                .is_empty()
        );
    }
}

#[tokio::test]
async fn absent_fields_have_defaults() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let reply = app
        .try_create(
            &ada,
            json!({"description": null, "public": null, "decisionBy": null}),
        )
        .await
        .expect(200);
    assert_eq!(reply.json["description"], "");
    assert_eq!(reply.json["decisionBy"], Value::Null);
    assert_eq!(reply.json["public"], false);
}

#[tokio::test]
async fn a_due_date_with_an_offset_becomes_utc() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let body = json!({"decisionBy": "2026-06-01T00:30:00.000+02:00"});
    let reply = app.try_create(&ada, body).await.expect(200);
    assert_eq!(reply.json["decisionBy"], "2026-05-31 22:30:00");
}

#[tokio::test]
async fn every_invalid_field_is_reported() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let reply = app
        .try_create(
            &ada,
            json!({
                "title": "   ", "requester": "nobody", "approver": null,
                "description": "a\u{0}b", "decisionBy": "2026-02-30 00:00:00", "public": "yes",
            }),
        )
        .await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(
        reply.bad_fields(),
        [
            "title",
            "requester",
            "approver",
            "description",
            "decisionBy",
            "public"
        ]
    );
    assert_eq!(app.count("tasks"), 0);
}

#[tokio::test]
async fn a_title_needs_a_character_that_can_be_seen_and_keeps_its_joiners() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for title in [
        "\u{200b}",
        "\u{3164}",
        "\u{ad}",
        "\u{2800}",
        "\u{200d}\u{fe0f}",
        "\u{e0041} \u{301}",
    ] {
        let body = json!({"title": title});
        for reply in [
            app.try_create(&ada, body.clone()).await,
            app.put(&ada, &task.path, &body).await,
        ] {
            reply.expect_problem(400, "validation-failed");
            assert_eq!(reply.bad_fields(), ["title"], "{title:?}");
        }
    }
    for title in ["نامه\u{200c}ها", "👩\u{200d}💻", "a\u{200b}", "👍🏽\u{fe0f}"] {
        let reply = app.try_create(&ada, json!({"title": title})).await;
        assert_eq!(reply.expect(200).json["title"], title);
    }
}

#[tokio::test]
async fn unknown_fields_are_ignored() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let body =
        json!({"status": "approved", "id": "0".repeat(24), "creator": "x", "approverSecret": "y"});
    let reply = app.try_create(&ada, body).await.expect(200);
    assert_eq!(reply.json["status"], "pending");
    assert_ne!(reply.json["id"], "0".repeat(24));
    assert_ne!(reply.json["approverSecret"], "y");
}

#[tokio::test]
async fn creating_requires_a_token_and_a_json_object() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let path = "/people-task/tasks";
    let reply = app.http.post(path).json(&json!({})).send().await;
    reply.expect_problem(401, "token-missing");
    assert_eq!(
        reply.header("www-authenticate"),
        Some("Bearer realm=\"countersign\"")
    );
    let reply = app
        .http
        .post(path)
        .bearer("nonsense")
        .json(&json!({}))
        .send()
        .await;
    reply.expect_problem(401, "invalid-token");

    let with_token = || app.http.post(path).bearer(&ada.token);
    let reply = with_token().body("{}").send().await;
    reply.expect_problem(415, "unsupported-media-type");
    let json = |body: String| {
        with_token()
            .header("content-type", "application/json")
            .body(body)
    };
    json("{".to_owned())
        .send()
        .await
        .expect_problem(400, "malformed-json");
    json("[]".to_owned())
        .send()
        .await
        .expect_problem(400, "validation-failed");
    json(" ".repeat(262_145))
        .send()
        .await
        .expect_problem(413, "body-too-large");
}

#[tokio::test]
async fn include_adds_fields() {
    let app = Fixture::start().await;
    let grace = app.user("grace@example.com");
    let body =
        json!({"title": "a", "requester": "ada@example.com", "approver": "grace@example.com"});
    let post = |include: &str| {
        let path = format!("/people-task/tasks?include={include}");
        app.http.post(&path).bearer(&grace.token).json(&body).send()
    };
    let reply = post("created,mtime,decisionMade,isApprover")
        .await
        .expect(200);
    assert_eq!(reply.json["isApprover"], true);
    assert_eq!(reply.json["decisionMade"], Value::Null);
    assert!(reply.text_of("created").ends_with('Z'));
    assert_eq!(
        reply.text_of("created").len(),
        "2026-01-31T09:30:00.000Z".len()
    );
    assert_eq!(reply.json["created"], reply.json["mtime"]);
    let reply = post("colour").await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["include"]);
    let reply = app
        .http
        .post("/people-task/tasks?include=colour")
        .bearer(&grace.token)
        .json(&json!({"requester": "ada@example.com", "approver": "grace@example.com"}));
    let mut bad = reply.send().await.bad_fields();
    bad.sort_unstable();
    assert_eq!(bad, ["include", "title"]);
}
