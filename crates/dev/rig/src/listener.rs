//! A listener on a loopback port that can be closed and reopened.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::Context;
use local_stack::ports;

use crate::sync::{Watch, spawn};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    Dropped,
}

/// Accepts connections on one port until it is dropped. While it is closed, connections are refused.
#[derive(Debug)]
pub struct ToggleListener {
    address: SocketAddr,
    state: Arc<Watch<State>>,
}

impl ToggleListener {
    /// Listens on a free port. Each connection is handled on its own thread.
    pub fn open(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> anyhow::Result<Self> {
        Self::open_at(Ipv4Addr::LOCALHOST, handle)
    }

    /// The same on another loopback address.
    pub fn open_at(
        host: Ipv4Addr,
        handle: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let [port] = ports::free()?;
        let address = SocketAddr::from((host, port));
        let listener =
            TcpListener::bind(address).with_context(|| format!("listening on {address}"))?;
        let state = Arc::new(Watch::new(State::Open));
        let shared_state = Arc::clone(&state);
        spawn(move || serve(address, listener, &shared_state, &Arc::new(handle)))
            .context("starting a thread")?;
        Ok(Self { address, state })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Refuses new connections.
    pub fn close(&self) {
        self.set_state(State::Closed);
    }

    /// Accepts connections again.
    pub fn reopen(&self) {
        self.set_state(State::Open);
    }

    fn set_state(&self, state: State) {
        self.state.set(state);
        // Wakes the accepting thread so that it sees the new state.
        drop(TcpStream::connect(self.address));
    }
}

impl Drop for ToggleListener {
    fn drop(&mut self) {
        self.set_state(State::Dropped);
    }
}

fn serve<Handle: Fn(TcpStream) + Send + Sync + 'static>(
    address: SocketAddr,
    listener: TcpListener,
    state: &Watch<State>,
    handle: &Arc<Handle>,
) {
    let mut listening = Some(listener);
    loop {
        match state.get() {
            State::Dropped => return,
            State::Closed => {
                listening = None;
                state.wait_while(|state| *state == State::Closed);
                continue;
            }
            State::Open => {}
        }
        let accepted = match &listening {
            Some(listener) => listener.accept(),
            None => match TcpListener::bind(address) {
                Ok(listener) => {
                    listening = Some(listener);
                    continue;
                }
                Err(error) => Err(error),
            },
        };
        handle_accepted(accepted, state, handle);
    }
}

fn handle_accepted<Handle: Fn(TcpStream) + Send + Sync + 'static>(
    accepted: io::Result<(TcpStream, SocketAddr)>,
    state: &Watch<State>,
    handle: &Arc<Handle>,
) {
    match accepted {
        Ok((stream, _)) if state.get() == State::Open => {
            // Messages are small: Nagle's algorithm would only delay them.
            let _ = stream.set_nodelay(true);
            let handle = Arc::clone(handle);
            spawn(move || handle(stream));
        }
        Ok(_) => {}
        Err(_) => thread::sleep(Duration::from_millis(20)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use local_stack::process::wait_until;

    use super::*;

    #[test]
    fn a_closed_listener_refuses_connections_until_it_is_reopened() {
        let listener =
            ToggleListener::open(|mut stream| stream.write_all(b"hello").unwrap()).unwrap();
        let connect = || {
            let mut text = String::new();
            TcpStream::connect(listener.address())?
                .read_to_string(&mut text)
                .map(|_| text)
        };
        assert_eq!(connect().unwrap(), "hello");
        listener.close();
        let limit = Duration::from_secs(5);
        assert!(wait_until(limit, || connect().is_err().then_some(())).is_some());
        listener.reopen();
        assert!(wait_until(limit, || connect().ok().filter(|text| text == "hello")).is_some());
    }
}
