use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::A;
use hickory_resolver::proto::rr::{RData, Record, RecordType};

/// A DNS server on a loopback address. Names below `up.example.net` have the address 127.0.0.1; queries for other
/// names get no response.
#[derive(Debug)]
pub struct TestNameServer {
    address: SocketAddr,
    queries: Arc<Mutex<Vec<String>>>,
}

impl TestNameServer {
    /// Starts a server, which runs until the program ends.
    pub fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let queries = Arc::<Mutex<Vec<String>>>::default();
        let record = Arc::clone(&queries);
        std::thread::spawn(move || {
            loop {
                serve_one(&socket, &record);
            }
        });
        Self { address, queries }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn queries(&self) -> Vec<String> {
        self.queries.lock().unwrap().clone()
    }
}

fn serve_one(socket: &UdpSocket, queries: &Mutex<Vec<String>>) {
    let mut buffer = [0; 1_500];
    let (length, client) = socket.recv_from(&mut buffer).unwrap();
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
