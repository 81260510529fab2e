//! The client against test servers and resolvers.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use app_config::{Networks, SettingValue as _};
use bytes::Bytes;
use http::{HeaderMap, Method};
use outbound::{
    AddressPolicy, Call, GuardedClient, Refusal, Resolve, Resolved, SendError, SystemResolver,
    TargetUrl, Unresolved,
};
use testkit::{PrivateCa, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use url::Url;

/// A resolver that returns the scripted addresses of a host one after the other, and then the last ones.
#[derive(Default)]
struct Scripted {
    answers: HashMap<&'static str, Vec<&'static [&'static str]>>,
    calls: AtomicUsize,
}

impl Scripted {
    fn host(mut self, host: &'static str, answers: &[&'static [&'static str]]) -> Self {
        self.answers.insert(host, answers.to_vec());
        self
    }
}

impl Resolve for Scripted {
    fn resolve(&self, host: &str) -> Resolved {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let answers = self.answers.get(host);
        let answer = answers.and_then(|a| a.get(call).or(a.last()).copied());
        let addresses: Vec<IpAddr> = answer
            .unwrap_or_default()
            .iter()
            .map(|a| a.parse().unwrap())
            .collect();
        Box::pin(async move {
            Some(addresses)
                .filter(|a| !a.is_empty())
                .ok_or(Unresolved::NoAddress)
        })
    }
}

/// A server that records the heads of requests and accepts each.
async fn recording_server() -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heads) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"{}") {
                stream.read_buf(&mut head).await.unwrap();
            }
            sender.send(String::from_utf8(head).unwrap()).unwrap();
            let _ = stream.write_all(CLOSING.as_bytes()).await;
        }
    });
    (address, heads)
}

/// A server that sends one response on every connection.
async fn server(response: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(response.as_bytes()).await;
                tokio::time::sleep(Duration::from_secs(60)).await;
            });
        }
    });
    (address, connections)
}

fn client(allowed: &str, resolver: impl Resolve) -> GuardedClient {
    client_with(Duration::from_secs(5), allowed, resolver)
}

fn client_with(timeout: Duration, allowed: &str, resolver: impl Resolve) -> GuardedClient {
    let policy = AddressPolicy {
        allowed: Networks::parse(allowed).unwrap(),
    };
    GuardedClient::new(policy, Arc::new(resolver), timeout, 16).unwrap()
}

fn posted(body: impl Into<Bytes>, body_bytes: usize) -> Call {
    Call {
        method: Method::POST,
        headers: HeaderMap::new(),
        body: body.into(),
        body_bytes,
    }
}

async fn post(client: &GuardedClient, url: &str) -> Result<outbound::TruncatedResponse, SendError> {
    let url = TargetUrl::parse(url).unwrap();
    client.send(&url, posted("{}", 1024)).await
}

const CLOSING: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn an_allowed_address_is_called_and_its_response_returned() {
    let (address, _) = server(OK).await;
    let client = client("127.0.0.0/8", SystemResolver::from_system().unwrap());
    let response = post(&client, &format!("http://{address}/")).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), response.beginning.as_slice()),
        (200, &b"ok"[..])
    );
    let by_name = format!("http://localhost:{}/", address.port());
    assert_eq!(post(&client, &by_name).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_url_is_called_byte_for_byte() {
    let (address, mut heads) = recording_server().await;
    let client = client("127.0.0.0/8", Scripted::default());
    for (given, target) in [
        ("", "/"),
        ("?a=1", "/?a=1"),
        ("/?q='x'&r=\"y\"", "/?q='x'&r=%22y%22"),
        ("/a/../b/./c//d;e=1,2", "/a/../b/./c//d;e=1,2"),
        (
            "/%7euser/%2e%2E/a%2fb?c=%27%c3%BC+%20",
            "/%7euser/%2e%2E/a%2fb?c=%27%c3%BC+%20",
        ),
        (
            "/{id}/[1]|a^b\\c?f[x]={y}|z^\\",
            "/{id}/[1]|a^b\\c?f[x]={y}|z^\\",
        ),
        (
            "/a b/ü?ß=日本#part?x",
            "/a%20b/%C3%BC?%C3%9F=%E6%97%A5%E6%9C%AC",
        ),
        ("//x@y:z/", "//x@y:z/"),
    ] {
        let response = post(&client, &format!("HTTP://{address}{given}")).await;
        assert_eq!(response.unwrap().status, 200, "{given}");
        let head = heads.recv().await.unwrap();
        let line = format!("POST {target} HTTP/1.1\r\n");
        assert!(head.starts_with(&line), "{given}: {head}");
        assert!(head.contains(&format!("\r\nhost: {address}\r\n")), "{head}");
        assert!(!head.contains("authorization"), "{head}");
    }
}

#[tokio::test]
async fn user_and_password_of_a_stored_url_are_sent_as_basic_authorisation() {
    let (address, mut heads) = recording_server().await;
    let client = client("127.0.0.0/8", Scripted::default());
    let url = format!("http://ada:p%40ss@{address}/?q='");
    assert_eq!(post(&client, &url).await.unwrap().status, 200);
    let head = heads.recv().await.unwrap();
    assert!(head.starts_with("POST /?q=' HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains("\r\nauthorization: Basic YWRhOnBAc3M=\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn a_refused_address_is_not_connected_to() {
    let (address, connections) = server(OK).await;
    let client = client("", SystemResolver::from_system().unwrap());
    for url in [
        format!("http://{address}/"),
        format!("http://[::ffff:127.0.0.1]:{}/", address.port()),
        format!("http://localhost:{}/", address.port()),
    ] {
        let error = post(&client, &url).await.unwrap_err();
        assert!(
            matches!(error, SendError::Refused(Refusal::NotPublic(_))),
            "{url}: {error}"
        );
    }
    assert_eq!(connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_host_that_resolves_differently_the_second_time_is_refused() {
    let (address, connections) = server(OK).await;
    let resolver =
        Arc::new(Scripted::default().host("rebind.example", &[&["8.8.8.8"], &["127.0.0.1"]]));
    let url = format!("http://rebind.example:{}/", address.port());
    let policy = AddressPolicy::default();
    let parsed = Url::parse(&url).unwrap();
    let registered = policy.check_registration(&parsed, &*resolver).await;
    assert_eq!(registered, Ok(()));
    let client = GuardedClient::new(policy, resolver, Duration::from_secs(10), 16).unwrap();
    let error = post(&client, &url).await.unwrap_err();
    // Users see the error, and must not learn the address.
    assert_eq!(error.to_string(), "the host's address is not allowed");
    assert_eq!(connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn only_permitted_addresses_of_a_host_are_connected_to() {
    let (address, connections) = server(OK).await;
    let resolver = Scripted::default().host("two.example", &[&["169.254.169.254", "127.0.0.1"]]);
    let client = client("127.0.0.0/8", resolver);
    let url = format!("http://two.example:{}/", address.port());
    assert_eq!(post(&client, &url).await.unwrap().status, 200);
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_registration_is_refused_if_any_address_is_refused_and_accepted_without_addresses() {
    let resolver = Scripted::default().host("two.example", &[&["8.8.8.8", "10.0.0.1"]]);
    let policy = AddressPolicy::default();
    let check = async |url: &str| {
        let url = Url::parse(url).unwrap();
        policy.check_registration(&url, &resolver).await
    };
    assert_eq!(
        check("http://two.example/").await,
        Err(Refusal::NotPublic("10.0.0.1".parse().unwrap()))
    );
    assert_eq!(check("http://nowhere.example/").await, Ok(()));
    assert!(check("http://10.0.0.1/").await.is_err());
    assert_eq!(check("http://8.8.8.8/").await, Ok(()));
}

#[tokio::test]
async fn every_failure_has_a_plain_reason() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (plain, _) = server("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    let (garbage, _) = server("this is not HTTP\r\n\r\n").await;
    let client = client("127.0.0.0/8", Scripted::default());
    let why = async |url: String| post(&client, &url).await.unwrap_err().to_string();
    let impatient = client_with(
        Duration::from_millis(500),
        "127.0.0.0/8",
        Scripted::default(),
    );
    assert_eq!(
        why("http://127.0.0.1:9/".into()).await,
        "connection refused"
    );
    assert_eq!(
        why("http://nowhere.example/".into()).await,
        "the host does not resolve"
    );
    let silent = silent.local_addr().unwrap();
    let late = post(&impatient, &format!("http://{silent}/")).await;
    assert_eq!(late.unwrap_err().to_string(), "timed out after 0.5 s");
    let untrusted = PrivateCa::new().server("127.0.0.1");
    let untrusted = testkit::tls_in_front_of(plain, untrusted, false).await;
    let refused = why(format!("https://127.0.0.1:{untrusted}/")).await;
    let expected = "the server's certificate was refused: unknown issuer";
    assert!(refused.starts_with(expected), "{refused}");
    let tls = why(format!("https://{plain}/")).await;
    assert!(tls.starts_with("TLS: "), "{tls}");
    let endless_head = String::leak("HTTP/1.1 200 OK\r\nx: ".to_owned() + &"x".repeat(64 * 1024));
    let (endless_head, _) = server(endless_head).await;
    for address in [garbage, endless_head] {
        let broken = why(format!("http://{address}/")).await;
        assert!(broken.starts_with("the connection failed: "), "{broken}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (address, connections) =
        server("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n").await;
    let client = client("127.0.0.0/8", SystemResolver::from_system().unwrap());
    let response = post(&client, &format!("http://{address}/")).await.unwrap();
    assert_eq!(response.status, 302);
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_endless_body_is_truncated_and_the_response_returned() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n";
    let endless: &'static str = String::leak(HEAD.to_owned() + &"x".repeat(5_000));
    let client = client("127.0.0.0/8", SystemResolver::from_system().unwrap());
    let (address, _) = server(endless).await;
    let response = post(&client, &format!("http://{address}/")).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), response.beginning.len()),
        (200, 1024)
    );
    let (stalling, _) = server(HEAD).await;
    let started = Instant::now();
    let response = post(&client, &format!("http://{stalling}/")).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), response.beginning.len()),
        (200, 0)
    );
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_body_that_the_caller_needs_may_come_late() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let (head, body) = OK.split_at(OK.len() - 2);
            stream.write_all(head.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            // The other caller has closed the connection.
            let _ = stream.write_all(body.as_bytes()).await;
        }
    });
    let client = client("127.0.0.0/8", SystemResolver::from_system().unwrap());
    let url = TargetUrl::parse(&format!("http://{address}/")).unwrap();
    for (body_bytes, expected) in [(64 * 1024, "ok"), (1024, "")] {
        let response = client.send(&url, posted("", body_bytes)).await.unwrap();
        assert_eq!(response.beginning, expected.as_bytes());
    }
}

#[tokio::test]
async fn a_response_may_have_a_header_over_several_lines() {
    const FOLDED: &str = "HTTP/1.1 200 OK\r\nx-policy: a;\r\n  b\r\ncontent-length: 2\r\n\r\nok";
    let (address, _) = server(FOLDED).await;
    let client = client("127.0.0.0/8", SystemResolver::from_system().unwrap());
    let response = post(&client, &format!("http://{address}/")).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), &*response.beginning),
        (200, &b"ok"[..])
    );
}

#[tokio::test]
async fn a_receiver_that_does_not_read_leaves_no_connection_behind() {
    const BODY: usize = 64 * 1024 * 1024;
    for response in [CLOSING, OK, ""] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        // The last call waits until this has passed.
        let timeout = Duration::from_secs(3);
        let resolver = SystemResolver::from_system().unwrap();
        let client = client_with(timeout, "127.0.0.0/8", resolver);
        let body = vec![b'x'; BODY];
        let calling = async {
            let url = TargetUrl::parse(&url).unwrap();
            client.send(&url, posted(body, 1024)).await
        };
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read_u8().await.unwrap();
            stream.write_all(response.as_bytes()).await.unwrap();
            stream
        };
        let (called, mut stream) = tokio::join!(calling, answering);
        assert_eq!(called.is_ok(), !response.is_empty(), "{called:?}");
        // What the kernel had taken by the end of the call can be read, and nothing more.
        let mut read = Vec::new();
        let _ = stream.read_to_end(&mut read).await;
        assert!(read.len() < BODY, "{response:?}");
    }
}

/// A server that answers every request of a connection with an empty body.
async fn persistent_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                while stream.read_buf(&mut request).await.unwrap() > 0 {
                    if request.ends_with(b"{}") {
                        request.clear();
                        stream.write_all(EMPTY).await.unwrap();
                    }
                }
            });
        }
    });
    address
}

const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_call_leaves_the_next_one_of_its_connection_alone() {
    let url = format!("http://{}/", persistent_server().await);
    let client = client("127.0.0.0/8", SystemResolver::from_system().unwrap());
    let calls = |_| {
        let (client, url) = (client.clone(), url.clone());
        tokio::spawn(async move {
            for _ in 0..2_000 {
                let called = post(&client, &url).await;
                assert!(called.is_ok(), "{called:?}");
            }
        })
    };
    for calls in (0..16).map(calls).collect::<Vec<_>>() {
        calls.await.unwrap();
    }
}

/// A resolver whose first lookup succeeds, and whose others never end.
#[derive(Clone, Default)]
struct OnceResolving {
    lookups: Arc<AtomicUsize>,
    /// Holds a reference for each lookup that goes on.
    going_on: Arc<()>,
}

impl Resolve for OnceResolving {
    fn resolve(&self, _: &str) -> Resolved {
        let is_first = self.lookups.fetch_add(1, Ordering::Relaxed) == 0;
        let going_on = Arc::clone(&self.going_on);
        Box::pin(async move {
            if !is_first {
                std::future::pending::<()>().await;
            }
            drop(going_on);
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        })
    }
}

#[tokio::test]
async fn a_connection_that_is_still_opened_ends_with_its_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "http://a.example:{}/",
        listener.local_addr().unwrap().port()
    );
    let resolver = OnceResolving::default();
    let client = client("127.0.0.0/8", resolver.clone());
    let without_lookups = Arc::strong_count(&resolver.going_on);
    let answering = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        for lookups in [1, 2, 2] {
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            eventually("the lookups of the calls", async || {
                (resolver.lookups.load(Ordering::Relaxed) == lookups).then_some(())
            })
            .await;
            stream.write_all(OK.as_bytes()).await.unwrap();
        }
    };
    let calling = async {
        let _ = post(&client, &url).await.unwrap();
        // One takes the connection, the other one begins to open another, and then takes it, too.
        let calls = tokio::join!(post(&client, &url), post(&client, &url));
        assert!(calls.0.is_ok() && calls.1.is_ok(), "{calls:?}");
    };
    tokio::join!(answering, calling);
    let ended = async {
        while Arc::strong_count(&resolver.going_on) > without_lookups {
            tokio::task::yield_now().await;
        }
    };
    // Connecting alone has a limit of five seconds.
    let in_time = tokio::time::timeout(Duration::from_secs(2), ended).await;
    assert!(in_time.is_ok());
}
