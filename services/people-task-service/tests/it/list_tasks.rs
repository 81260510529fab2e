use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fixture::{DEFAULT_FIELDS, Fixture, User, next_page, titles};

const OTHERS: (&str, &str) = ("x@example.com", "y@example.com");

async fn add(app: &Fixture, by: &User, title: &str, requester: &str, approver: &str) {
    let body = json!({"title": title, "requester": requester, "approver": approver});
    let _ = app.create(by, body).await;
}

/// One task for each role of the user, one for all roles, one for none.
async fn arrange(app: &Fixture) -> User {
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    let (x, y) = OTHERS;
    add(app, &me, "created", x, y).await;
    add(app, &other, "requested", "ME@example.com", y).await;
    add(app, &other, "to approve", x, "Me@Example.com").await;
    add(app, &me, "all three", "me@example.com", "me@example.com").await;
    add(app, &other, "foreign", x, y).await;
    me
}

#[tokio::test]
async fn a_list_has_the_tasks_of_the_users_roles_newest_first() {
    let app = Fixture::start().await;
    let me = arrange(&app).await;
    let all = ["all three", "to approve", "requested", "created"];
    assert_eq!(app.titles(&me, "").await, all);
    assert_eq!(
        app.titles(&me, "role=creator").await,
        ["all three", "created"]
    );
    assert_eq!(
        app.titles(&me, "role=requester").await,
        ["all three", "requested"]
    );
    assert_eq!(
        app.titles(&me, "role=approver").await,
        ["all three", "to approve"]
    );
    for (query, expected) in [
        ("", 4),
        ("role=creator", 2),
        ("pattern=a", 3),
        ("limit=1", 4),
    ] {
        let path = format!("/people-task/tasks-count?{query}");
        let reply = app.get(&me, &path).await.expect(200);
        assert_eq!(reply.json, json!({"count": expected}), "{query}");
    }
    let reply = app.get(&me, "/people-task/tasks").await.expect(200);
    let fields: Vec<_> = reply.json[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, DEFAULT_FIELDS);
    assert_eq!(next_page(&reply), None);
}

#[tokio::test]
async fn only_administrators_may_list_all_tasks() {
    let app = Fixture::start().await;
    let me = arrange(&app).await;
    let root = app.admin();
    assert!(app.titles(&root, "").await.is_empty());
    let expected = ["foreign", "all three", "to approve", "requested", "created"];
    assert_eq!(app.titles(&root, "role=any").await, expected);
    let count = app.get(&root, "/people-task/tasks-count?role=any").await;
    assert_eq!(count.expect(200).json["count"], 5);
    for path in ["/people-task/tasks", "/people-task/tasks-count"] {
        let reply = app.get(&me, &format!("{path}?role=any")).await;
        reply.expect_problem(403, "insufficient-scope");
        let with_bad_form = format!("{path}?role=any&limit=0&filter=x:1");
        let reply = app.get(&me, &with_bad_form).await;
        reply.expect_problem(403, "insufficient-scope");
    }
}

#[tokio::test]
async fn every_sort_has_both_directions_and_puts_null_last() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    for (title, due) in [
        ("b", json!("2030-01-01 00:00:00")),
        ("A", Value::Null),
        ("c", json!("2029-01-01 00:00:00")),
    ] {
        let _ = app
            .create(&me, json!({"title": title, "decisionBy": due}))
            .await;
    }
    let approved = app.create(&me, json!({"title": "d"})).await;
    let _ = app.approve(&me, &approved).await.expect(200);
    let sorted = async |sort: &str| app.titles(&me, &format!("sort={sort}")).await.concat();
    assert_eq!(sorted("title:1").await, "Abcd");
    assert_eq!(sorted("title:-1").await, "dcbA");
    assert_eq!(sorted("created:1").await, "bAcd");
    assert_eq!(sorted("mtime:-1").await, "dcAb");
    assert!(sorted("status:1").await.starts_with('d'));
    assert!(sorted("status:-1").await.ends_with('d'));
    assert!(sorted("decisionBy:1").await.starts_with("cb"));
    assert!(sorted("decisionBy:-1").await.starts_with("bc"));
    for sort in ["decisionMade:1", "decisionMade:-1"] {
        assert!(sorted(sort).await.starts_with('d'), "{sort}");
    }
    let people =
        json!({"title": "e", "approver": "Zoe@example.com", "requester": "Zoe@example.com"});
    let _ = app.create(&me, people).await;
    for sort in ["approver", "requester"] {
        assert!(sorted(&format!("{sort}:1")).await.ends_with('e'), "{sort}");
        assert!(
            sorted(&format!("{sort}:-1")).await.starts_with('e'),
            "{sort}"
        );
    }
}

#[tokio::test]
async fn filters_and_pattern_are_combined() {
    let app = Fixture::start().await;
    let me = arrange(&app).await;
    let body = json!({"title": "50%_off, really", "public": true, "requester": "me@example.com"});
    let task = app.create(&me, body).await;
    let _ = app.approve(&me, &task).await.expect(200);
    for (query, expected) in [
        ("filter=status:approved", &["50%_off, really"][..]),
        ("filter=public:true", &["50%_off, really"]),
        ("filter=title:50%25_OFF\\, really", &["50%_off, really"]),
        (
            "filter=approver:ME@example.com,status:pending",
            &["all three", "to approve"],
        ),
        (
            "filter=requester:me@example.com&filter=public:false",
            &["all three", "requested"],
        ),
        ("pattern=APP", &["to approve"]),
        ("pattern=%25_", &["50%_off, really"]),
        ("pattern=a%25e", &[]),
        ("filter=text:%25_O", &["50%_off, really"]),
        ("filter=text:a%25e", &[]),
        ("pattern=t&role=creator", &["all three", "created"]),
    ] {
        assert_eq!(app.titles(&me, query).await, expected, "{query}");
        let count = app
            .get(&me, &format!("/people-task/tasks-count?{query}"))
            .await;
        assert_eq!(count.expect(200).json["count"], expected.len(), "{query}");
    }
}

#[tokio::test]
async fn the_filter_text_finds_titles_and_people_without_regard_to_accents() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    for (title, approver) in [
        ("Les émigrés", "grace@example.com"),
        ("Ein Büro, groß", "Zoe@example.com"),
        ("Prilis\u{30c} [new] \\ Чай ^", "zlut@example.com"),
    ] {
        let _ = app
            .create(&ada, json!({"title": title, "approver": approver}))
            .await;
    }
    for (text, expected) in [
        ("emigre", &["Les émigrés"][..]),
        ("ÉMIGRÉ", &["Les émigrés"]),
        // The same with an accent of its own.
        ("e%CC%81migre", &["Les émigrés"]),
        ("buro\\,", &["Ein Büro, groß"]),
        ("GRACE@", &["Les émigrés"]),
        ("ZOË", &["Ein Büro, groß"]),
        (
            "ada@example",
            &[
                "Ein Büro, groß",
                "Les émigrés",
                "Prilis\u{30c} [new] \\ Чай ^",
            ],
        ),
        ("bureau", &[]),
        ("příliš [N", &["Prilis\u{30c} [new] \\ Чай ^"]),
        ("\\ чаи ^", &["Prilis\u{30c} [new] \\ Чай ^"]),
        ("ŽLUŤ@", &["Prilis\u{30c} [new] \\ Чай ^"]),
        ("priles", &[]),
    ] {
        let query = format!("sort=title:1&filter=text:{text}");
        assert_eq!(app.titles(&ada, &query).await, expected, "{text}");
    }
}

#[tokio::test]
async fn the_filter_text_knows_both_forms_of_a_small_sigma() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let _ = app.create(&ada, json!({"title": "Νέος δρόμος"})).await;
    for text in ["ΝΕΟΣ ΔΡΟΜΟΣ", "δρομος", "δρομοσ"] {
        let titles = app.titles(&ada, &format!("filter=text:{text}")).await;
        assert_eq!(titles, ["Νέος δρόμος"], "{text}");
    }
}

#[tokio::test]
async fn every_invalid_parameter_is_reported() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    let query =
        "limit=0&offset=-1&sort=colour:1&filter=x:1&role=king&projection=-colour&include=id";
    let reply = app.get(&me, &format!("/people-task/tasks?{query}")).await;
    reply.expect_problem(400, "validation-failed");
    let fields: BTreeSet<_> = reply.bad_fields().into_iter().collect();
    let expected = [
        "filter",
        "include",
        "limit",
        "offset",
        "projection",
        "role",
        "sort",
    ];
    assert_eq!(fields, expected.map(str::to_owned).into());
    for query in [
        "limit=1001",
        "sort=title:2",
        "sort=title",
        "filter=status:done",
        "filter=public:1",
        "filter=secret:x",
        "projection=title",
        "projection=-colour",
    ] {
        let reply = app.get(&me, &format!("/people-task/tasks?{query}")).await;
        reply.expect_problem(400, "validation-failed");
    }
    let reply = app
        .get(&me, "/people-task/tasks-count?filter=x:1&role=king")
        .await;
    assert_eq!(reply.bad_fields(), ["role", "filter"]);
}

#[tokio::test]
async fn a_projection_leaves_fields_out() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    let _ = app.create(&me, json!({})).await;
    let query = "projection=-description,-title&projection=-decisionBy&include=public,isApprover";
    let reply = app
        .get(&me, &format!("/people-task/tasks?{query}"))
        .await
        .expect(200);
    let fields: Vec<_> = reply.json[0].as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "approver",
            "id",
            "isApprover",
            "public",
            "requester",
            "status"
        ]
    );
    assert_eq!(reply.json[0]["isApprover"], false);
}

#[tokio::test]
async fn pages_do_not_overlap_or_skip_rows() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    // Many rows have the same time, title, date and status, so that only the id tells them apart.
    app.execute(&format!(
        "INSERT INTO tasks (id, creator, requester, requester_key, approver, approver_key, title,
            description, decision_by, public, approver_secret, requester_secret, created)
         SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'),
            CASE WHEN n % 3 = 0 THEN decode('{id}', 'hex') ELSE decode('{zeros}', 'hex') END,
            'me@example.com', 'me@example.com',
            CASE WHEN n % 2 = 0 THEN 'me@example.com' ELSE 'g@example.com' END,
            CASE WHEN n % 2 = 0 THEN 'me@example.com' ELSE 'g@example.com' END,
            't' || n % 4, '',
            CASE WHEN n % 5 > 0 THEN timestamptz '2030-01-01' + (n % 5) * interval '1 day' END,
            false, sha256(('a' || n)::bytea), sha256(('r' || n)::bytea),
            timestamptz '2026-01-01' + (n % 3) * interval '1 second'
         FROM generate_series(1, 200) AS n",
        id = me.id,
        zeros = "0".repeat(24),
    ));
    app.add_states();
    for sort in [
        "created:-1",
        "created:1",
        "title:1",
        "decisionBy:-1",
        "decisionBy:1",
        "status:1",
        "approver:-1",
        "requester:1",
        "decisionMade:1",
    ] {
        let mut seen = Vec::new();
        let mut path = Some(format!("/people-task/tasks?limit=33&sort={sort}"));
        while let Some(page) = path {
            let reply = app.get(&me, &page).await.expect(200);
            let ids = reply
                .json
                .as_array()
                .unwrap()
                .iter()
                .map(|task| task["id"].to_string());
            seen.extend(ids);
            path = next_page(&reply);
        }
        let distinct: BTreeSet<_> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (200, 200), "{sort}");
    }
    let reply = app.get(&me, "/people-task/tasks").await.expect(200);
    assert_eq!(titles(&reply).len(), 100);
    let offset = async |offset: &str| {
        let path = format!("/people-task/tasks?offset={offset}");
        app.get(&me, &path).await
    };
    assert_eq!(offset("10000000").await.expect(200).text, "[]");
    let beyond = offset("10000001").await;
    beyond.expect_problem(400, "validation-failed");
}

#[tokio::test]
async fn a_page_reads_only_the_rows_it_needs() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    app.execute(&format!(
        "INSERT INTO tasks (id, creator, requester, requester_key, approver, approver_key, title,
            description, public, approver_secret, requester_secret, created)
         SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), decode('{id}', 'hex'),
            'me@example.com', 'me@example.com', 'me@example.com', 'me@example.com', 'task ' || n, '',
            false, sha256(('a' || n)::bytea), sha256(('r' || n)::bytea),
            timestamptz '2026-01-01' + n * interval '1 second'
         FROM generate_series(1, 20000) AS n",
        id = me.id,
    ));
    app.add_states();
    app.execute("ANALYZE tasks, task_states");
    // The rows that this test has inserted are counted first.
    app.execute("SELECT pg_stat_force_next_flush()");
    let fetched = || {
        let sql = "SELECT (sum(idx_tup_fetch) + sum(seq_tup_read))::text AS value
             FROM pg_stat_user_tables WHERE relname IN ('tasks', 'task_states')";
        app.value(sql).unwrap().parse::<i64>().unwrap()
    };
    let before = fetched();
    let reply = app
        .get(&me, "/people-task/tasks?limit=50")
        .await
        .expect(200);
    assert_eq!(titles(&reply)[0], "task 20000");
    // Postgres updates its statistics with a delay.
    let read = testkit::eventually("the rows to be counted", async || {
        Some(fetched() - before).filter(|read| *read > 0)
    })
    .await;
    assert!(read < 500, "{read} rows were read for a page of 50");
}
