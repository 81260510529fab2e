//! A loopback port that can be shut and opened again, and a switch that threads wait for.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use anyhow::Context;

/// The threads of a run are many and do little.
const STACK: usize = 256 * 1024;

/// A thread with a small stack; when the system has none left, the caller's connection is dropped.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> Option<thread::JoinHandle<()>> {
    thread::Builder::new().stack_size(STACK).spawn(work).ok()
}

/// What a lock guards, also when a thread that held it panicked.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that threads wait for.
#[derive(Debug, Default)]
pub(crate) struct Watched<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T: Copy> Watched<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn get(&self) -> T {
        *locked(&self.value)
    }

    pub(crate) fn set(&self, value: T) {
        *locked(&self.value) = value;
        self.changed.notify_all();
    }

    /// Waits as long as `unwanted` holds; answers the value that ended it.
    pub(crate) fn wait_while(&self, unwanted: impl Fn(&T) -> bool) -> T {
        let mut value = locked(&self.value);
        while unwanted(&value) {
            value = self
                .changed
                .wait(value)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *value
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Shut,
    Gone,
}

/// Takes connections on one port until it is dropped. While it is shut, connecting is refused.
#[derive(Debug)]
pub(crate) struct Door {
    address: SocketAddr,
    state: Arc<Watched<State>>,
}

impl Door {
    /// Opens it; each connection goes to `handle` on a thread of its own.
    pub(crate) fn open(
        port: u16,
        handle: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener =
            TcpListener::bind(address).with_context(|| format!("listening on {address}"))?;
        let state = Arc::new(Watched::new(State::Open));
        let seen = Arc::clone(&state);
        spawn(move || serve(address, listener, &seen, &Arc::new(handle)))
            .context("starting a thread")?;
        Ok(Self { address, state })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn shut(&self) {
        self.turn(State::Shut);
    }

    pub(crate) fn reopen(&self) {
        self.turn(State::Open);
    }

    fn turn(&self, state: State) {
        self.state.set(state);
        // Wakes the thread that waits for a connection, so that it sees the new state.
        drop(TcpStream::connect(self.address));
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.turn(State::Gone);
    }
}

fn serve<Handle: Fn(TcpStream) + Send + Sync + 'static>(
    address: SocketAddr,
    listener: TcpListener,
    state: &Watched<State>,
    handle: &Arc<Handle>,
) {
    let mut listening = Some(listener);
    loop {
        match state.get() {
            State::Gone => return,
            State::Shut => {
                listening = None;
                state.wait_while(|state| *state == State::Shut);
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
        take(accepted, state, handle);
    }
}

fn take<Handle: Fn(TcpStream) + Send + Sync + 'static>(
    accepted: io::Result<(TcpStream, SocketAddr)>,
    state: &Watched<State>,
    handle: &Arc<Handle>,
) {
    match accepted {
        Ok((stream, _)) if state.get() == State::Open => {
            // Small messages go back and forth here; waiting to fill packets would only slow them.
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

    use local_stack::{ports, process::wait_until};

    use super::*;

    #[test]
    fn a_shut_door_refuses_and_opens_again() {
        let [port] = ports::free().unwrap();
        let door = Door::open(port, |mut stream| stream.write_all(b"hello").unwrap()).unwrap();
        let knock = || {
            let mut text = String::new();
            TcpStream::connect(("127.0.0.1", port))?
                .read_to_string(&mut text)
                .map(|_| text)
        };
        assert_eq!(knock().unwrap(), "hello");
        door.shut();
        let limit = Duration::from_secs(5);
        assert!(wait_until(limit, || knock().is_err().then_some(())).is_some());
        door.reopen();
        assert!(wait_until(limit, || knock().ok().filter(|text| text == "hello")).is_some());
    }
}
