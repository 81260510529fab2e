use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

use crate::CertificateFault;

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

/// The client of the collector of traces. It logs when exports begin to fail and when they work again, which the exporter
/// does not.
#[derive(Debug)]
pub(crate) struct CollectorClient {
    client: reqwest::blocking::Client,
    is_failing: AtomicBool,
}

impl CollectorClient {
    pub(crate) fn new(client: reqwest::blocking::Client) -> Self {
        Self {
            client,
            is_failing: AtomicBool::new(false),
        }
    }

    fn record(&self, error: Option<&HttpError>) {
        let was_failing = self.is_failing.swap(error.is_some(), Ordering::AcqRel);
        match error {
            Some(error) if !was_failing => match CertificateFault::find(&**error) {
                Some(fault) => {
                    tracing::warn!(%fault, "the certificate of the collector of traces was refused");
                }
                None => tracing::warn!(error = ?error, "traces cannot be exported"),
            },
            None if was_failing => tracing::info!("traces are exported again"),
            _ => {}
        }
    }
}

impl HttpClient for CollectorClient {
    fn send_bytes<'this, 'sending>(&'this self, request: Request<Bytes>) -> Sending<'sending>
    where
        'this: 'sending,
        Self: 'sending,
    {
        Box::pin(async move {
            let sent = self.client.send_bytes(request).await;
            self.record(sent.as_ref().err());
            sent
        })
    }
}
