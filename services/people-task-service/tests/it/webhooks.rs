use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use serde_json::json;

use crate::fixture::Fixture;

const URL: &str = "http://127.0.0.1:8090/flows/1?correlationId=a%2Fb&correlationInPort=in";

#[tokio::test]
async fn a_webhook_has_four_fields_and_its_url_as_given() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let body = json!({"taskId": task.id, "url": URL, "secret": secret, "status": "sent"});
    let reply = app.try_register(&ada, &body).await.expect(200);
    assert_eq!(reply.fields(), ["id", "status", "taskId", "url"]);
    assert_eq!(reply.json["url"], URL);
    assert_eq!(reply.json["taskId"], task.id.as_str());
    assert_eq!(reply.json["status"], "pending");
    assert_eq!(reply.text_of("id").len(), 24);
    let list = app
        .get(&ada, &format!("{}/webhooks", task.path))
        .await
        .expect(200);
    assert_eq!(list.json, json!([reply.json]));
    assert_eq!(app.count("webhooks WHERE NOT with_task_id"), 1);
}

#[tokio::test]
async fn events_are_shown_where_they_are_not_the_default_of_the_path() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app.create(&ada, json!({})).await;
    let (own, plugin) = ("people-task", "plugins/appmixer/utils/tasks");
    let mut registered = Vec::new();
    for (path, events, shown) in [
        (own, json!(null), json!(null)),
        (own, json!(["rejected", "approved"]), json!(null)),
        (own, json!(["due", "due"]), json!(["due"])),
        (
            own,
            json!(["due", "rejected", "approved"]),
            json!(["approved", "rejected", "due"]),
        ),
        (own, json!(["cancelled"]), json!(["cancelled"])),
        (plugin, json!(null), json!(null)),
        (plugin, json!(["approved"]), json!(["approved"])),
    ] {
        let post = app.http.post(&format!("/{path}/webhooks"));
        let body = json!({"taskId": task.id, "url": URL, "events": events});
        let reply = post.bearer(&ada.token).json(&body).send().await.expect(200);
        assert_eq!(reply.json.get("events"), shown.as_array().map(|_| &shown));
        registered.push(shown);
    }
    let path = format!("{}/webhooks", task.path);
    for (user, expected) in [(&ada, registered), (&grace, vec![json!(null); 7])] {
        let list = app.get(user, &path).await.expect(200);
        let list = list.json.as_array().unwrap();
        let events: Vec<_> = list.iter().map(|one| one["events"].clone()).collect();
        assert_eq!(events, expected);
    }
}

#[tokio::test]
async fn every_invalid_field_is_reported() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for (body, expected) in [
        (json!({}), &["url", "taskId"][..]),
        (
            json!({"url": "ftp://x.example.com", "taskId": "x", "secret": "whsec_short"}),
            &["url", "secret", "taskId"],
        ),
        (
            json!({"url": "http://127.0.0.1/", "taskId": task.id, "secret": "abc"}),
            &["secret"],
        ),
        (
            json!({"url": format!("http://127.0.0.1/{}", "a".repeat(2048)), "taskId": task.id}),
            &["url"],
        ),
    ] {
        let reply = app.try_register(&ada, &body).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), expected);
    }
    let unknown = json!({"url": URL, "taskId": "0".repeat(24)});
    app.try_register(&ada, &unknown)
        .await
        .expect_problem(404, "not-found");
}

#[tokio::test]
async fn a_url_with_credentials_or_two_readings_is_refused() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for (url, code) in [
        ("http://ada:secret@127.0.0.1:8090/", "credentials-in-url"),
        ("http://ada@127.0.0.1:8090/", "credentials-in-url"),
        ("http://example.com\\@127.0.0.1:8090/", "invalid-url"),
        ("http:127.0.0.1:8090/", "invalid-url"),
        ("http:///127.0.0.1:8090/", "invalid-url"),
        ("http://127.0.0.1%3a8090/", "invalid-url"),
        ("http://127.0.0.1:8090/a\tb", "invalid-url"),
        // No index can hold the host, so the decision could not be stored with its deliveries.
        (
            &format!("http://{}/", "\u{4e2d}\u{56fd}".repeat(500)),
            "invalid-url",
        ),
    ] {
        let reply = app
            .try_register(&ada, &json!({"url": url, "taskId": task.id}))
            .await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), ["url"]);
        assert_eq!(reply.json["errors"][0]["code"], code, "{url}");
    }
    let url = "http://127.0.0.1:8090/a b/../{c}?d='e'|\u{fc}#f";
    let body = json!({"url": url, "taskId": task.id});
    let reply = app.try_register(&ada, &body).await.expect(200);
    assert_eq!(reply.json["url"], url);
}

#[tokio::test]
async fn webhooks_of_earlier_versions_whose_hosts_are_too_long_are_removed() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for path in ["long", "short"] {
        let body = json!({"url": format!("{URL}{path}"), "taskId": task.id});
        let _ = app.try_register(&ada, &body).await.expect(200);
    }
    app.execute("ALTER TABLE webhooks DROP CONSTRAINT webhooks_have_short_hosts");
    app.execute("UPDATE webhooks SET host = repeat('a', 254) WHERE url LIKE '%long'");
    app.execute(include_str!(
        "../../migrations/00000000000065_short_hosts_of_webhooks/up.sql"
    ));
    app.execute(include_str!(
        "../../migrations/00000000000067_webhooks_of_long_hosts/up.sql"
    ));
    assert_eq!(app.count("webhooks WHERE url LIKE '%short'"), 1);
    assert_eq!(app.count("webhooks"), 1);
    // As processes of earlier versions do.
    let long = "UPDATE people_task.webhooks SET host = repeat('a', 254)";
    assert!(app.database.admin().batch_execute(long).is_err());
}

#[tokio::test]
async fn a_private_address_is_refused_unless_it_is_allowed() {
    let app = Fixture::start_with(&[("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.2/32")]).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for url in [
        "http://127.0.0.1/",
        "http://localhost:8080/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://0.0.0.0/",
    ] {
        let reply = app
            .try_register(&ada, &json!({"url": url, "taskId": task.id}))
            .await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(
            reply.json["errors"][0]["code"], "address-not-allowed",
            "{url}"
        );
        assert_eq!(reply.bad_fields(), ["url"]);
    }
    let _ = app.register(&ada, &task, "http://127.0.0.2/").await;
    // A host that does not resolve may resolve later; it is checked again at every connection.
    let _ = app.register(&ada, &task, "http://nowhere.invalid/").await;
}

#[tokio::test]
async fn only_people_who_may_register_learn_what_a_host_resolves_to() {
    let app = Fixture::start_with(&[("WEBHOOK_ALLOWED_NETWORKS", "")]).await;
    let (ada, eve) = (app.user("ada@example.com"), app.user("eve@example.com"));
    let hidden = app.create(&ada, json!({})).await.id;
    let public = app.create(&ada, json!({"public": true})).await.id;
    let unknown = "0".repeat(24);
    for (user, task, status, code) in [
        (&eve, &unknown, 404, "not-found"),
        (&eve, &hidden, 404, "not-found"),
        (&eve, &public, 403, "forbidden"),
        (&ada, &unknown, 404, "not-found"),
        (&ada, &hidden, 400, "validation-failed"),
    ] {
        for host in ["localhost", "127.0.0.1"] {
            let url = format!("http://{host}:8080/");
            let body = json!({"url": url, "taskId": task});
            app.try_register(user, &body)
                .await
                .expect_problem(status, code);
        }
    }
    assert_eq!(app.count("webhooks"), 0);
}

#[tokio::test]
async fn concurrent_registrations_never_exceed_20_webhooks() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let body = json!({"taskId": task.id, "url": URL});
    let replies = join_all((0..30).map(|_| app.try_register(&ada, &body))).await;
    let (registered, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|r| r.status == 200);
    assert_eq!(registered.len(), 20);
    for reply in refused {
        reply.expect_problem(409, "too-many-webhooks");
    }
    // After a deletion, another one can be registered.
    let path = format!("/people-task/webhooks/{}", registered[0].text_of("id"));
    let _ = app
        .http
        .delete(&path)
        .bearer(&ada.token)
        .send()
        .await
        .expect(200);
    let _ = app.register(&ada, &task, URL).await;
}

#[tokio::test]
async fn a_resolved_task_accepts_no_webhook() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let _ = app.approve(&ada, &task).await.expect(200);
    let reply = app
        .try_register(&ada, &json!({"taskId": task.id, "url": URL}))
        .await;
    reply.expect_problem(409, "task-already-resolved");
    assert_eq!(reply.json["taskStatus"], "approved");
}

#[tokio::test]
async fn get_and_delete_both_delete_and_return_an_empty_object() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for by_get in [true, false] {
        let path = format!(
            "/people-task/webhooks/{}",
            app.register(&ada, &task, URL).await
        );
        let request = || {
            let request = if by_get {
                app.http.get(&path)
            } else {
                app.http.delete(&path)
            };
            request.bearer(&ada.token).send()
        };
        let reply = request().await.expect(200);
        assert_eq!(reply.text, "{}");
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert_eq!(app.count("webhooks"), 0);
        request().await.expect_problem(404, "not-found");
    }
}

#[tokio::test]
async fn the_user_who_registered_a_webhook_may_delete_it() {
    let app = Fixture::start().await;
    let carol = app.user("carol@example.com");
    let (grace, ada) = (app.user("grace@example.com"), app.user("ada@example.com"));
    let task = app.create(&carol, json!({})).await;
    let path = format!(
        "/people-task/webhooks/{}",
        app.register(&grace, &task, URL).await
    );
    let delete = |token: &str| app.http.delete(&path).bearer(token).send();
    delete(&ada.token).await.expect_problem(403, "forbidden");
    // Even after the task was handed over.
    let handed_over = json!({"approver": "linus@example.com"});
    let _ = app.put(&grace, &task.path, &handed_over).await.expect(200);
    app.get(&grace, &task.path)
        .await
        .expect_problem(404, "not-found");
    let _ = delete(&grace.token).await.expect(200);
}

#[tokio::test]
async fn calls_use_the_share_of_the_user_who_registered_the_webhook() {
    let app = Fixture::start().await;
    let (carol, grace) = (app.user("carol@example.com"), app.user("grace@example.com"));
    let task = app.create(&carol, json!({})).await;
    for user in [&carol, &grace] {
        let webhook = app.register(user, &task, URL).await;
        let lane = app.value(&format!(
            "SELECT lane AS value FROM webhooks WHERE encode(id, 'hex') = '{webhook}'"
        ));
        let lane = lane.unwrap();
        assert!(lane.ends_with(&format!(" {}", user.id)), "{lane}");
    }
}

#[tokio::test]
async fn deleting_a_webhook_deletes_its_delivery() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let webhook = app.register(&ada, &task, URL).await;
    let _ = app.approve(&ada, &task).await.expect(200);
    assert_eq!(app.count("deliveries"), 1);
    let _ = app
        .get(&ada, &format!("/people-task/webhooks/{webhook}"))
        .await
        .expect(200);
    assert_eq!(app.count("deliveries"), 0);
}

#[tokio::test]
async fn the_signing_keys_are_published() {
    let previous = testkit::ed25519_pem();
    let app = Fixture::start_with(&[("WEBHOOK_PREVIOUS_SIGNING_KEY", previous.expose())]).await;
    let reply = app
        .http
        .get("/.well-known/webhook-keys.json")
        .send()
        .await
        .expect(200);
    let keys = reply.json["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 2);
    for key in keys {
        assert_eq!(
            (&key["kty"], &key["crv"]),
            (&json!("OKP"), &json!("Ed25519"))
        );
        let whpk = key["whpk"].as_str().unwrap().strip_prefix("whpk_").unwrap();
        assert_eq!(whpk.len(), 44);
        let as_url = whpk.replace('+', "-").replace('/', "_");
        assert_eq!(key["x"].as_str().unwrap(), as_url.trim_end_matches('='));
        assert!(key.get("d").is_none());
    }
}

#[tokio::test]
async fn approvers_and_requesters_leave_room_for_the_webhooks_of_the_creator() {
    let app = Fixture::start().await;
    let [creator, approver, requester] =
        ["ada", "grace", "linus"].map(|name| app.user(&format!("{name}@example.com")));
    let people = json!({"approver": approver.email, "requester": requester.email});
    let task = app.create(&creator, people).await;
    let body = json!({"taskId": task.id, "url": "http://127.0.0.1:9/"});
    // Also if they come at once.
    let registered = join_all((0..12).map(|number| {
        let user = if number % 2 == 0 {
            &approver
        } else {
            &requester
        };
        app.try_register(user, &body)
    }));
    let statuses: Vec<_> = registered.await.iter().map(|reply| reply.status).collect();
    let number = |status| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((number(200), number(409)), (10, 2));
    let refused = app.try_register(&approver, &body).await;
    refused.expect_problem(409, "too-many-webhooks");
    for _ in 0..5 {
        app.register(&creator, &task, "http://127.0.0.1:9/").await;
        let _ = app.try_register(&app.admin(), &body).await.expect(200);
    }
    let refused = app.try_register(&creator, &body).await;
    refused.expect_problem(409, "too-many-webhooks");
}
