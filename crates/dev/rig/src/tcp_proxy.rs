//! A TCP proxy that can cut and stall the connections between two parts of the system.
//!
//! Before a cut, responses are held back for a moment, so that some requests take effect without the caller
//! receiving a response.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::sync::{ToggleListener, Watch, lock, spawn};

const RESPONSES_LOST: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Response,
}

/// A proxy for one connection of the system.
pub struct TcpProxy {
    pub name: String,
    listener: ToggleListener,
    shared: Arc<Shared>,
}

struct Shared {
    connect: Box<dyn Fn() -> Option<TcpStream> + Send + Sync>,
    /// The directions in which everything waits, and connections stay open.
    held: Watch<&'static [Direction]>,
    connections: Mutex<HashMap<u64, [TcpStream; 2]>>,
    next: AtomicU64,
}

impl TcpProxy {
    /// Forwards each connection to the first port of `targets` that accepts it.
    pub fn open(name: String, targets: Vec<u16>) -> anyhow::Result<Self> {
        Self::open_to(name, move || {
            targets.iter().find_map(|port| connect_to(*port))
        })
    }

    /// Forwards each connection to the one that `connect` opens for it.
    pub fn open_to(
        name: String,
        connect: impl Fn() -> Option<TcpStream> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            connect: Box::new(connect),
            held: Watch::new(&[]),
            connections: Mutex::default(),
            next: AtomicU64::new(0),
        });
        let handler_shared = Arc::clone(&shared);
        let listener = ToggleListener::open(Ipv4Addr::LOCALHOST, move |stream| {
            forward(&handler_shared, stream);
        })?;
        Ok(Self {
            name,
            listener,
            shared,
        })
    }

    pub fn port(&self) -> u16 {
        self.listener.address().port()
    }

    /// Closes every connection and refuses new ones. The last responses are lost.
    pub fn cut(&self) {
        self.shared.held.set(&[Direction::Response]);
        thread::sleep(RESPONSES_LOST);
        self.listener.close();
        for stream in lock(&self.shared.connections).values().flatten() {
            // A connection that is already closed needs no shutdown.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.shared.held.set(&[]);
    }

    /// Forwards nothing, and keeps connections open.
    pub fn stall(&self) {
        self.shared
            .held
            .set(&[Direction::Request, Direction::Response]);
    }

    /// Ends a cut or stall. Data that was held back is forwarded.
    pub fn restore(&self) {
        self.shared.held.set(&[]);
        self.listener.reopen();
    }
}

/// A connection to a loopback port.
pub fn connect_to(port: u16) -> Option<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
}

fn forward(shared: &Arc<Shared>, near: TcpStream) {
    let held = &shared.held;
    held.wait_while(|held| held.contains(&Direction::Request));
    let Some(far) = (shared.connect)() else {
        return;
    };
    let _ = far.set_nodelay(true);
    let copies = || Some([near.try_clone().ok()?, far.try_clone().ok()?]);
    let (Some(kept), Some([near_end, far_end])) = (copies(), copies()) else {
        return;
    };
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    lock(&shared.connections).insert(number, kept);
    let back = Arc::clone(shared);
    let returning = spawn(move || pump(&back, Direction::Response, far_end, near_end));
    pump(shared, Direction::Request, near, far);
    if let Some(returning) = returning {
        // The thread only copies; its failure needs no handling.
        let _ = returning.join();
    }
    lock(&shared.connections).remove(&number);
}

/// Copies until one side is closed.
fn pump(shared: &Shared, direction: Direction, mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    loop {
        let count = from.read(&mut buffer);
        shared.held.wait_while(|held| held.contains(&direction));
        let passed = match count {
            Ok(0) => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(count) => to.write_all(buffer.get(..count).unwrap_or_default()),
            Err(error) => Err(error),
        };
        if passed.is_err() {
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use local_stack::{ports, wait_until};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    fn echo() -> ToggleListener {
        ToggleListener::open(Ipv4Addr::LOCALHOST, |mut stream| {
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() {
                stream.write_all(&byte).unwrap();
            }
        })
        .unwrap()
    }

    fn proxy(echo: &ToggleListener) -> TcpProxy {
        TcpProxy::open("a → b".into(), vec![echo.address().port()]).unwrap()
    }

    fn call(proxy: &TcpProxy) -> Option<TcpStream> {
        let stream = connect_to(proxy.port())?;
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Some(stream)
    }

    fn echoes(stream: &mut TcpStream, byte: u8) -> bool {
        let mut reply = [0];
        stream.write_all(&[byte]).is_ok()
            && stream.read_exact(&mut reply).is_ok()
            && reply == [byte]
    }

    #[test]
    fn a_cut_connection_works_again_after_it_is_restored() {
        let echo = echo();
        let proxy = proxy(&echo);
        let mut stream = call(&proxy).unwrap();
        assert!(echoes(&mut stream, 1));
        proxy.cut();
        assert!(!echoes(&mut stream, 2));
        proxy.restore();
        let again = wait_until(LIMIT, || echoes(&mut call(&proxy)?, 3).then_some(()));
        assert!(again.is_some());
    }

    #[test]
    fn a_connection_goes_to_the_first_server_that_accepts_it() {
        let echo = echo();
        let [closed] = ports::free().unwrap();
        let targets = vec![closed, echo.address().port()];
        let proxy = TcpProxy::open("a → b".into(), targets).unwrap();
        assert!(echoes(&mut call(&proxy).unwrap(), 1));
    }

    #[test]
    fn data_of_a_stalled_connection_arrives_after_it_is_restored() {
        let echo = echo();
        let proxy = proxy(&echo);
        let mut stream = call(&proxy).unwrap();
        assert!(echoes(&mut stream, 1));
        proxy.stall();
        let moment = Some(Duration::from_millis(200));
        stream.set_read_timeout(moment).unwrap();
        assert!(!echoes(&mut stream, 2));
        proxy.restore();
        let mut reply = [0];
        assert!(wait_until(LIMIT, || stream.read_exact(&mut reply).ok()).is_some());
        assert_eq!(reply, [2]);
    }
}
