//! What the settings and the files of the site say about every page.

use ring::digest::{Context, SHA256};

use super::brand::Brand;
use super::content::version_of;
use super::files;
use crate::settings::PagesSettings;

/// The look of the pages, and the version of their assets.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) brand: Brand,
    /// Differs whenever an asset differs.
    pub(super) version: String,
}

impl Look {
    /// Reads the logo, and computes the version.
    ///
    /// # Errors
    /// The logo cannot be used.
    pub(super) fn new(settings: &PagesSettings) -> anyhow::Result<Self> {
        let brand = Brand::new(settings)?;
        let version = version(&brand)?;
        Ok(Self { brand, version })
    }

    /// The folder of the assets in URLs. In a debug build its name has no version, because files change while the process
    /// runs.
    pub(super) fn assets(&self) -> String {
        if cfg!(debug_assertions) {
            "/assets".to_owned()
        } else {
            format!("/assets/{}", self.version)
        }
    }
}

fn version(brand: &Brand) -> anyhow::Result<String> {
    let mut hash = Context::new(&SHA256);
    let mut add = |part: &[u8]| {
        hash.update(&part.len().to_be_bytes());
        hash.update(part);
    };
    for file in files::names() {
        add(file.as_bytes());
        add(&files::read(&file)?);
    }
    add(brand.stylesheet().as_bytes());
    add(&brand.logo_or(|| Ok(bytes::Bytes::new()))?);
    Ok(version_of(&hash.finish()))
}
