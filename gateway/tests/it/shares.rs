//! What one client network takes, others still get.

use std::time::{Duration, Instant};

use testkit::{Reply, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::fixture::{Fixture, read_until_silence};

const CLIENTS: [&str; 5] = [
    "203.0.113.1",
    "203.0.113.2",
    "203.0.113.3",
    "203.0.113.4",
    "203.0.113.5",
];
const BEHIND_A_PROXY: (&str, &str) = ("TRUSTED_PROXIES", "127.0.0.0/8");
const NO_RATE_LIMIT: (&str, &str) = ("RATE_LIMIT", "off");
const OWN_LIMIT: &str = "too-many-concurrent-requests";

async fn get(fixture: &Fixture, path: &str, client: &str) -> Reply {
    let request = fixture.http.get(path).bearer(&fixture.token());
    request.header("x-forwarded-for", client).send().await
}

async fn sign_in(fixture: &Fixture, client: &str) -> Reply {
    let request = fixture.http.post("/user/auth").body("{}");
    request.header("x-forwarded-for", client).send().await
}

/// Requests to a people-task service that does not respond.
async fn hang(fixture: &Fixture, clients: &[&str]) -> Vec<JoinHandle<Reply>> {
    let expected = fixture.tasks.count() + clients.len();
    let hang = |client: &&str| {
        let request = fixture.http.get("/people-task/tasks?response=slow");
        tokio::spawn(request.header("x-forwarded-for", client).send())
    };
    let hanging = clients.iter().map(hang).collect();
    eventually("the service to receive the requests", || async {
        (fixture.tasks.count() == expected).then_some(())
    })
    .await;
    hanging
}

#[tokio::test]
async fn one_client_waiting_for_a_hung_service_leaves_others_and_the_other_service_alone() {
    let fixture = Fixture::with(&[BEHIND_A_PROXY, ("GATEWAY_MAX_IN_FLIGHT", "16")]).await;
    let _hanging = hang(&fixture, &[CLIENTS[0]; 4]).await;
    let refused = get(&fixture, "/people-task/tasks", CLIENTS[0]).await;
    refused.expect_problem(429, OWN_LIMIT);
    assert_eq!(refused.header("retry-after"), Some("1"));
    for client in &CLIENTS[..2] {
        assert_eq!(get(&fixture, "/user", client).await.status, 200);
        assert_eq!(sign_in(&fixture, client).await.status, 200);
    }
    let other = get(&fixture, "/people-task/tasks", CLIENTS[1]).await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn many_clients_waiting_for_a_hung_service_leave_the_other_service_alone() {
    let fixture = Fixture::with(&[BEHIND_A_PROXY, ("GATEWAY_MAX_IN_FLIGHT", "4")]).await;
    let _hanging = hang(&fixture, &CLIENTS[..4]).await;
    let refused = get(&fixture, "/people-task/tasks", CLIENTS[4]).await;
    refused.expect_problem(503, "overloaded");
    for client in CLIENTS {
        assert_eq!(get(&fixture, "/user", client).await.status, 200);
        assert_eq!(sign_in(&fixture, client).await.status, 200);
    }
}

#[tokio::test]
async fn requests_of_a_busy_client_wait_for_each_other_while_those_of_others_are_served() {
    let fixture = Fixture::with(&[BEHIND_A_PROXY]).await;
    let (tasks, task) = (
        "/people-task/tasks",
        format!("/people-task/tasks/{:024x}", 1),
    );

    let start = Instant::now();
    let hanging = hang(&fixture, &CLIENTS[..1]).await;
    // The first client's requests wait for each other until three seconds after the last one of the second client.
    assert_eq!(get(&fixture, "/user", CLIENTS[1]).await.status, 200);
    let (next, others) = tokio::join!(
        async { (get(&fixture, tasks, CLIENTS[0]).await, start.elapsed()) },
        async {
            let short = get(&fixture, &task, CLIENTS[0]).await.status;
            let long = get(&fixture, tasks, CLIENTS[1]).await.status;
            ([short, long], start.elapsed())
        },
    );
    assert_eq!((next.0.status, others.0), (200, [200, 200]));
    assert!(next.1 >= Duration::from_secs(3), "{:?}", next.1);
    assert!(others.1 < next.1, "{:?} {:?}", others.1, next.1);
    assert!(!hanging[0].is_finished());
}

#[tokio::test]
async fn creations_that_wait_for_name_servers_leave_the_other_requests_of_their_network_alone() {
    let fixture = Fixture::with(&[BEHIND_A_PROXY]).await;
    let task = format!("/people-task/tasks/{:024x}", 1);
    let create = || {
        let request = fixture.http.post("/people-task/tasks?response=slow");
        let request = request.bearer(&fixture.token()).body("{}");
        tokio::spawn(request.header("x-forwarded-for", CLIENTS[0]).send())
    };
    let others = async {
        loop {
            assert_eq!(get(&fixture, "/user", CLIENTS[1]).await.status, 200);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let served = async {
        let creations: Vec<_> = std::iter::repeat_with(create).take(8).collect();
        eventually("creations to be under way", || async {
            (fixture.tasks.count() >= 4).then_some(())
        })
        .await;
        let reply = get(&fixture, &task, CLIENTS[0]).await;
        assert!(!creations.iter().any(JoinHandle::is_finished));
        reply.status
    };
    tokio::select! {
        status = served => assert_eq!(status, 200),
        () = others => {}
    }
}

/// The beginning of an upload of 256 KiB that stalls after `sent` bytes.
async fn stalled_upload(fixture: &Fixture, client: &str, sent: usize) -> TcpStream {
    let mut socket = TcpStream::connect(fixture.address()).await.unwrap();
    let head = format!(
        "POST /user HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {client}\r\nContent-Length: 262144\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    // This fails if the gateway has refused the upload.
    let _ = socket.write_all(&vec![b'x'; sent]).await;
    socket
}

async fn upload(fixture: &Fixture, client: &str, length: usize) -> Reply {
    let request = fixture.http.post("/user").body(vec![b'x'; length]);
    request.header("x-forwarded-for", client).send().await
}

async fn until_refused(fixture: &Fixture, client: &str) -> Reply {
    eventually("the stalled uploads to count", || async {
        let reply = upload(fixture, client, 2).await;
        (reply.status != 200).then_some(reply)
    })
    .await
}

#[tokio::test]
async fn stalled_uploads_leave_other_clients_and_requests_without_a_body_alone() {
    let settings = [
        BEHIND_A_PROXY,
        NO_RATE_LIMIT,
        ("GATEWAY_MAX_IN_FLIGHT", "1"),
        ("GATEWAY_MAX_PENDING_UPLOADS", "8"),
    ];
    let fixture = Fixture::with(&settings).await;
    let _first = stalled_upload(&fixture, CLIENTS[0], 1).await;
    let _second = stalled_upload(&fixture, CLIENTS[0], 1).await;
    let refused = until_refused(&fixture, CLIENTS[0]).await;
    refused.expect_problem(429, OWN_LIMIT);
    assert_eq!(get(&fixture, "/user", CLIENTS[0]).await.status, 200);
    assert_eq!(upload(&fixture, CLIENTS[1], 2).await.status, 200);
}

#[tokio::test]
async fn uploads_of_all_clients_are_limited() {
    let permits = ("GATEWAY_MAX_PENDING_UPLOADS", "2");
    let settings = [BEHIND_A_PROXY, NO_RATE_LIMIT, permits];
    let fixture = Fixture::with(&settings).await;
    let _first = stalled_upload(&fixture, CLIENTS[0], 1).await;
    let second = stalled_upload(&fixture, CLIENTS[1], 1).await;
    let refused = until_refused(&fixture, CLIENTS[2]).await;
    refused.expect_problem(503, "overloaded");
    drop(second);
    eventually("the permit of the closed connection", || async {
        (upload(&fixture, CLIENTS[2], 2).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_bytes_of_stalled_bodies_are_limited_for_each_client() {
    let fixture = Fixture::with(&[BEHIND_A_PROXY, NO_RATE_LIMIT]).await;
    let (mut stalled, mut refused) = (Vec::new(), None);
    // 64 bodies of 256 KiB are a quarter of the bytes that the gateway holds.
    while refused.is_none() && stalled.len() < 200 {
        stalled.push(stalled_upload(&fixture, CLIENTS[0], 262_143).await);
        let reply = upload(&fixture, CLIENTS[0], 262_144).await;
        refused = (reply.status != 200).then_some(reply);
    }
    let refused = refused.unwrap();
    refused.expect_problem(429, OWN_LIMIT);
    assert_eq!(upload(&fixture, CLIENTS[0], 1_000).await.status, 200);
    assert_eq!(upload(&fixture, CLIENTS[1], 262_144).await.status, 200);

    let mut completed = stalled.remove(0);
    completed.write_all(b"x").await.unwrap();
    let response = read_until_silence(&mut completed, 1).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    drop(stalled);
    eventually("the bytes of the closed connections", || async {
        (upload(&fixture, CLIENTS[0], 262_144).await.status == 200).then_some(())
    })
    .await;
}

/// Opens a connection from a loopback address and sends one request.
async fn connect(fixture: &Fixture, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut socket = socket.connect(fixture.address()).await.unwrap();
    // This fails if the gateway has already closed the connection.
    let _ = socket
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    socket
}

/// Whether the gateway responds on a connection, rather than closing it.
async fn responds(socket: &mut TcpStream) -> bool {
    let mut buffer = [0; 1024];
    matches!(socket.read(&mut buffer).await, Ok(1..))
}

#[tokio::test]
async fn connections_of_one_client_leave_others_alone() {
    let settings = [("HTTP_WORKERS", "1"), ("HTTP_MAX_CONNECTIONS", "16")];
    let fixture = Fixture::with(&settings).await;
    let mut hostile = Vec::new();
    for _ in 0..30 {
        hostile.push(connect(&fixture, [127, 0, 0, 2]).await);
    }
    for _ in 0..3 {
        let mut other = connect(&fixture, [127, 0, 0, 3]).await;
        assert!(responds(&mut other).await);
    }
    // The oldest one stays open, and the newest one was refused.
    let (oldest, newest) = (&mut hostile[0], 29);
    assert!(responds(oldest).await);
    oldest
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    assert!(responds(oldest).await);
    assert!(!responds(&mut hostile[newest]).await);
}
