//! `PUT /users/:userId`.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::fixture::{ADMIN, Fixture, PASSWORD, Person};

#[tokio::test]
async fn every_field_can_be_changed() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let change = json!({
        "username": "new@example.com", "email": "mail@example.com", "password": "battery staple",
        "isActive": true, "plan": "gold", "scope": ["user", "tester", "tester"],
        "vendor": ["acme", "umbrella"], "allowedPrivateComponents": ["a.b.C"], "metadata": {"a": 1},
    });
    let reply = app.update(&admin, &ada.id, &change).await.expect(200);
    let mut expected = change;
    let fields = expected.as_object_mut().unwrap();
    fields.remove("password");
    fields.insert("scope".to_owned(), json!(["user", "tester"]));
    for field in ["created", "mtime", "lastSignIn"] {
        fields.insert(field.to_owned(), reply.json[field].clone());
    }
    fields.insert("id".to_owned(), json!(ada.id));
    assert_eq!(reply.json, expected);
    assert!(reply.json["mtime"].as_str() > reply.json["created"].as_str());
    let again = app
        .get(&admin, &format!("/users/{}", ada.id))
        .await
        .expect(200);
    assert_eq!(again.json, reply.json);
    for name in ["new@example.com", "mail@example.com"] {
        let _ = app.sign_in(name, "battery staple").await.expect(200);
    }
    // The old name is available again.
    let _ = app.sign_up("ada@example.com").await;
}

#[tokio::test]
async fn sending_the_whole_user_back_changes_nothing() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let path = format!("/users/{}", ada.id);
    let mut user = app.get(&admin, &path).await.expect(200).json;
    user["password"] = json!(PASSWORD);
    let reply = app.update(&admin, &ada.id, &user).await.expect(200);
    let fields = user.as_object_mut().unwrap();
    fields.remove("password");
    assert_eq!(reply.json, user);
    app.assert_token(&ada, true).await;
}

#[tokio::test]
async fn a_field_that_is_null_stays_as_it_is_but_for_the_vendor() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let given = json!({
        "email": "mail@example.com", "plan": "gold", "scope": ["user", "tester"], "vendor": "acme",
        "allowedPrivateComponents": ["a.b.C"], "metadata": {"a": 1},
    });
    let mut expected = app.update(&admin, &ada.id, &given).await.expect(200).json;
    let mut nulls = json!({
        "username": null, "email": null, "password": null, "isActive": null, "plan": null, "scope": null,
        "allowedPrivateComponents": null, "metadata": null,
    });
    let reply = app.update(&admin, &ada.id, &nulls).await.expect(200);
    assert_eq!(reply.json, expected);
    nulls["vendor"] = Value::Null;
    let reply = app.update(&admin, &ada.id, &nulls).await.expect(200);
    expected["vendor"] = Value::Null;
    expected["mtime"] = reply.json["mtime"].clone();
    assert_eq!(reply.json, expected);
    let _ = app.sign_in("ada@example.com", PASSWORD).await.expect(200);
}

#[tokio::test]
async fn changes_of_what_a_token_depends_on_revoke_it() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    for (number, (change, revokes)) in [
        (json!({"email": "x0@example.com"}), true),
        (json!({"username": "x1@example.com"}), true),
        (json!({"scope": ["user", "tester"]}), true),
        (json!({"password": "battery staple"}), true),
        (json!({"isActive": false}), true),
        (
            json!({"isActive": true, "password": PASSWORD, "scope": ["user"]}),
            false,
        ),
        (
            json!({"plan": "gold", "vendor": "acme", "metadata": {"a": 1}}),
            false,
        ),
        (json!({"allowedPrivateComponents": ["a"]}), false),
        (json!({}), false),
    ]
    .into_iter()
    .enumerate()
    {
        let person = app.sign_up(&format!("user{number}@example.com")).await;
        let _ = app.update(&admin, &person.id, &change).await.expect(200);
        app.assert_token(&person, !revokes).await;
    }
}

#[tokio::test]
async fn the_vendor_can_be_removed() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    for vendor in [json!("acme"), json!(["acme"]), json!([]), Value::Null] {
        let change = json!({"vendor": vendor});
        let reply = app.update(&admin, &ada.id, &change).await.expect(200);
        assert_eq!(reply.json["vendor"], vendor);
    }
}

#[tokio::test]
async fn every_invalid_field_is_listed_and_nothing_is_changed() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let change = json!({
        "username": "ada", "email": 1, "password": "1234", "isActive": "yes", "plan": "",
        "scope": "admin", "vendor": 5, "allowedPrivateComponents": [1],
        "metadata": {"a": "x".repeat(5000)},
    });
    let reply = app.update(&admin, &ada.id, &change).await;
    reply.expect_problem(400, "validation-failed");
    let fields = [
        "username",
        "email",
        "password",
        "isActive",
        "plan",
        "scope",
        "vendor",
        "allowedPrivateComponents",
        "metadata",
    ];
    let mut listed = reply.bad_fields();
    listed.sort();
    let mut expected = fields.to_vec();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    app.assert_token(&ada, true).await;
    // The body is checked before the user is looked up.
    let reply = app.update(&admin, "nobody", &json!({"plan": 1})).await;
    reply.expect_problem(400, "validation-failed");
    for id in ["nobody", "000000000000000000000000"] {
        for change in [json!({}), json!({"password": PASSWORD})] {
            app.update(&admin, id, &change)
                .await
                .expect_problem(404, "not-found");
        }
    }
}

#[tokio::test]
async fn names_of_other_users_are_refused() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let update = async |change: Value| app.update(&admin, &ada.id, &change).await;
    update(json!({"username": "ADMIN@example.com"}))
        .await
        .expect_problem(409, "username-taken");
    update(json!({"email": "Admin@example.com"}))
        .await
        .expect_problem(409, "email-taken");
    update(json!({"email": ADMIN, "username": ADMIN}))
        .await
        .expect_problem(409, "username-taken");
    app.assert_token(&ada, true).await;
}

#[tokio::test]
async fn concurrent_swaps_of_names_are_refused_without_a_deadlock() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let (ada, bob) = (
        app.sign_up("ada@example.com").await,
        app.sign_up("bob@example.com").await,
    );
    for _ in 0..25 {
        let (to_bob, to_ada) = (
            json!({"username": "bob@example.com", "email": "bob@example.com"}),
            json!({"username": "ada@example.com", "email": "ada@example.com"}),
        );
        let swap = [(&ada, &to_bob), (&bob, &to_ada)];
        let swap = swap.map(|(user, change)| app.update(&admin, &user.id, change));
        for reply in join_all(swap).await {
            reply.expect_problem(409, "username-taken");
        }
    }
    app.assert_token(&ada, true).await;
    app.assert_token(&bob, true).await;
}

#[tokio::test]
async fn the_last_active_administrator_cannot_be_demoted() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    for change in [
        json!({"scope": ["user"]}),
        json!({"isActive": false}),
        json!({"scope": []}),
    ] {
        let reply = app.update(&admin, &admin.id, &change).await;
        reply.expect_problem(409, "last-admin");
    }
    // An inactive administrator does not count.
    let other = app.make_admin("other@example.com").await;
    let _ = app
        .update(&admin, &other.id, &json!({"isActive": false}))
        .await
        .expect(200);
    let reply = app
        .update(&admin, &admin.id, &json!({"scope": ["user"]}))
        .await;
    reply.expect_problem(409, "last-admin");
    let _ = app
        .update(&admin, &other.id, &json!({"isActive": true}))
        .await
        .expect(200);
    let _ = app
        .update(&admin, &admin.id, &json!({"scope": ["user"]}))
        .await
        .expect(200);
}

#[tokio::test]
async fn concurrent_demotions_leave_one_administrator() {
    let app = Fixture::start().await;
    for round in 0..3 {
        let root = app.admin().await;
        let mut admins: Vec<Person> = Vec::new();
        for number in 0..4 {
            admins.push(
                app.make_admin(&format!("admin{round}{number}@example.com"))
                    .await,
            );
        }
        admins.push(root.clone());
        let body = |index: usize| match index % 2 {
            0 => json!({"scope": ["user"]}),
            _ => json!({"isActive": false}),
        };
        let demotions = admins.iter().enumerate().map(|(index, person)| {
            let request = app
                .http
                .put(&format!("/users/{}", person.id))
                .bearer(&root.token);
            request.json(&body(index)).send()
        });
        let replies = join_all(demotions).await;
        let count = |status| {
            replies
                .iter()
                .filter(|reply| reply.status == status)
                .count()
        };
        // The caller may be demoted before the others; then its token is refused.
        assert_eq!(count(500), 0, "{replies:?}");
        assert!(count(200) < admins.len());
        restore_root(&app);
    }
}

/// Restores the first administrator and demotes all others.
fn restore_root(app: &Fixture) {
    use diesel::RunQueryDsl as _;
    use diesel::sql_types::BigInt;

    #[derive(diesel::QueryableByName)]
    struct Admins {
        #[diesel(sql_type = BigInt)]
        admins: i64,
    }
    let mut connection = app.admin_connection();
    let left: Admins = diesel::sql_query(
        "SELECT count(*) AS admins FROM users.users WHERE is_active AND scope @> '{admin}'",
    )
    .get_result(&mut connection)
    .unwrap();
    assert!(left.admins >= 1);
    diesel::sql_query(format!(
        "UPDATE users.users SET is_active = true, scope = CASE username_key WHEN '{ADMIN}' \
         THEN '{{user,admin}}'::text[] ELSE '{{user}}' END"
    ))
    .execute(&mut connection)
    .unwrap();
}
