use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use app_config::{Reader, Settings as _};

use crate::settings::ProcessSettings;

const TIMEOUT: Duration = Duration::from_secs(3);

/// Whether the running process reports at `METRICS_ADDRESS` that it is ready.
pub(crate) fn is_ready() -> anyhow::Result<bool> {
    let settings = ProcessSettings::read(&mut Reader::from_process()?)?;
    ask(settings.metrics_address)
}

/// Sends one plain request, so that the check needs neither a runtime nor a client.
fn ask(mut address: SocketAddr) -> anyhow::Result<bool> {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut status = [0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut status)?;
    Ok(status.ends_with(b"200"))
}
