use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use app_config::{Reader, Settings as _};
use gateway::GatewaySettings;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use reqwest::{Certificate, Client};
use service_runtime::Running;
use tempfile::TempDir;
use testkit::eventually;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::services::FakeService;
use crate::world::{World, read_until_silence, signer, start_gateway};

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

struct Served {
    users: FakeService,
    _tasks: FakeService,
    gateway: Running,
    files: Files,
}

impl Served {
    async fn start() -> Self {
        let (users, tasks, files) = (FakeService::start(), FakeService::start(), Files::new());
        users.with(|state| state.keys = Some(signer(&[]).published().clone()));
        let (certificate, key) = (files.path("certificate.pem"), files.path("key.pem"));
        let settings = [
            ("TLS_CERTIFICATE_FILE", certificate.as_str()),
            ("TLS_PRIVATE_KEY_FILE", key.as_str()),
            ("TLS_RELOAD_INTERVAL", "100ms"),
        ];
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

    /// A client that trusts one certificate and nobody else.
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
async fn the_gateway_speaks_tls_with_the_certificate_of_its_files() {
    let served = Served::start().await;
    let client = served.client(&served.files.root);
    let answer = client.post(served.url("/user")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.headers()["strict-transport-security"],
        "max-age=31536000"
    );
    let seen = served.users.last();
    assert_eq!(seen.header("x-forwarded-proto"), Some("https"));

    let stranger = served.client(&Files::new().root);
    assert!(stranger.post(served.url("/user")).send().await.is_err());
}

#[tokio::test]
async fn every_answer_by_tls_carries_the_transport_policy() {
    let served = Served::start().await;
    let client = served.client(&served.files.root);
    for path in ["/docs", "/nothing", "/users", "/healthz"] {
        let answer = client.get(served.url(path)).send().await.unwrap();
        let policy = answer.headers().get("strict-transport-security");
        assert_eq!(policy.unwrap(), "max-age=31536000", "{path}");
    }
}

#[tokio::test]
async fn plain_http_at_the_port_of_tls_ends_and_harms_nobody() {
    let served = Served::start().await;
    let mut socket = TcpStream::connect(served.address()).await.unwrap();
    let plain = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    socket.write_all(plain).await.unwrap();
    let answer = read_until_silence(&mut socket).await;
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    let client = served.client(&served.files.root);
    let answer = client.get(served.url("/healthz")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let served = Served::start().await;
    let shown = |root: Certificate| {
        let (client, url) = (served.client(&root), served.url("/healthz"));
        async move { client.get(url).send().await.is_ok() }
    };
    assert!(shown(served.files.root.clone()).await);
    let renewed = write(&served.files.folder);
    eventually("the renewed certificate", || {
        let shown = shown(renewed.clone());
        async { shown.await.then_some(()) }
    })
    .await;
    assert!(!shown(served.files.root.clone()).await);
}

#[tokio::test]
async fn without_tls_the_policy_is_sent_only_for_a_trusted_proxy_that_has_it() {
    let forwarded = |world: &World| {
        let request = world.http.get("/docs").header("x-forwarded-proto", "https");
        request.send()
    };
    let plain = World::start().await;
    let reply = forwarded(&plain).await.expect(200);
    assert_eq!(reply.header("strict-transport-security"), None);

    let behind = World::with(&[("TRUSTED_PROXIES", "127.0.0.1/32")]).await;
    let reply = forwarded(&behind).await.expect(200);
    assert_eq!(
        reply.header("strict-transport-security"),
        Some("max-age=31536000")
    );
    let reply = behind.http.get("/docs").send().await.expect(200);
    assert_eq!(reply.header("strict-transport-security"), None);

    let settings = [("TRUSTED_PROXIES", "127.0.0.1/32"), ("HSTS_MAX_AGE", "0s")];
    let silent = World::with(&settings).await;
    let reply = forwarded(&silent).await.expect(200);
    assert_eq!(reply.header("strict-transport-security"), None);
}

#[tokio::test]
async fn files_that_cannot_be_used_stop_the_gateway_with_their_setting() {
    // Its clients need their cryptography, which a binary chooses at its start.
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
        (&empty, &key, "there is no certificate"),
        (&certificate, &missing, "TLS_PRIVATE_KEY_FILE"),
        (&certificate, &certificate, "there is no private key"),
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

fn read(given: &[(&str, &str)]) -> Result<GatewaySettings, app_config::Error> {
    let own = [
        ("LISTEN_ADDRESS", "127.0.0.1:0"),
        ("USER_SERVICE_URL", "http://127.0.0.1:1"),
        ("PEOPLE_TASK_SERVICE_URL", "http://127.0.0.1:1"),
    ];
    let pairs = own.iter().chain(given).copied();
    GatewaySettings::read(&mut Reader::from_pairs(pairs).unwrap())
}
