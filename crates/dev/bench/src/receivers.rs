//! Receivers that record when each webhook arrives first.

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix_web::web::{Data, Path, post};
use actix_web::{App, HttpResponse, HttpServer};
use anyhow::ensure;

/// The run fails if no webhook arrives for this time.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// When each webhook arrived first, by key, and the number of repeated deliveries.
#[derive(Debug, Default)]
struct Arrivals {
    first: HashMap<String, Instant>,
    repeated: usize,
}

/// Receivers, each on its own port.
pub(crate) struct Receivers {
    ports: Vec<u16>,
    arrived: Data<Mutex<Arrivals>>,
}

impl Receivers {
    /// Starts `count` receivers on one thread.
    pub(crate) fn start(count: usize) -> anyhow::Result<Self> {
        let arrived = Data::<Mutex<Arrivals>>::default();
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

    /// Returns the URL of a webhook. `number` selects the receiver.
    pub(crate) fn url(&self, number: usize, key: &str) -> String {
        let port = self.ports.iter().cycle().nth(number % self.ports.len());
        format!(
            "http://127.0.0.1:{}/{key}",
            port.copied().unwrap_or_default()
        )
    }

    /// Waits until all of `keys` have arrived. Returns and removes the times of arrival.
    pub(crate) async fn wait_for(
        &self,
        keys: &[String],
    ) -> anyhow::Result<HashMap<String, Instant>> {
        let (mut last, mut changed) = (0, Instant::now());
        loop {
            let arrived = self.lock().first.len();
            if arrived >= keys.len() {
                break;
            }
            if arrived > last {
                (last, changed) = (arrived, Instant::now());
            }
            ensure!(
                changed.elapsed() < MAX_SILENCE,
                "{arrived} of {} webhooks arrived, and none in the last {MAX_SILENCE:?}",
                keys.len()
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(std::mem::take(&mut self.lock().first))
    }

    /// Returns and resets the number of repeated deliveries.
    pub(crate) fn take_repeated(&self) -> usize {
        std::mem::take(&mut self.lock().repeated)
    }

    fn lock(&self) -> MutexGuard<'_, Arrivals> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(key: Path<String>, arrived: Data<Mutex<Arrivals>>) -> HttpResponse {
    let now = Instant::now();
    let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
    if arrived.first.insert(key.into_inner(), now).is_some() {
        arrived.repeated += 1;
    }
    HttpResponse::Ok().finish()
}
