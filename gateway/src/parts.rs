use std::convert::Infallible;
use std::net::IpAddr;

use actix_web::body::{MessageBody, SizedStream};
use bytes::Bytes;
use fairness::Share;
use futures_util::stream;

/// The length of a part in bytes.
const PART: usize = 16 * 1024;

/// A body that is sent in parts, because each part is copied for its connection when it is its turn, and many clients
/// may not read. `share` counts it until the last part was taken.
pub(crate) fn in_parts(
    bytes: Bytes,
    share: Option<Share<IpAddr>>,
) -> impl MessageBody<Error = Infallible> {
    let length = bytes.len();
    let parts = (0..length).step_by(PART).map(move |start| {
        let _counted = &share;
        Ok(bytes.slice(start..length.min(start + PART)))
    });
    SizedStream::new(length as u64, stream::iter(parts))
}
