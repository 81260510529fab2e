//! The files of the site, and the pages that are rendered from them.

use std::borrow::Cow;

use anyhow::Context as _;
use bytes::Bytes;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use rust_embed::RustEmbed;

use super::brand::Brand;

/// The frame of every page: not a page itself.
pub(super) const LAYOUT: &str = "layout.html";

/// The files.
#[derive(RustEmbed)]
#[folder = "src/pages/site"]
pub(super) struct Site;

/// The bytes of a file. Only a debug build reads it from the disk.
///
/// # Errors
/// There is no such file.
pub(super) fn read(file: &str) -> anyhow::Result<Bytes> {
    let embedded = Site::get(file).with_context(|| format!("{file} is missing"))?;
    Ok(match embedded.data {
        Cow::Borrowed(data) => Bytes::from_static(data),
        Cow::Owned(data) => Bytes::from(data),
    })
}

/// A page from its template. What the settings say is escaped.
///
/// # Errors
/// A template is missing or invalid.
pub(super) fn render(file: &str, brand: &Brand) -> anyhow::Result<Bytes> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // A line that only has a tag leaves no empty line.
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    for name in [LAYOUT, file] {
        let text = String::from_utf8(read(name)?.into())?;
        environment.add_template_owned(name.to_owned(), text)?;
    }
    let page = environment.get_template(file)?;
    let text = page.render(context! { name => brand.name.as_str() })?;
    Ok(Bytes::from(text))
}
