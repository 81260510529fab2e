//! How sessions of browsers end, and at which processes.

use serde_json::json;
use testkit::{Http, eventually, lines};

use crate::fixture::{Fixture, PASSWORD, Person};
use crate::sessions::{
    ADA, Browser, claims_of, credentials, ended, hold, release, run, send, waiting,
};

#[tokio::test]
async fn sessions_end_with_what_revokes_the_tokens_of_their_user() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let bob = app.sign_up("bob@example.com").await;
    let bystander = Browser::signed_in(&app, "bob@example.com").await;
    let endings = [
        ("isActive", json!({"isActive": false})),
        ("email", json!({"email": "grace@example.com"})),
        ("password", json!({"password": "another one"})),
        ("scope", json!({"scope": ["user", "extra"]})),
        ("revoke-tokens", json!(null)),
        ("delete", json!(null)),
        ("change-password", json!(null)),
    ];
    for (number, (ending, change)) in endings.iter().enumerate() {
        let email = format!("ada{number}@example.com");
        let ada = app.sign_up(&email).await;
        let browser = Browser::signed_in(&app, &email).await;
        let path = format!("/users/{}", ada.id);
        let _ = match *ending {
            "revoke-tokens" => {
                app.post(&admin, &format!("{path}/revoke-tokens"), change)
                    .await
            }
            "delete" => app.delete(&admin, &path).await,
            "change-password" => {
                let body = json!({"oldPassword": PASSWORD, "newPassword": "another one"});
                app.post(&browser.person, "/user/change-password", &body)
                    .await
            }
            _ => app.update(&admin, &ada.id, change).await,
        }
        .expect(200);
        ended(&browser.exchange(&app.http, &json!({})).await);
        app.assert_token(&browser.person, false).await;
    }
    bystander.exchanged(&app).await;
    app.assert_token(&bob, true).await;
}

#[tokio::test]
async fn no_session_starts_if_its_user_was_revoked_after_the_password_was_checked() {
    let app = Fixture::start().await;
    app.sign_up(ADA).await;
    let mut database = app.admin_connection();
    let revoke = "CREATE FUNCTION users.revoke() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            UPDATE users.users SET epoch = epoch + 1 WHERE id = NEW.user_id; RETURN NULL; END $$;
        CREATE TRIGGER revoke AFTER UPDATE ON users.last_sign_ins FOR EACH ROW EXECUTE FUNCTION users.revoke()";
    run(&mut database, revoke);
    let reply = send(&app.http, "POST", "/session", None, &credentials(ADA)).await;
    reply.expect_problem(401, "invalid-credentials");
    assert_eq!(reply.header("set-cookie"), None);
    let sessions = "SELECT program AS line FROM users.credentials";
    assert_eq!(lines(&mut database, sessions), Vec::<String>::new());
}

#[tokio::test]
async fn a_revocation_waits_for_a_session_that_is_starting_and_ends_it() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up(ADA).await);
    let first = Browser::signed_in(&app, ADA).await;
    let mut lock = app.admin_connection();
    hold(&mut lock);
    let wait_for = async |number: usize| {
        eventually("statements to wait", async || {
            (waiting(&app) == number).then_some(())
        })
        .await;
    };
    let (cookie, body) = (Some(first.cookie.as_str()), credentials(ADA));
    // It waits for the session whose place it takes.
    let starting = send(&app.http, "POST", "/session", cookie, &body);
    let revoking = async {
        wait_for(1).await;
        let path = format!("/users/{}/revoke-tokens", ada.id);
        let nothing = json!(null);
        let revoked = app.post(&admin, &path, &nothing);
        let (revoked, ()) = tokio::join!(revoked, async {
            wait_for(2).await;
            release(&mut lock);
        });
        let _ = revoked.expect(200);
    };
    let (started, ()) = tokio::join!(starting, revoking);
    let second = Browser::of(&started.expect(200));
    ended(&second.exchange(&app.http, &json!({})).await);
    app.assert_token(&second.person, false).await;
}

#[tokio::test]
async fn a_user_sees_and_ends_own_sessions_only() {
    let app = Fixture::start().await;
    let ada = app.sign_up(ADA).await;
    let bob = app.sign_up("bob@example.com").await;
    let phone = Browser::signed_in(&app, ADA).await;
    let desk = Browser::signed_in(&app, ADA).await;
    let sessions = app.get(&desk.person, "/user/sessions").await.json;
    assert_eq!(sessions.as_array().unwrap().len(), 2);
    assert_eq!(app.get(&bob, "/user/sessions").await.json, json!([]));
    let of_phone = claims_of(&phone.person.token)["credential"].clone();
    let path = format!("/user/sessions/{}", of_phone.as_str().unwrap());
    let of_another = app.delete(&bob, &path).await;
    of_another.expect_problem(404, "not-found");
    let _ = app.delete(&ada, &path).await.expect(200);
    let again = app.delete(&ada, &path).await;
    again.expect_problem(404, "not-found");
    let invalid = app.delete(&ada, "/user/sessions/x").await;
    invalid.expect_problem(404, "not-found");
    ended(&phone.exchange(&app.http, &json!({})).await);
    app.assert_token(&phone.person, false).await;
    app.assert_token(&desk.person, true).await;
}

#[tokio::test]
async fn signing_out_ends_the_session_of_the_browser() {
    let app = Fixture::start().await;
    let ada = app.sign_up(ADA).await;
    let browser = Browser::signed_in(&app, ADA).await;
    let left = browser.sign_out(&app).await.expect(200);
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
    app.assert_token(&browser.person, false).await;
    ended(&browser.exchange(&app.http, &json!({})).await);
    // Without a session it does nothing.
    let _ = browser.sign_out(&app).await.expect(200);
    app.assert_token(&ada, true).await;
}

#[tokio::test]
async fn the_feed_tells_other_processes_that_a_session_has_ended() {
    let app = Fixture::start().await;
    app.sign_up(ADA).await;
    let browser = Browser::signed_in(&app, ADA).await;
    let replica = app.replica(&[]).await;
    let accepts = async |http: &Http| {
        let reply = http.get("/user").bearer(&browser.person.token).send().await;
        reply.status == 200
    };
    assert!(accepts(&replica).await);
    let _ = browser.sign_out(&app).await.expect(200);
    eventually("the replica to refuse the token", || async {
        (!accepts(&replica).await).then_some(())
    })
    .await;
    // A process that starts later knows it, too.
    let later = app.replica(&[]).await;
    assert!(!accepts(&later).await);
}

#[tokio::test]
async fn a_user_has_a_limited_number_of_sessions_which_expire() {
    let settings = [
        ("SESSIONS_PER_USER", "2"),
        ("SESSION_IDLE_TTL", "1h"),
        ("SESSION_TTL", "2h"),
    ];
    let app = Fixture::start_with(&settings).await;
    app.sign_up(ADA).await;
    let first = Browser::signed_in(&app, ADA).await;
    let second = Browser::signed_in(&app, ADA).await;
    let first = first.exchanged(&app).await;
    let third = Browser::signed_in(&app, ADA).await;
    // The one that was not used for longest.
    ended(&second.exchange(&app.http, &json!({})).await);
    let first = first.exchanged(&app).await;
    let third = third.exchanged(&app).await;

    let mut database = app.admin_connection();
    let age = "UPDATE users.credentials SET created = created - interval '119 minutes 30 seconds'";
    run(&mut database, age);
    let reply = first.exchange(&app.http, &json!({})).await.expect(200);
    let header = reply.header("set-cookie").unwrap();
    let seconds = header.split("Max-Age=").nth(1).unwrap();
    let seconds: u64 = seconds.split(';').next().unwrap().parse().unwrap();
    assert!(seconds <= 30, "{header}");
    let claims = claims_of(&Person::of(&reply).token);
    assert!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap() <= 30);
    run(
        &mut database,
        "UPDATE users.credentials SET expires = now()",
    );
    ended(&third.exchange(&app.http, &json!({})).await);
    assert_eq!(
        app.get(&third.person, "/user/sessions").await.json,
        json!([])
    );
}

#[tokio::test]
async fn a_sign_in_never_ends_the_session_that_it_starts() {
    let app = Fixture::start_with(&[("SESSIONS_PER_USER", "1")]).await;
    app.sign_up(ADA).await;
    let earlier = Browser::signed_in(&app, ADA).await;
    // As if it was used while the next sign-in waits.
    let used = "UPDATE users.credentials SET last_used = now() + interval '1 minute'";
    run(&mut app.admin_connection(), used);
    let latest = Browser::signed_in(&app, ADA).await;
    ended(&earlier.exchange(&app.http, &json!({})).await);
    let _ = latest.exchanged(&app).await;
}

#[tokio::test]
async fn a_restore_ends_the_sessions_that_it_brings_back() {
    let app = Fixture::start().await;
    app.sign_up(ADA).await;
    let browser = Browser::signed_in(&app, ADA).await;
    let restore = "UPDATE users.token_generation SET generation = 'restored'";
    run(&mut app.admin_connection(), restore);
    ended(&browser.exchange(&app.http, &json!({})).await);
    // The service learns of its new incarnation from the feed.
    let sessions = eventually("a new token to be accepted", || async {
        let again = app.sign_in(ADA, PASSWORD).await.expect(200);
        let reply = app.get(&Person::of(&again), "/user/sessions").await;
        (reply.status == 200).then_some(reply.json)
    });
    assert_eq!(sessions.await, json!([]));
}
