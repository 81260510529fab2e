use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{env, fs, io};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A private certification authority, as companies have one.
pub struct PrivateCa(CertifiedIssuer<'static, KeyPair>);

impl PrivateCa {
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        Self::with(KeyPair::generate().unwrap())
    }

    fn with(key: KeyPair) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(parameters, key).unwrap())
    }

    /// Writes its certificate to a file, for `SSL_CERT_FILE`.
    pub fn write(&self, file: &Path) {
        fs::write(file, self.0.pem()).unwrap();
    }

    /// A server's configuration with a certificate for a name.
    pub fn server(&self, name: &str) -> ServerConfig {
        self.server_until(name, 4096)
    }

    /// Like [`PrivateCa::server`], with a certificate that expires at the beginning of a year.
    pub fn server_until(&self, name: &str, year: i32) -> ServerConfig {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(2000, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }
}

/// Runs the test of this name again, in a process whose trust store is a file with the certificates of one private CA.
/// Returns the CA in that process and `None` in the first one, which is done then: a process cannot change its own
/// environment safely.
///
/// The processes share the CA's key through a folder.
pub fn with_private_ca(test: &str) -> Option<PrivateCa> {
    const KEY: &str = "COUNTERSIGN_TEST_CA_KEY";
    if let Some(file) = env::var_os(KEY) {
        let key = KeyPair::from_pem(&fs::read_to_string(file).unwrap()).unwrap();
        return Some(PrivateCa::with(key));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let ca = PrivateCa::new();
    ca.write(&path("ca.pem"));
    fs::write(path("key.pem"), ca.0.key().serialize_pem()).unwrap();
    let again = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(KEY, path("key.pem"))
        .env("SSL_CERT_FILE", path("ca.pem"))
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&again.stdout);
    let errors = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success(), "{output}\n{errors}");
    assert!(
        output.contains("1 passed"),
        "no test is called {test}: {output}"
    );
    None
}

/// Starts a port that takes off the TLS of each connection and passes the rest on to `target`. Returns the port. With
/// `starttls`, the target is a mail server, and TLS begins after the command `STARTTLS`.
pub async fn tls_in_front_of(target: SocketAddr, config: ServerConfig, starttls: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((outside, _)) = listener.accept().await {
            tokio::spawn(take_off_tls(outside, acceptor.clone(), target, starttls));
        }
    });
    port
}

async fn take_off_tls(
    mut outside: TcpStream,
    acceptor: TlsAcceptor,
    target: SocketAddr,
    starttls: bool,
) -> io::Result<()> {
    if starttls {
        outside.write_all(b"220 test\r\n").await?;
        for reply in ["250-test\r\n250 STARTTLS\r\n", "220 go\r\n"] {
            skip_line(&mut outside).await?;
            outside.write_all(reply.as_bytes()).await?;
        }
    }
    let mut outside = acceptor.accept(outside).await?;
    let mut inside = TcpStream::connect(target).await?;
    if starttls {
        // The client has been greeted.
        skip_line(&mut inside).await?;
    }
    copy_bidirectional(&mut outside, &mut inside)
        .await
        .map(drop)
}

/// Skips the only line that has been sent.
async fn skip_line(stream: &mut TcpStream) -> io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    lines.next_line().await.map(drop)
}
