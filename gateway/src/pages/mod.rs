//! The web pages: static content with a strict content security policy, which calls the API like any
//! other client.
//!
//! Pages are rendered once, when the process starts, from templates and from what the settings say about the
//! pages. They load nothing from other origins and contain no inline script or style. Opening a page never changes
//! anything, because mail scanners open every link.
//!
//! The files are in `site/`; `layout.html` is the frame of every page. A release build contains them; a debug build
//! reads them from there for every response, so that a change is visible at once. A new file takes a restart.

mod brand;
mod content;
mod templates;

use std::borrow::Cow;
use std::sync::Arc;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderMap, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_FRAME_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse};
use anyhow::Context as _;
use bytes::Bytes;

use crate::settings::{PagesMode, PagesSettings};
use brand::Brand;
use content::Content;
use templates::{LAYOUT, Site};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";
/// A URL of a page may contain a code or a secret.
const NEVER_STORED: &str = "no-store";
const CHECKED_FIRST: &str = "no-cache";

/// One page or asset at one path.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) path: String,
    content_type: &'static str,
    cache_control: &'static str,
    source: Source,
    brand: Arc<Brand>,
    content: Content,
}

/// Where the content of a page comes from.
#[derive(Debug)]
enum Source {
    /// A template of the site.
    Template(Cow<'static, str>),
    /// A file of the site.
    File(Cow<'static, str>),
    /// The colours of the settings.
    BrandStyle,
    /// The logo of the settings, or the built-in one.
    Logo,
}

/// Every page and asset.
///
/// # Errors
/// The logo cannot be used, or a template is invalid.
pub(crate) fn load(settings: &PagesSettings) -> anyhow::Result<Arc<[Arc<Page>]>> {
    if settings.mode == PagesMode::Off {
        return Ok(Arc::default());
    }
    let brand = Arc::new(Brand::new(settings)?);
    let logo_type = brand.logo.as_ref().map_or("image/svg+xml", |logo| logo.1);
    let own = [
        (
            "/assets/brand.css",
            "text/css; charset=utf-8",
            Source::BrandStyle,
        ),
        ("/assets/logo", logo_type, Source::Logo),
    ];
    let own = own.map(|(path, kind, source)| (path.to_owned(), kind, CHECKED_FIRST, source));
    let pages = own.into_iter().chain(Site::iter().filter_map(place));
    pages
        .map(|(path, content_type, cache_control, source)| {
            let content = source.content(&brand).with_context(|| path.clone())?;
            Ok(Arc::new(Page {
                path,
                content_type,
                cache_control,
                source,
                brand: Arc::clone(&brand),
                content,
            }))
        })
        .collect()
}

/// The path, type and caching of a file of the site: `home.html` is the page `/`, `tasks.html` is `/tasks`, and an
/// asset keeps its name. Files of other types, such as the notes on vendored files, are not served.
fn place(file: Cow<'static, str>) -> Option<(String, &'static str, &'static str, Source)> {
    let (name, extension) = file.rsplit_once('.')?;
    let content_type = match extension {
        "html" if file != LAYOUT => {
            let path = if name == "home" { "" } else { name };
            let html = "text/html; charset=utf-8";
            return Some((
                format!("/{path}"),
                html,
                NEVER_STORED,
                Source::Template(file),
            ));
        }
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        _ => return None,
    };
    Some((
        format!("/{file}"),
        content_type,
        CHECKED_FIRST,
        Source::File(file),
    ))
}

impl Source {
    fn content(&self, brand: &Brand) -> anyhow::Result<Content> {
        let plain = match self {
            Self::Template(file) => templates::render(file, brand)?,
            Self::File(file) => templates::read(file)?,
            Self::BrandStyle => Bytes::from(brand.stylesheet()),
            Self::Logo => match &brand.logo {
                Some((logo, _)) => logo.clone(),
                None => templates::read("logo.svg")?,
            },
        };
        Ok(Content::new(plain))
    }
}

impl Page {
    /// What a response has now. Only a debug build reads the files again.
    fn current(&self) -> Cow<'_, Content> {
        if !cfg!(debug_assertions) {
            return Cow::Borrowed(&self.content);
        }
        match self.source.content(&self.brand) {
            Ok(content) => Cow::Owned(content),
            Err(error) => {
                tracing::warn!(path = %self.path, ?error, "the page cannot be rendered again");
                Cow::Borrowed(&self.content)
            }
        }
    }

    /// The content with its security headers, compressed if the client accepts that, or `304` if the client has it.
    pub(crate) fn response(&self, request: &HttpRequest) -> HttpResponse {
        let current = self.current();
        if has(request.headers(), &current.etag) {
            return HttpResponse::NotModified()
                .insert_header((CACHE_CONTROL, self.cache_control))
                .insert_header((VARY, "accept-encoding"))
                .insert_header((ETAG, current.etag.as_str()))
                .finish();
        }
        let mut response = HttpResponse::Ok();
        response
            .content_type(self.content_type)
            .insert_header((CACHE_CONTROL, self.cache_control))
            .insert_header((CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((REFERRER_POLICY, "no-referrer"))
            .insert_header((X_FRAME_OPTIONS, "DENY"))
            .insert_header(("cross-origin-opener-policy", "same-origin"))
            .insert_header((VARY, "accept-encoding"))
            .insert_header((ETAG, current.etag.as_str()));
        if content::accepts_gzip(request)
            && let Some(compressed) = current.compressed()
        {
            response.insert_header((CONTENT_ENCODING, "gzip"));
            return response.body(compressed);
        }
        response.body(current.plain.clone())
    }
}

/// Whether the client already has the content with this entity tag.
fn has(headers: &HeaderMap, etag: &str) -> bool {
    let tags = headers.get(IF_NONE_MATCH);
    let tags = tags.and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    tags.split(',').any(|tag| tag.trim() == etag)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use app_config::{Reader, Settings as _};

    use super::{Page, PagesSettings, load};

    fn pages_with(settings: &[(&str, &str)]) -> Arc<[Arc<Page>]> {
        let mut reader = Reader::from_pairs(settings.iter().copied()).unwrap();
        load(&PagesSettings::read(&mut reader).unwrap()).unwrap()
    }

    fn pages() -> Arc<[Arc<Page>]> {
        pages_with(&[])
    }

    fn text(page: &Page) -> String {
        String::from_utf8(page.content.plain.to_vec()).unwrap()
    }

    fn is_html(page: &Page) -> bool {
        page.content_type.starts_with("text/html")
    }

    /// Scripts and styles of our own.
    fn is_vendored(page: &Page) -> bool {
        page.path.starts_with("/assets/vendor/")
    }

    #[test]
    fn pages_contain_nothing_inline() {
        let pages = pages();
        assert!(pages.iter().filter(|page| is_html(page)).count() >= 6);
        for page in pages.iter().filter(|page| is_html(page)) {
            let text = text(page);
            for forbidden in [
                "<style",
                "style=",
                " onclick",
                "src=\"http",
                "href=\"http",
                "<script>",
            ] {
                assert!(!text.contains(forbidden), "{}: {forbidden}", page.path);
            }
        }
    }

    #[test]
    fn pages_and_scripts_load_only_known_assets() {
        let pages = pages();
        for page in pages.iter().filter(|page| !is_vendored(page)) {
            let text = text(page);
            let named = text
                .split(['"', '`'])
                .filter(|part| part.starts_with("/assets/") && !part.contains("${"));
            for asset in named {
                let is_known = pages.iter().any(|page| page.path == asset);
                assert!(is_known, "{}: {asset}", page.path);
            }
        }
    }

    #[test]
    fn every_page_has_the_frame_and_the_escaped_name() {
        let pages = pages_with(&[("PAGES_NAME", "<b>Müller & Söhne</b>")]);
        for page in pages.iter().filter(|page| is_html(page)) {
            let text = text(page);
            for part in ["<header", "<noscript", "<footer", "Müller &amp; Söhne"] {
                assert!(text.contains(part), "{}: {part}", page.path);
            }
            assert!(!text.contains("<b>") && !text.contains("{%"), "{text}");
        }
    }

    #[test]
    fn the_entity_tag_depends_on_what_is_rendered() {
        let tag = |pages: &[Arc<Page>], path: &str| {
            let page = pages.iter().find(|page| page.path == path).unwrap();
            page.content.etag.clone()
        };
        let (usual, named) = (pages(), pages_with(&[("PAGES_NAME", "Acme")]));
        for (path, is_same) in [("/", false), ("/tasks", false), ("/assets/brand.css", true)] {
            assert_eq!(tag(&usual, path) == tag(&named, path), is_same, "{path}");
            assert_eq!(tag(&usual, path), tag(&pages(), path), "{path}");
        }
        let red = pages_with(&[("PAGES_COLOR", "#c00")]);
        assert_ne!(
            tag(&usual, "/assets/brand.css"),
            tag(&red, "/assets/brand.css")
        );
    }

    #[test]
    fn everything_but_the_viewer_is_small_enough_for_a_slow_phone() {
        let is_viewer = |page: &&Arc<Page>| page.path.starts_with("/assets/vendor/swagger-ui");
        let size = |page: &Arc<Page>| page.content.compressed().unwrap().len();
        let pages = pages();
        let total: usize = pages.iter().map(size).sum();
        let viewer: usize = pages.iter().filter(is_viewer).map(size).sum();
        let others = total - viewer;
        assert!(others < 150 * 1024, "{others} bytes, compressed");
        // Only `/docs` loads it.
        assert!(viewer < 500 * 1024, "{viewer} bytes, compressed");
        for page in pages.iter().filter(|page| is_html(page)) {
            let loads = text(page).contains("/assets/vendor/swagger-ui");
            assert_eq!(loads, page.path == "/docs", "{}", page.path);
        }
    }
}
