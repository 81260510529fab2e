//! What the settings and the files of the site say about every page: the name, the logo, the colours and the version.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use app_config::Switch;
use bytes::Bytes;
use ring::digest::{Context, Digest, SHA256};

use super::files;
use crate::settings::{HexColor, PagesSettings};

/// The longest logo in bytes.
const MAX_LOGO: u64 = 64 * 1024;
/// The contrast that text needs (WCAG 2.2, 1.4.3).
const READABLE: f64 = 4.5;
const BLACK: HexColor = HexColor([0, 0, 0]);
const WHITE: HexColor = HexColor([255, 255, 255]);
/// The backgrounds in `style.css` that differ least from links, in light and in dark.
const LIGHT: HexColor = HexColor([0xee, 0xf1, 0xf5]);
const DARK: HexColor = HexColor([0x23, 0x2b, 0x36]);

pub(super) struct Look {
    pub(super) name: String,
    /// The logo with its type, if it is not the built-in one.
    pub(super) logo: Option<(Bytes, &'static str)>,
    color: HexColor,
    /// Differs whenever an asset differs.
    pub(super) version: String,
}

impl Look {
    pub(super) fn new(settings: &PagesSettings) -> anyhow::Result<Self> {
        let logo = settings.logo.as_deref();
        let logo = logo.filter(|_| settings.mode == Switch::On).map(|path| {
            read_logo(path.as_ref()).with_context(|| {
                format!("PAGES_LOGO is {path:?}. Set it to an SVG or PNG file of at most {MAX_LOGO} bytes")
            })
        });
        let mut look = Self {
            name: settings.name.0.clone(),
            logo: logo.transpose()?,
            color: settings.color,
            version: String::new(),
        };
        look.version = look.compute_version()?;
        Ok(look)
    }

    fn compute_version(&self) -> anyhow::Result<String> {
        let mut hash = Context::new(&SHA256);
        let mut add = |part: &[u8]| {
            hash.update(&part.len().to_be_bytes());
            hash.update(part);
        };
        for file in files::names() {
            add(file.as_bytes());
            add(&files::read(&file)?);
        }
        add(self.stylesheet().as_bytes());
        let logo = self.logo.as_ref();
        add(&logo.map_or_else(Bytes::new, |(logo, _)| logo.clone()));
        Ok(version_of(&hash.finish()))
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

    pub(super) fn stylesheet(&self) -> String {
        let ink = if contrast(self.color, WHITE) >= contrast(self.color, BLACK) {
            WHITE
        } else {
            BLACK
        };
        format!(
            ":root {{ --accent: {}; --accent-ink: {ink}; --link: {}; }}\n\
             @media (prefers-color-scheme: dark) {{ :root {{ --link: {}; }} }}\n",
            self.color,
            readable(self.color, LIGHT, BLACK),
            readable(self.color, DARK, WHITE),
        )
    }
}

/// The first 8 bytes of a hash, in hexadecimal.
pub(super) fn version_of(hash: &Digest) -> String {
    let bytes = hash.as_ref().iter().take(8);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn read_logo(path: &Path) -> anyhow::Result<(Bytes, &'static str)> {
    let mut logo = Vec::new();
    File::open(path)?
        .take(MAX_LOGO + 1)
        .read_to_end(&mut logo)?;
    if logo.len() as u64 > MAX_LOGO {
        bail!("it has more than {MAX_LOGO} bytes");
    }
    let content_type = if logo.starts_with(b"\x89PNG\r\n\x1a\n") {
        "image/png"
    } else if std::str::from_utf8(&logo).is_ok_and(|text| text.contains("<svg")) {
        "image/svg+xml"
    } else {
        bail!("it is neither SVG nor PNG");
    };
    Ok((logo.into(), content_type))
}

/// The colour, or the next one towards `end` that is readable on a background.
fn readable(color: HexColor, background: HexColor, end: HexColor) -> HexColor {
    let mut mixtures = (0..=50).map(|share| mix(color, end, share));
    let found = mixtures.find(|mixture| contrast(*mixture, background) >= READABLE);
    found.unwrap_or(end)
}

/// A mixture of two colours with `share` fiftieths of the second one.
fn mix(HexColor(first): HexColor, HexColor(second): HexColor, share: u16) -> HexColor {
    let [red, green, blue] = [0, 1, 2].map(|channel: usize| {
        let of = |color: [u8; 3]| color.get(channel).copied().map_or(0, u16::from);
        let mixed = (of(first) * (50 - share) + of(second) * share) / 50;
        u8::try_from(mixed).unwrap_or(u8::MAX)
    });
    HexColor([red, green, blue])
}

/// The contrast ratio of WCAG 2.2, from 1 to 21.
fn contrast(first: HexColor, second: HexColor) -> f64 {
    let (first, second) = (luminance(first), luminance(second));
    (first.max(second) + 0.05) / (first.min(second) + 0.05)
}

/// The relative luminance of WCAG 2.2.
fn luminance(HexColor(channels): HexColor) -> f64 {
    let [red, green, blue] = channels.map(|channel| {
        let share = f64::from(channel) / 255.0;
        if share <= 0.04045 {
            share / 12.92
        } else {
            ((share + 0.055) / 1.055).powf(2.4)
        }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use super::BLACK;
    use super::{DARK, HexColor, LIGHT, Look, READABLE, WHITE, contrast, read_logo, readable};

    const COLORS: [[u8; 3]; 7] = [
        [0x1f, 0x5f, 0xd1],
        [0xff, 0xd4, 0x00],
        [0xff, 0xff, 0xff],
        [0x00, 0x00, 0x00],
        [0x80, 0x80, 0x80],
        [0xe0, 0x00, 0x7a],
        [0x00, 0xff, 0x00],
    ];

    #[test]
    fn contrast_is_that_of_the_guidelines() {
        assert!((contrast(BLACK, WHITE) - 21.0).abs() < 0.001);
        let grey = HexColor([0x76, 0x76, 0x76]);
        assert!((contrast(grey, WHITE) - 4.54).abs() < 0.01);
    }

    #[test]
    fn texts_are_readable_in_every_colour() {
        for color in COLORS.map(HexColor) {
            assert!(contrast(color, BLACK).max(contrast(color, WHITE)) >= READABLE);
            assert!(contrast(readable(color, LIGHT, BLACK), LIGHT) >= READABLE);
            assert!(contrast(readable(color, DARK, WHITE), DARK) >= READABLE);
        }
    }

    #[test]
    fn the_stylesheet_has_the_colour_itself_and_readable_links() {
        let look = |color| Look {
            name: String::new(),
            logo: None,
            color: HexColor(color),
            version: String::new(),
        };
        let yellow = look([0xff, 0xd4, 0x00]).stylesheet();
        assert!(yellow.contains("--accent: #ffd400; --accent-ink: #000000;"));
        let blue = look([0x1f, 0x5f, 0xd1]).stylesheet();
        assert!(blue.contains("--accent: #1f5fd1; --accent-ink: #ffffff; --link: #1f5fd1;"));
    }

    #[test]
    fn the_backgrounds_are_those_of_the_stylesheet() {
        let style = include_str!("site/assets/style.css");
        for background in [LIGHT, DARK] {
            assert!(
                style.contains(&format!("--code: {background};")),
                "{background}"
            );
        }
    }

    #[test]
    fn a_logo_is_a_short_svg_or_png_file() {
        let folder = tempfile::tempdir().unwrap();
        let read = |content: &[u8]| {
            let path = folder.path().join("logo");
            std::fs::write(&path, content).unwrap();
            read_logo(&path).map(|(_, content_type)| content_type)
        };
        let svg = "<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>";
        assert_eq!(read(svg.as_bytes()).unwrap(), "image/svg+xml");
        assert_eq!(read(b"\x89PNG\r\n\x1a\nrest").unwrap(), "image/png");
        let long = format!("<svg>{}</svg>", " ".repeat(64 * 1024));
        for content in ["GIF89a", "<html>", "", &long] {
            assert!(read(content.as_bytes()).is_err());
        }
        assert!(read_logo(&folder.path().join("missing")).is_err());
    }
}
