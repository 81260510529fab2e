//! Free loopback ports, which stay free while a server restarts.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

/// Below Linux' range for outgoing connections, so that no outgoing connection takes the port of a server
/// while the server is down.
const FROM: u16 = 15_000;
const TO: u16 = 32_000;

/// Held until this process ends, so that no other one chooses its ports before the servers listen. Nothing else uses UDP
/// there.
static RESERVED: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// Returns whether nothing listens on `port` of 127.0.0.1.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Returns `N` different free ports, which are reserved for this process.
pub fn free<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    ports.copy_from_slice(&several(N)?);
    Ok(ports)
}

/// Returns `count` different free ports, which are reserved for this process.
pub fn several(count: usize) -> Result<Vec<u16>> {
    (0..count).map(|_| reserve_any()).collect()
}

/// Returns `preferred` if it is free, and another free port otherwise.
pub fn prefer(preferred: u16) -> Result<u16> {
    if is_free(preferred) {
        return Ok(preferred);
    }
    free().map(|[port]| port)
}

fn reserve_any() -> Result<u16> {
    for _ in 0..1000 {
        let port = rand::random_range(FROM..TO);
        // UDP is first: a server that is about to listen on a port that another process reserved never finds it taken.
        if let Ok(reservation) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))
            && is_free(port)
        {
            let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
            reserved.push(reservation);
            return Ok(port);
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
    fn a_free_port_is_reserved() {
        for port in free::<5>().unwrap() {
            assert!(UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_err());
        }
    }

    #[test]
    fn prefer_replaces_a_taken_port() {
        let [taken] = free::<1>().unwrap();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, taken)).unwrap();
        assert_ne!(prefer(taken).unwrap(), taken);
    }
}
