//! Threads, locks, a value that threads wait for, and a listener on a loopback port that can be closed and reopened.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use local_stack::ports;

/// A run has many threads, and each does little.
const STACK_SIZE: usize = 256 * 1024;

/// Starts a thread with a small stack. Returns `None` when the system cannot start one.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> Option<thread::JoinHandle<()>> {
    let thread = thread::Builder::new().stack_size(STACK_SIZE);
    thread.spawn(work).ok()
}

/// Waits for a thread, and fails if it panicked.
pub fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> anyhow::Result<T> {
    let outcome = thread.join();
    outcome.map_err(|_| anyhow::anyhow!("a thread panicked"))
}

/// Locks a mutex, and ignores that a thread panicked while it held it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that threads can wait for.
#[derive(Debug, Default)]
pub struct Watch<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T: Copy> Watch<T> {
    pub fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            changed: Condvar::new(),
        }
    }

    pub fn get(&self) -> T {
        *lock(&self.value)
    }

    /// Changes the value, and wakes the threads that wait for it.
    pub fn set(&self, value: T) {
        *lock(&self.value) = value;
        self.changed.notify_all();
    }

    /// Blocks while `condition` holds. Returns the first value for which it does not.
    pub fn wait_while(&self, condition: impl Fn(&T) -> bool) -> T {
        let value = lock(&self.value);
        let value = self.changed.wait_while(value, |value| condition(value));
        *value.unwrap_or_else(PoisonError::into_inner)
    }
}

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
    /// Listens on a free port of a loopback address. Each connection is handled on its own thread.
    pub fn open(
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

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Refuses new connections.
    pub fn close(&self) {
        self.set_state(State::Closed);
    }

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

fn serve(
    address: SocketAddr,
    listener: TcpListener,
    state: &Watch<State>,
    handle: &Arc<impl Fn(TcpStream) + Send + Sync + 'static>,
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
            Some(listener) => listener.accept().map(|(stream, _)| Some(stream)),
            None => TcpListener::bind(address).map(|listener| {
                listening = Some(listener);
                None
            }),
        };
        match accepted {
            Ok(Some(stream)) if state.get() == State::Open => {
                // Messages are small: Nagle's algorithm would only delay them.
                let _ = stream.set_nodelay(true);
                let handle = Arc::clone(handle);
                spawn(move || handle(stream));
            }
            Ok(_) => {}
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use local_stack::wait_until;

    use super::*;

    #[test]
    fn a_closed_listener_refuses_connections_until_it_is_reopened() {
        let listener = ToggleListener::open(Ipv4Addr::LOCALHOST, |mut stream| {
            stream.write_all(b"hello").unwrap();
        })
        .unwrap();
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
