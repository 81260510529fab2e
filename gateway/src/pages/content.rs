//! The bytes of a file, plain and compressed, with an entity tag.

use std::borrow::Cow;
use std::io::Write as _;

use actix_web::HttpRequest;
use actix_web::http::header::{AcceptEncoding, Encoding, Header as _};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;

/// The files of the site.
#[derive(RustEmbed)]
#[folder = "src/pages/site"]
pub(super) struct Site;

/// What a file contains when the process starts.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) plain: Bytes,
    pub(super) compressed: Bytes,
    pub(super) etag: String,
}

impl Content {
    /// Reads a file of the site.
    pub(super) fn of(file: &str) -> Option<Self> {
        let embedded = Site::get(file)?;
        let plain = match embedded.data {
            Cow::Borrowed(data) => Bytes::from_static(data),
            Cow::Owned(data) => Bytes::from(data),
        };
        let [a, b, c, d, e, f, g, h, ..] = embedded.metadata.sha256_hash();
        let version = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        Some(Self {
            compressed: compress(&plain)?,
            plain,
            // Weak, because the compressed form has the same tag.
            etag: format!("W/\"{version:016x}\""),
        })
    }

    /// The content that a response has now. Only a debug build reads the file again.
    pub(super) fn current(&self, file: &str) -> Cow<'_, Self> {
        if cfg!(debug_assertions)
            && let Some(changed) = Self::of(file)
        {
            return Cow::Owned(changed);
        }
        Cow::Borrowed(self)
    }
}

fn compress(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// Whether a client accepts compressed responses.
pub(super) fn accepts_gzip(request: &HttpRequest) -> bool {
    let supported = [Encoding::gzip(), Encoding::identity()];
    let accepted = AcceptEncoding::parse(request).ok();
    let chosen = accepted.and_then(|accepted| accepted.negotiate(supported.iter()));
    chosen == Some(Encoding::gzip())
}
