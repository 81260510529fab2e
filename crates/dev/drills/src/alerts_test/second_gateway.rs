//! A second gateway, which serves TLS and few connections.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use anyhow::Context;
use local_stack::private;
use rcgen::generate_simple_self_signed;

use super::prometheus::Drill;
use rig::{system::System, workspace::Workspace};

const NAME: &str = "gateway-2";
const MAX_CONNECTIONS: usize = 8;

/// Gives the second gateway a certificate and a small limit of connections.
pub(super) fn prepare(system: &mut System) -> anyhow::Result<()> {
    let folder = system.workspace.local().join("tls");
    private::create_folder(&folder)?;
    let certified =
        generate_simple_self_signed(["localhost".to_owned()]).context("creating a certificate")?;
    let certificate = folder.join("certificate.pem");
    fs::write(&certificate, certified.cert.pem())?;
    let private_key = private_key(&system.workspace);
    private::write(
        &private_key,
        certified.signing_key.serialize_pem().as_bytes(),
    )?;
    let path = |path: &Path| path.display().to_string();
    let settings = [
        ("TLS_CERTIFICATE_FILE", path(&certificate)),
        ("TLS_PRIVATE_KEY_FILE", path(&private_key)),
        ("TLS_RELOAD_INTERVAL", "500ms".to_owned()),
        ("HTTP_WORKERS", "1".to_owned()),
        ("HTTP_MAX_CONNECTIONS", MAX_CONNECTIONS.to_string()),
        // Connections of a trusted proxy are not limited.
        ("TRUSTED_PROXIES", String::new()),
    ];
    let mut processes = system.processes.iter_mut();
    let gateway = processes.find(|process| process.name == NAME);
    let gateway = gateway.context("there is no second gateway")?;
    gateway.variables.extend(settings);
    Ok(())
}

fn private_key(workspace: &Workspace) -> PathBuf {
    workspace.local().join("tls/private-key.pem")
}

/// Replaces its private key with something else.
pub(super) fn break_private_key(drill: &Drill<'_>) -> anyhow::Result<()> {
    let file = private_key(&drill.system.rig.workspace);
    Ok(fs::write(file, "not a key")?)
}

/// Opens more connections than it serves.
pub(super) fn connect_often(drill: &Drill<'_>) -> anyhow::Result<()> {
    let address = drill.system.rig.process(NAME)?.address()?;
    drill.keep_up(|| {
        let connect = |_| TcpStream::connect(address);
        let connections: Result<Vec<_>, _> = (0..MAX_CONNECTIONS * 4).map(connect).collect();
        connections.context("connecting to the second gateway")?;
        Ok(())
    })
}
