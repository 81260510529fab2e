//! Lists whose pages are large.

use diesel::connection::SimpleConnection as _;

use crate::fixture::Fixture;

/// No page is longer.
const MAX_PAGE: usize = 4 * 1024 * 1024;

/// 60 rows of 150 kB in each list. Postgres compresses them to a fraction.
const ROWS: &str = "
    INSERT INTO users.users
        (id, username, email, username_key, email_key, password_hash, plan, scope, vendor)
    SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), name, name, name, name, 'x', 'free',
        ARRAY['long'], to_jsonb(array_fill('vendor'::text, ARRAY[16000]))
    FROM (SELECT n, n || '@example.com' AS name FROM generate_series(1, 60) AS n) AS made;
    INSERT INTO users.deletions
        (id, ticket, user_id, status, steps_total, failure, request_id, traceparent, republish_at, finished)
    SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), n::text, decode(lpad(to_hex(n), 24, '0'), 'hex'),
        'failed', 1, jsonb_build_object('detail', repeat('x', 150000)), '', '', now(), now()
    FROM generate_series(1, 60) AS n;
    INSERT INTO users.audit_log (action, actor_kind, request_id, detail)
    SELECT 'user-deleted', 'service', 'long', jsonb_build_object('fields', repeat('x', 150000))
    FROM generate_series(1, 60);";

#[tokio::test]
async fn a_page_of_long_rows_ends_early_and_its_link_leads_to_the_rest() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    app.admin_connection().batch_execute(ROWS).unwrap();
    for path in [
        "/users?filter=scope:long",
        "/users/deletions?limit=100",
        "/audit?filter=requestId:long",
    ] {
        let (mut rows, mut pages) = (0, 0);
        let mut next = Some(path.to_owned());
        while let Some(page) = next {
            let reply = app.get(&admin, &page).await.expect(200);
            assert!(reply.text.len() <= MAX_PAGE, "{page}");
            rows += reply.json.as_array().unwrap().len();
            pages += 1;
            next = reply.header("link").map(|link| {
                let end = link.find('>').unwrap();
                link[1..end].to_owned()
            });
        }
        assert_eq!((rows, pages), (60, 3), "{path}");
    }
}
