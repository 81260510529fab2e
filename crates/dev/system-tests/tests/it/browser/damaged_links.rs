//! Links as mail programs and people damage them, and addresses that do not exist.

use crate::webdriver::Browser;

use super::drafts::{end_sessions, value_of};
use super::{APPROVER, LOST, REQUESTER, answer, sign_in, signed_in, task_with};
use crate::harness::{System, Task};

/// A task, and a phone that has not opened its link.
async fn with_task() -> (System, Task, Browser) {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    (system, task, Browser::phone().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_link_opens_the_task() {
    let (system, task, phone) = with_task().await;
    let (id, secret) = (&task.id, &task.approver_secret);
    let (begin, end) = secret.split_at(30);
    let usual = format!("/tasks?taskId={id}&secret={secret}");
    for damaged in [
        usual.replace('&', "&amp;"),
        usual.replace('&', "&amp;amp;"),
        usual.replace('=', "=3D"),
        usual.replace('=', "%3D"),
        usual.replace('&', "%26").replace('=', "%3D"),
        format!("{usual}."),
        format!("{usual})."),
        format!("{usual}%3E"),
        format!("{usual}%E2%80%9D"),
        format!("/tasks?taskId={id}&secret={begin}%0A{end}"),
        format!("/tasks?taskId={id}&secret={begin}%20{end}"),
        format!("/tasks?taskId={id}&secret={begin}=%0D%0A{end}"),
        format!(
            "/tasks?TASKID={}&SECRET={}",
            id.to_uppercase(),
            secret.to_uppercase()
        ),
        format!("/TASKS?taskId={id}&secret={secret}"),
        format!("/tasks/?taskId={id}&secret={secret}"),
        format!("/tasks%3FtaskId%3D{id}%26secret%3D{secret}"),
    ] {
        opens(&system, &phone, &damaged, secret).await;
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

/// Opens a damaged link, in a tab that knows nothing of its task.
async fn opens(system: &System, phone: &Browser, damaged: &str, secret: &str) {
    phone
        .open(&format!("{}{damaged}", system.http.base()))
        .await;
    phone.sees("Buy a chair").await;
    phone.sees("Approve").await;
    let address = phone.address().await;
    assert!(!address.contains(secret), "{damaged}: {address}");
    phone.run("sessionStorage.clear()").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_secret_opens_the_task_whatever_is_around_it() {
    let (system, task, phone) = with_task().await;
    let (id, secret) = (&task.id, &task.approver_secret);
    let (begin, end) = secret.split_at(30);
    let usual = format!("/tasks?taskId={id}&secret={secret}");
    // Within the secret: signs that are not seen, where a line may break, and the marks of a quoted message.
    for within in [
        "%E2%80%8B",
        "%E2%80%8C",
        "%E2%80%8D",
        "%E2%80%8E",
        "%E2%81%A0",
        "%E2%80%AA",
        "%E2%81%A6",
        "%E1%A0%8E",
        "%EF%BB%BF",
        "&shy;",
        "%3Cwbr%3E",
        "%0A%3E%20",
    ] {
        let damaged = format!("/tasks?taskId={id}&secret={begin}{within}{end}");
        opens(&system, &phone, &damaged, secret).await;
    }
    for damaged in [
        format!("/tasks?task%E2%80%8BId={id}&sec%E2%80%8Bret={secret}"),
        format!("/tasks?taskId={id}&sec=%0Aret={secret}"),
        format!("/tasks?taskId={id}&sec=ret={secret}"),
        format!("/tasks?taskId=&secret={secret}"),
        format!("/tasks?taskId={}&secret={secret}", id.split_at(20).0),
        format!("/tasks?taskId={id}&secret={begin}&secret={secret}"),
        usual.replace('=', "&#61;"),
        usual.replace('=', "=3D").replace('&', "=26"),
        usual
            .replace('=', "=3D")
            .replace('&', "=26")
            .replace('?', "=3F"),
        format!("/tasks?taskId={id}&secret=*{secret}*"),
        format!("/tasks?taskId={id}&secret=%22{secret}%22"),
        format!("/tasks?taskId={id}&secret=[{secret}]"),
    ] {
        opens(&system, &phone, &damaged, secret).await;
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_without_the_right_link_or_account_can_sign_in() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    system.sign_up("other@example.com").await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let (base, id) = (system.http.base(), &task.id);
    let phone = signed_in(&system, "/", "other@example.com").await;
    phone.sees("nothing to decide.").await;
    let half = task.approver_secret.split_at(30).0;
    phone
        .open(&format!("{base}/tasks?taskId={id}&secret={half}"))
        .await;
    phone.sees("This link is not complete").await;
    phone.sees("Sign in").await;
    phone.open(&format!("{base}/tasks?taskId={id}")).await;
    phone.sees("Open the link from the message again").await;
    phone.click("Sign in").await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.sees("Buy a chair").await;

    // An old link, and a session that has ended.
    end_sessions(&system, APPROVER).await;
    let wrong = "0".repeat(64);
    phone
        .open(&format!("{base}/tasks?taskId={id}&secret={wrong}"))
        .await;
    phone.sees("Your session has ended.").await;
    sign_in(&phone, APPROVER, "a new password").await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_code_is_read_or_said_to_be_half() {
    let system = System::start().await;
    let base = system.http.base();
    let phone = Browser::phone().await;
    let code = "0123456789abcdef".repeat(4);
    for (page, title) in [
        ("reset-password", "Choose a new password"),
        ("verify-email", "Confirm your e-mail address"),
    ] {
        for damaged in [
            format!("/{page}?code={code}"),
            format!("/{page}%3Fcode%3D{code}"),
            format!("/{}?code=3D{code}.", page.to_uppercase()),
            format!("/{page}/?code=*{code}*"),
        ] {
            phone.open(&format!("{base}{damaged}")).await;
            phone.sees(title).await;
            assert_eq!(value_of(&phone, "code").await, code.as_str(), "{damaged}");
            assert_eq!(phone.count(".field[hidden] #code").await, 1, "{damaged}");
            assert!(!phone.address().await.contains("code"), "{damaged}");
        }
        phone
            .open(&format!("{base}/{page}?code={}", code.split_at(30).0))
            .await;
        phone.sees("This link is not complete.").await;
        assert_eq!(phone.count("#code[aria-invalid]").await, 1, "{page}");
    }
    phone.open(&format!("{base}/SESSIONS")).await;
    phone.sees("Forgot your password?").await;
    assert!(phone.address().await.ends_with("/sessions"));
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_became_invalid_without_a_response_may_have_set_the_password() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    let (base, code) = (system.http.base(), "0".repeat(64));
    let page = format!("{base}/reset-password?code={code}");
    phone.open(&page).await;
    for field in ["New password", "Repeat new password"] {
        phone.fill(field, System::PASSWORD).await;
    }
    let may_be_set = "The new password may already be set";
    answer(
        &phone,
        "POST /user/forgot-password/reset",
        &["(send) => send()", LOST],
    )
    .await;
    phone.click("Set password").await;
    phone.sees("This code is invalid or has expired.").await;
    assert!(!phone.text().await.contains(may_be_set));
    phone.click("Set password").await;
    phone.sees("The server cannot be reached.").await;
    phone.click("Set password").await;
    phone.sees(may_be_set).await;
    phone.follow("Sign in").await;
    phone.sees("Forgot your password?").await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_link_and_one_without_its_secret_say_what_to_do() {
    let (system, task, phone) = with_task().await;
    let (base, id, secret) = (system.http.base(), &task.id, &task.approver_secret);
    let half = secret.split_at(30).0;
    for half in [
        format!("taskId={id}&secret={half}"),
        format!("secret={half}"),
        format!("taskId={}", id.split_at(20).0),
    ] {
        phone.open(&format!("{base}/tasks?{half}")).await;
        phone.sees("This link is not complete").await;
        phone.sees("Copy the whole link from the message").await;
    }
    phone.open(&format!("{base}/tasks?taskId={id}")).await;
    phone.sees("Open the link from the message again").await;
    phone.sees("Forgot your password?").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_who_is_signed_in_needs_no_valid_link() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    let base = system.http.base();
    phone.open(base).await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.sees("Buy a chair").await;
    let wrong = "0".repeat(64);
    phone
        .open(&format!("{base}/tasks?taskId={}&secret={wrong}", task.id))
        .await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_address_is_a_page_for_a_person_only() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    phone.open(&format!("{}/nothing", system.http.base())).await;
    phone.sees("Page not found").await;
    phone.follow("To the start page").await;
    phone.sees("Forgot your password?").await;
    let html = ("accept", "text/html,*/*;q=0.8");
    let page = system
        .http
        .get("/nothing")
        .header(html.0, html.1)
        .send()
        .await
        .expect(404);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    for path in [
        "/user/nothing",
        "/users",
        "/people-task/nothing",
        "/plugins",
    ] {
        let request = system.http.get(path).header(html.0, html.1);
        let reply = request.header("sec-fetch-mode", "navigate").send().await;
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json"),
            "{path}"
        );
    }
    system
        .http
        .get("/nothing")
        .send()
        .await
        .expect_problem(404, "not-found");
    phone.assert_no_errors().await;
    system.stop().await;
}
