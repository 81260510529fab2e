//! Receivers that answer at once and note when each webhook came for the first time.

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix_web::web::{Data, Path, post};
use actix_web::{App, HttpResponse, HttpServer};
use anyhow::ensure;

/// How long nothing may arrive before a run is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// When each webhook came, by its key, and how often one came again.
#[derive(Debug, Default)]
struct Arrived {
    first: HashMap<String, Instant>,
    again: usize,
}

/// Receivers on ports of their own.
pub(crate) struct Receivers {
    ports: Vec<u16>,
    arrived: Data<Mutex<Arrived>>,
}

impl Receivers {
    /// Starts `count` receivers on one thread.
    pub(crate) fn start(count: usize) -> anyhow::Result<Self> {
        let arrived = Data::<Mutex<Arrived>>::default();
        let shared = Data::clone(&arrived);
        let mut server = HttpServer::new(move || {
            App::new()
                .app_data(Data::clone(&shared))
                .route("/{key}", post().to(receive))
        })
        .workers(1)
        .disable_signals();
        let mut ports = Vec::new();
        for _ in 0..count.max(1) {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            ports.push(listener.local_addr()?.port());
            server = server.listen(listener)?;
        }
        actix_web::rt::spawn(server.run());
        Ok(Self { ports, arrived })
    }

    /// The url of a webhook; `number` chooses the receiver.
    pub(crate) fn url(&self, number: usize, key: &str) -> String {
        let port = self.ports.iter().cycle().nth(number % self.ports.len());
        format!(
            "http://127.0.0.1:{}/{key}",
            port.copied().unwrap_or_default()
        )
    }

    /// Waits until every one of `keys` came, and returns when; keys are forgotten.
    pub(crate) async fn wait_for(
        &self,
        keys: &[String],
    ) -> anyhow::Result<HashMap<String, Instant>> {
        let (mut last, mut changed) = (0, Instant::now());
        loop {
            let came = self.lock().first.len();
            if came >= keys.len() {
                break;
            }
            if came > last {
                (last, changed) = (came, Instant::now());
            }
            ensure!(
                changed.elapsed() < PATIENCE,
                "{came} of {} webhooks came, and none any more for {PATIENCE:?}",
                keys.len()
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(std::mem::take(&mut self.lock().first))
    }

    /// How many came more than once since the last time.
    pub(crate) fn take_repeated(&self) -> usize {
        std::mem::take(&mut self.lock().again)
    }

    fn lock(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(key: Path<String>, arrived: Data<Mutex<Arrived>>) -> HttpResponse {
    let now = Instant::now();
    let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
    if arrived.first.insert(key.into_inner(), now).is_some() {
        arrived.again += 1;
    }
    HttpResponse::Ok().finish()
}
