//! A gateway with fake services, and tokens that it accepts.

use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Reader, Settings as _};
use auth::{JwkSet, Signer, SigningKey, Subject};
use gateway::GatewaySettings;
use gateway::routes::Service;
use server::Running;
use testkit::{Http, ed25519_pem, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use values::{EmailAddress, FromText as _, Secret, UserId};

use crate::services::FakeService;

pub(crate) struct Fixture {
    pub(crate) users: FakeService,
    pub(crate) tasks: FakeService,
    pub(crate) gateway: Running,
    pub(crate) http: Http,
    pub(crate) signer: Signer,
    /// The private key of the signer, in PEM form.
    pub(crate) key: Secret,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// A gateway with these settings, ready to serve.
    pub(crate) async fn with(extra: &[(&str, &str)]) -> Self {
        let (users, tasks) = (FakeService::start(), FakeService::start());
        let key = ed25519_pem();
        let signer = signer_of(&key, &[]);
        users.with(|state| state.keys = Some(signer.published().clone()));
        let gateway = start_gateway(&users, &tasks, extra).await;
        let http = Http::to(gateway.address.unwrap());
        let fixture = Self {
            users,
            tasks,
            gateway,
            http,
            signer,
            key,
        };
        fixture.until_ready().await;
        fixture
    }

    pub(crate) async fn until_ready(&self) {
        eventually("the gateway", || async {
            let ready = self.http.get("/readyz").send().await;
            (ready.status == 200).then_some(())
        })
        .await;
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.gateway.address.unwrap()
    }

    pub(crate) fn token(&self) -> String {
        token(&self.signer, UserId::generate())
    }

    pub(crate) fn service(&self, service: Service) -> &FakeService {
        match service {
            Service::User => &self.users,
            Service::PeopleTask => &self.tasks,
        }
    }

    /// Sends raw bytes, and reads as [`read_until_silence`] does after one response.
    pub(crate) async fn raw(&self, request: &str) -> String {
        self.pipeline(request, 1).await
    }

    /// Sends raw bytes, and reads as [`read_until_silence`] does.
    pub(crate) async fn pipeline(&self, requests: &str, responses: usize) -> String {
        let mut socket = TcpStream::connect(self.address()).await.unwrap();
        socket.write_all(requests.as_bytes()).await.unwrap();
        read_until_silence(&mut socket, responses).await
    }
}

/// How long a response may take: less than the time limits that the gateway has by default.
const TIME_LIMIT: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_millis(400);

/// Reads until the peer closes the connection, or has begun this number of responses and sends nothing more for a moment.
pub(crate) async fn read_until_silence(socket: &mut TcpStream, responses: usize) -> String {
    let mut received = String::new();
    let mut buffer = [0; 4096];
    loop {
        let has_all = received.matches("HTTP/1.1 ").count() >= responses;
        let limit = if has_all { SILENCE } else { TIME_LIMIT };
        match tokio::time::timeout(limit, socket.read(&mut buffer)).await {
            Ok(Ok(read @ 1..)) => received.push_str(&String::from_utf8_lossy(&buffer[..read])),
            _ => return received,
        }
    }
}

pub(crate) async fn start_gateway(
    users: &FakeService,
    tasks: &FakeService,
    extra: &[(&str, &str)],
) -> Running {
    run_gateway(users, tasks, extra).await.unwrap()
}

/// Why a gateway with these settings does not start.
pub(crate) async fn start_error(extra: &[(&str, &str)]) -> String {
    let (users, tasks) = (FakeService::start(), FakeService::start());
    let started = run_gateway(&users, &tasks, extra).await;
    format!("{:#}", started.err().unwrap())
}

async fn run_gateway(
    users: &FakeService,
    tasks: &FakeService,
    extra: &[(&str, &str)],
) -> anyhow::Result<Running> {
    // Installs the crypto provider that the clients need.
    let _ = Http::to(users.running.address.unwrap());
    let (users, tasks) = (users.url(), tasks.url());
    let required = [
        ("LISTEN_ADDRESS", "127.0.0.1:0"),
        ("USER_SERVICE_URL", users.as_str()),
        ("PEOPLE_TASK_SERVICE_URL", tasks.as_str()),
    ];
    let pairs = required.iter().chain(extra).copied();
    let mut reader = Reader::from_pairs(pairs)?;
    gateway::run(GatewaySettings::read(&mut reader)?).await
}

/// A signer with a new key, which also publishes other keys.
pub(crate) fn signer(others: &[SigningKey]) -> Signer {
    signer_of(&ed25519_pem(), others)
}

fn signer_of(key: &Secret, others: &[SigningKey]) -> Signer {
    let key = SigningKey::from_pem(key).unwrap();
    let name = || "countersign".to_owned();
    Signer::new(&key, others, name(), name(), Duration::from_secs(3600))
}

pub(crate) fn token(signer: &Signer, id: UserId) -> String {
    let email = EmailAddress::from_text("ada@example.com").unwrap();
    let subject = Subject {
        id,
        username: email.clone(),
        email,
        scope: vec!["user".to_owned()],
        epoch: 1,
        incarnation: testkit::INCARNATION.to_owned(),
        email_verified: true,
        group: None,
        credential: None,
        key_scopes: None,
        service: false,
    };
    signer.sign(subject).expose().to_owned()
}

/// The keys of all these signers.
pub(crate) fn keys_of(signers: &[&Signer]) -> JwkSet {
    let keys = signers
        .iter()
        .flat_map(|signer| signer.published().keys.clone());
    JwkSet {
        keys: keys.collect(),
    }
}
