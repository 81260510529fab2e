use std::borrow::Cow;

use anyhow::Context as _;
use bytes::Bytes;
use rust_embed::RustEmbed;

/// The frame of every page: not a page itself.
pub(super) const LAYOUT: &str = "layout.html";

pub(super) const NOT_FOUND: &str = "not-found.html";
/// What the stylesheet of all pages is made of.
pub(super) const STYLES: [&str; 2] = ["assets/style.css", "assets/tasks.css"];

#[derive(RustEmbed)]
#[folder = "src/pages/site"]
struct Site;

pub(super) fn names() -> impl Iterator<Item = Cow<'static, str>> {
    Site::iter()
}

/// The bytes of a file. Only a debug build reads it from the disk.
pub(super) fn read(file: &str) -> anyhow::Result<Bytes> {
    let embedded = Site::get(file).with_context(|| format!("{file} is missing"))?;
    Ok(match embedded.data {
        Cow::Borrowed(data) => Bytes::from_static(data),
        Cow::Owned(data) => Bytes::from(data),
    })
}
