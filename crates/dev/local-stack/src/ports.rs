//! Free loopback ports, which stay free while a server restarts.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, bail};

/// Below Linux' range for outgoing connections, so that no outgoing connection takes the port of a server
/// while the server is down.
const FROM: u16 = 15_000;
const TO: u16 = 32_000;

/// Returns whether nothing listens on `port` of 127.0.0.1.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Returns `N` different free ports.
pub fn free<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    ports.copy_from_slice(&several(N)?);
    Ok(ports)
}

/// Returns `count` different free ports.
pub fn several(count: usize) -> Result<Vec<u16>> {
    // All listeners stay open until the end, so that no port is chosen twice.
    let held: Vec<(u16, TcpListener)> = (0..count).map(|_| bind_any()).collect::<Result<_>>()?;
    Ok(held.into_iter().map(|(port, _)| port).collect())
}

/// Returns `preferred` if it is free, and another free port otherwise.
pub fn prefer(preferred: u16) -> Result<u16> {
    if is_free(preferred) {
        return Ok(preferred);
    }
    free().map(|[port]| port)
}

fn bind_any() -> Result<(u16, TcpListener)> {
    for _ in 0..1000 {
        let port = rand::random_range(FROM..TO);
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok((port, listener));
        }
    }
    bail!("no free port between {FROM} and {TO} on 127.0.0.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_are_different() {
        let mut ports = free::<20>().unwrap();
        ports.sort_unstable();
        assert!(ports.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn prefer_replaces_a_taken_port() {
        let [taken] = free::<1>().unwrap();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, taken)).unwrap();
        assert_ne!(prefer(taken).unwrap(), taken);
    }
}
