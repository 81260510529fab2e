//! The bytes of a page or asset, plain and compressed, with an entity tag.

use std::io::Write as _;
use std::sync::OnceLock;

use actix_web::HttpRequest;
use actix_web::http::header::{AcceptEncoding, Encoding, Header as _};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{Digest, SHA256, digest};

/// What a response contains.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) plain: Bytes,
    pub(super) etag: String,
    /// Made for the first client that accepts it, so that a process starts fast.
    compressed: OnceLock<Option<Bytes>>,
}

impl Content {
    pub(super) fn new(plain: Bytes) -> Self {
        let version = version_of(&digest(&SHA256, &plain));
        Self {
            plain,
            // Weak, because the compressed form has the same tag.
            etag: format!("W/\"{version}\""),
            compressed: OnceLock::new(),
        }
    }

    /// The compressed form, unless compression fails.
    pub(super) fn compressed(&self) -> Option<Bytes> {
        let compressed = || compress(&self.plain).ok();
        self.compressed.get_or_init(compressed).clone()
    }
}

/// The first 8 bytes of a hash, in hexadecimal.
pub(super) fn version_of(hash: &Digest) -> String {
    let bytes = hash.as_ref().iter().take(8);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn compress(plain: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain)?;
    encoder.finish().map(Bytes::from)
}

pub(super) fn accepts_gzip(request: &HttpRequest) -> bool {
    let supported = [Encoding::gzip(), Encoding::identity()];
    let accepted = AcceptEncoding::parse(request).ok();
    let chosen = accepted.and_then(|accepted| accepted.negotiate(supported.iter()));
    chosen == Some(Encoding::gzip())
}
