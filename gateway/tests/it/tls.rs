use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use app_config::{Reader, Settings as _};
use gateway::GatewaySettings;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use reqwest::{Certificate, Client};
use server::Running;
use tempfile::TempDir;
use testkit::eventually;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::fixture::{Fixture, read_until_silence, signer, start_gateway};
use crate::services::FakeService;

const HOST: &str = "gateway.example";

/// The files of a certificate for [`HOST`].
struct Files {
    folder: TempDir,
    root: Certificate,
}

impl Files {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let root = write(&folder);
        Self { folder, root }
    }

    fn path(&self, name: &str) -> String {
        path(&self.folder, name).to_str().unwrap().to_owned()
    }
}

fn path(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

/// Writes a new certificate and its key.
fn write(folder: &TempDir) -> Certificate {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([HOST.to_owned()]).unwrap();
    fs::write(path(folder, "key.pem"), signing_key.serialize_pem()).unwrap();
    fs::write(path(folder, "certificate.pem"), cert.pem()).unwrap();
    Certificate::from_pem(cert.pem().as_bytes()).unwrap()
}

struct TlsFixture {
    users: FakeService,
    _tasks: FakeService,
    gateway: Running,
    files: Files,
}

impl TlsFixture {
    async fn start() -> Self {
        Self::with(&[]).await
    }

    async fn with(extra: &[(&str, &str)]) -> Self {
        let (users, tasks, files) = (FakeService::start(), FakeService::start(), Files::new());
        users.with(|state| state.keys = Some(signer(&[]).published().clone()));
        let (certificate, key) = (files.path("certificate.pem"), files.path("key.pem"));
        let settings = [
            ("TLS_CERTIFICATE_FILE", certificate.as_str()),
            ("TLS_PRIVATE_KEY_FILE", key.as_str()),
            ("TLS_RELOAD_INTERVAL", "100ms"),
        ];
        let settings = [&settings, extra].concat();
        let gateway = start_gateway(&users, &tasks, &settings).await;
        Self {
            users,
            _tasks: tasks,
            gateway,
            files,
        }
    }

    fn address(&self) -> SocketAddr {
        self.gateway.address.unwrap()
    }

    fn url(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.address().port())
    }

    /// A client that trusts only one certificate.
    fn client(&self, root: &Certificate) -> Client {
        Client::builder()
            .no_proxy()
            .tls_certs_only([root.clone()])
            .resolve(HOST, self.address())
            .pool_max_idle_per_host(0)
            .build()
            .unwrap()
    }
}

#[tokio::test]
async fn the_gateway_speaks_tls_with_its_certificate() {
    let fixture = TlsFixture::start().await;
    let client = fixture.client(&fixture.files.root);
    let response = client.post(fixture.url("/user")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["strict-transport-security"],
        "max-age=31536000"
    );
    let received = fixture.users.last();
    assert_eq!(received.header("x-forwarded-proto"), Some("https"));

    let other_client = fixture.client(&Files::new().root);
    assert!(
        other_client
            .post(fixture.url("/user"))
            .send()
            .await
            .is_err()
    );
}

#[tokio::test]
async fn every_response_over_tls_has_hsts() {
    let fixture = TlsFixture::start().await;
    let client = fixture.client(&fixture.files.root);
    for path in ["/docs", "/nothing", "/users", "/healthz"] {
        let response = client.get(fixture.url(path)).send().await.unwrap();
        let policy = response.headers().get("strict-transport-security");
        assert_eq!(policy.unwrap(), "max-age=31536000", "{path}");
    }
}

#[tokio::test]
async fn plain_http_on_the_tls_port_is_refused() {
    let fixture = TlsFixture::start().await;
    let mut socket = TcpStream::connect(fixture.address()).await.unwrap();
    let plain = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    socket.write_all(plain).await.unwrap();
    let response = read_until_silence(&mut socket, 1).await;
    assert!(!response.contains("HTTP/1.1"), "{response}");
    let client = fixture.client(&fixture.files.root);
    let response = client.get(fixture.url("/healthz")).send().await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_head_that_is_too_long_is_a_problem_over_tls_too() {
    let fixture = TlsFixture::start().await;
    let client = fixture.client(&fixture.files.root);
    let request = client.get(fixture.url("/healthz"));
    let request = request.header("x-long", "x".repeat(140_000));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 431);
    let content_type = response.headers().get("content-type").unwrap();
    assert_eq!(content_type, "application/problem+json");
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let fixture = TlsFixture::start().await;
    let presented = |root: Certificate| {
        let (client, url) = (fixture.client(&root), fixture.url("/healthz"));
        async move { client.get(url).send().await.is_ok() }
    };
    assert!(presented(fixture.files.root.clone()).await);
    let renewed = write(&fixture.files.folder);
    eventually("the renewed certificate", || {
        let presented = presented(renewed.clone());
        async { presented.await.then_some(()) }
    })
    .await;
    assert!(!presented(fixture.files.root.clone()).await);
}

#[tokio::test]
async fn without_tls_hsts_is_sent_only_behind_a_trusted_tls_proxy() {
    let forwarded = |fixture: &Fixture| {
        let request = fixture
            .http
            .get("/docs")
            .header("x-forwarded-proto", "https");
        request.send()
    };
    let plain = Fixture::start().await;
    let reply = forwarded(&plain).await.expect(200);
    assert_eq!(reply.header("strict-transport-security"), None);

    let behind = Fixture::with(&[("TRUSTED_PROXIES", "127.0.0.1/32")]).await;
    let reply = forwarded(&behind).await.expect(200);
    assert_eq!(
        reply.header("strict-transport-security"),
        Some("max-age=31536000")
    );
    let reply = behind.http.get("/docs").send().await.expect(200);
    assert_eq!(reply.header("strict-transport-security"), None);

    let settings = [("TRUSTED_PROXIES", "127.0.0.1/32"), ("HSTS_MAX_AGE", "0s")];
    let silent = Fixture::with(&settings).await;
    let reply = forwarded(&silent).await.expect(200);
    assert_eq!(reply.header("strict-transport-security"), None);
}

#[tokio::test]
async fn unusable_tls_files_are_named_at_start() {
    // Installs the crypto provider that the gateway's clients need.
    let _ = testkit::Http::to(([127, 0, 0, 1], 1).into());
    let files = Files::new();
    let (certificate, key) = (files.path("certificate.pem"), files.path("key.pem"));
    let (other, missing, empty) = (
        files.path("other.pem"),
        files.path("missing.pem"),
        files.path("empty.pem"),
    );
    let foreign = KeyPair::generate().unwrap().serialize_pem();
    fs::write(&other, foreign).unwrap();
    fs::write(&empty, "").unwrap();
    for (certificate, key, named) in [
        (&certificate, &other, "cannot be used together"),
        (&missing, &key, "TLS_CERTIFICATE_FILE"),
        (&empty, &key, "holds no certificate"),
        (&certificate, &missing, "TLS_PRIVATE_KEY_FILE"),
        (&certificate, &certificate, "holds no private key"),
    ] {
        let settings = read(&[
            ("TLS_CERTIFICATE_FILE", certificate),
            ("TLS_PRIVATE_KEY_FILE", key),
        ]);
        let error = gateway::run(settings.unwrap()).await.unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains(named) && !text.contains("PRIVATE KEY-----"),
            "{text}"
        );
    }
    let error = read(&[("TLS_CERTIFICATE_FILE", &certificate)]).unwrap_err();
    assert!(
        error.to_string().contains("TLS_PRIVATE_KEY_FILE"),
        "{error}"
    );
}

/// The error of a start with these files.
async fn error_of(certificate: &str, key: &str) -> String {
    let settings = read(&[
        ("TLS_CERTIFICATE_FILE", certificate),
        ("TLS_PRIVATE_KEY_FILE", key),
    ]);
    let error = gateway::run(settings.unwrap()).await.unwrap_err();
    format!("{error:#}")
}

#[tokio::test]
async fn the_error_says_what_is_wrong_with_a_key() {
    let _ = testkit::Http::to(([127, 0, 0, 1], 1).into());
    let files = Files::new();
    let (certificate, other) = (files.path("certificate.pem"), files.path("other.pem"));
    let pem = |label: &str, der: &[u8]| pem::encode(&pem::Pem::new(label, der));
    // The beginnings of PKCS#8 keys, which name the kind of the key.
    let p521 = b"\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x23";
    let pss = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a\x05\x00";
    for (text, expected) in [
        (pem("PRIVATE KEY", p521), "an ECDSA key on P-521; use RSA"),
        (pem("PRIVATE KEY", pss), "an RSA-PSS key; use RSA"),
        (
            pem("PRIVATE KEY", b"\x30\x00"),
            "an unsupported type or size",
        ),
        (
            pem("ENCRYPTED PRIVATE KEY", b"x"),
            "the private key is encrypted; decrypt it",
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n".to_owned(),
            "is encrypted",
        ),
        (
            fs::read_to_string(&certificate).unwrap(),
            "it holds: CERTIFICATE",
        ),
        ("MIIB".to_owned(), "it has no line `-----BEGIN …-----`"),
    ] {
        fs::write(&other, &text).unwrap();
        let error = error_of(&certificate, &other).await;
        assert!(
            error.contains("TLS_PRIVATE_KEY_FILE") && error.contains(expected),
            "{error}"
        );
    }
    fs::write(&other, b"\xff\xfe-\0-\0").unwrap();
    assert!(error_of(&certificate, &other).await.contains("UTF-16"));
}

#[tokio::test]
async fn the_error_says_what_is_wrong_with_a_chain() {
    let _ = testkit::Http::to(([127, 0, 0, 1], 1).into());
    let files = Files::new();
    let (certificate, key) = (files.path("certificate.pem"), files.path("key.pem"));
    let other = files.path("other.pem");
    let foreign = generate_simple_self_signed(["ca.example".to_owned()]).unwrap();
    let own = fs::read_to_string(&certificate).unwrap();
    fs::write(&other, foreign.cert.pem() + &own).unwrap();
    let error = error_of(&other, &key).await;
    assert!(
        error.contains("the server's certificate must be first"),
        "{error}"
    );
    fs::write(&other, foreign.cert.pem()).unwrap();
    let error = error_of(&other, &key).await;
    assert!(
        error.contains("belongs to none of the certificates"),
        "{error}"
    );
}

#[tokio::test]
async fn files_may_begin_with_a_byte_order_mark() {
    let _ = testkit::Http::to(([127, 0, 0, 1], 1).into());
    let files = Files::new();
    let (certificate, key) = (files.path("certificate.pem"), files.path("key.pem"));
    for file in [&certificate, &key] {
        let text = fs::read_to_string(file).unwrap();
        fs::write(file, format!("\u{feff}{text}")).unwrap();
    }
    let settings = read(&[
        ("TLS_CERTIFICATE_FILE", &certificate),
        ("TLS_PRIVATE_KEY_FILE", &key),
    ]);
    let gateway = gateway::run(settings.unwrap()).await.unwrap();
    assert!(gateway.stop(Duration::from_secs(5)).await);
}

fn read(given: &[(&str, &str)]) -> Result<GatewaySettings, app_config::Error> {
    let own = [
        ("LISTEN_ADDRESS", "127.0.0.1:0"),
        ("USER_SERVICE_URL", "http://127.0.0.1:1"),
        ("PEOPLE_TASK_SERVICE_URL", "http://127.0.0.1:1"),
    ];
    let pairs = own.iter().chain(given).copied();
    GatewaySettings::read(&mut Reader::from_pairs(pairs).unwrap())
}

#[tokio::test]
async fn handshakes_that_stall_do_not_keep_others_from_connecting() {
    let settings = [("HTTP_WORKERS", "1"), ("HTTP_HEAD_TIMEOUT", "5m")];
    let fixture = TlsFixture::with(&settings).await;
    let mut stalled = Vec::new();
    for _ in 0..300 {
        stalled.push(TcpStream::connect(fixture.address()).await.unwrap());
    }
    let client = fixture.client(&fixture.files.root);
    let request = client.post(fixture.url("/user"));
    // The handshakes stall for longer.
    let response = request.timeout(Duration::from_secs(60)).send().await;
    let response = response.unwrap();
    assert_eq!(response.status(), 200);
}
