use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::A;
use hickory_resolver::proto::rr::{RData, Record, RecordType};

const POLL: Duration = Duration::from_millis(50);

/// A DNS server on a loopback address. Names below `up.example.net` have the address 127.0.0.1; queries for other
/// names get no response.
#[derive(Debug)]
pub struct TestNameServer {
    address: SocketAddr,
    queries: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestNameServer {
    /// Starts a server.
    #[must_use]
    pub fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(POLL)).unwrap();
        let address = socket.local_addr().unwrap();
        let (queries, stop) = (
            Arc::<Mutex<Vec<String>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (record, stopped) = (Arc::clone(&queries), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                serve_one(&socket, &record);
            }
        });
        Self {
            address,
            queries,
            stop,
            thread: Some(thread),
        }
    }

    /// Returns where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the name of each query so far.
    #[must_use]
    pub fn queries(&self) -> Vec<String> {
        self.queries.lock().unwrap().clone()
    }
}

impl Drop for TestNameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve_one(socket: &UdpSocket, queries: &Mutex<Vec<String>>) {
    let mut buffer = [0; 1_500];
    let (length, client) = match socket.recv_from(&mut buffer) {
        Ok(received) => received,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
        Err(error) => panic!("{error}"),
    };
    let query = Message::from_vec(&buffer[..length]).unwrap();
    let names = query.queries.iter().map(|query| query.name().to_ascii());
    queries.lock().unwrap().extend(names);
    if let Some(response) = response(&query) {
        let _ = socket.send_to(&response.to_vec().unwrap(), client);
    }
}

fn response(query: &Message) -> Option<Message> {
    let question = query.queries.first()?.clone();
    let name = question.name().clone();
    if !name.to_lowercase().to_ascii().ends_with("up.example.net.") {
        return None;
    }
    let mut response = Message::response(query.id, query.op_code);
    response.metadata.response_code = ResponseCode::NoError;
    response.metadata.recursion_available = true;
    if question.query_type() == RecordType::A {
        let address = RData::A(A(Ipv4Addr::LOCALHOST));
        response.answers.push(Record::from_rdata(name, 60, address));
    }
    response.queries.push(question);
    Some(response)
}
