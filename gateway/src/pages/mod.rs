//! The web pages: static files with a strict content security policy, which call the API like any
//! other client.
//!
//! They load nothing from other origins and contain no inline script or style. Opening a page never changes
//! anything, because mail scanners open every link.
//!
//! The files are in `site/`. A release build contains them; a debug build reads them from there for every
//! response, so that a change is visible at once. A new file takes a restart.

mod content;

use std::borrow::Cow;
use std::sync::LazyLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderMap, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_FRAME_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse};

use content::{Content, Site};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

/// One file at one path.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) path: String,
    file: Cow<'static, str>,
    content_type: &'static str,
    cache_control: &'static str,
    content: Content,
}

/// Every page and asset.
pub(crate) static PAGES: LazyLock<Vec<Page>> =
    LazyLock::new(|| Site::iter().filter_map(Page::of).collect());

impl Page {
    /// A file of the site: `home.html` is the page `/`, `tasks.html` is `/tasks`, and an asset keeps its name.
    /// Files of other types, such as the notes on vendored files, are not served.
    fn of(file: Cow<'static, str>) -> Option<Self> {
        let (name, extension) = file.rsplit_once('.')?;
        let content_type = match extension {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => return None,
        };
        let (path, cache_control) = match (name, extension) {
            ("home", "html") => ("/".to_owned(), "no-store"),
            // Its URL may contain a code or a secret.
            (_, "html") => (format!("/{name}"), "no-store"),
            _ => (format!("/{file}"), "no-cache"),
        };
        Some(Self {
            path,
            content_type,
            cache_control,
            content: Content::of(&file)?,
            file,
        })
    }

    /// The file with its security headers, compressed if the client accepts that, or `304` if the client has it.
    pub(crate) fn response(&self, request: &HttpRequest) -> HttpResponse {
        let current = self.content.current(&self.file);
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
        if content::accepts_gzip(request) {
            response.insert_header((CONTENT_ENCODING, "gzip"));
            return response.body(current.compressed.clone());
        }
        response.body(current.plain.clone())
    }
}

/// Whether the client already has the file with this entity tag.
fn has(headers: &HeaderMap, etag: &str) -> bool {
    let tags = headers.get(IF_NONE_MATCH);
    let tags = tags.and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    tags.split(',').any(|tag| tag.trim() == etag)
}

#[cfg(test)]
mod tests {
    use super::{PAGES, Page};

    fn text(page: &Page) -> String {
        let current = page.content.current(&page.file);
        String::from_utf8(current.plain.to_vec()).unwrap()
    }

    /// Scripts and styles of our own.
    fn is_vendored(page: &Page) -> bool {
        page.path.starts_with("/assets/vendor/")
    }

    #[test]
    fn pages_contain_nothing_inline() {
        for page in PAGES.iter().filter(|page| page.file.ends_with(".html")) {
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
        for page in PAGES.iter().filter(|page| !is_vendored(page)) {
            let text = text(page);
            let named = text
                .split(['"', '`'])
                .filter(|part| part.starts_with("/assets/") && !part.contains("${"));
            for asset in named {
                let is_known = PAGES.iter().any(|page| page.path == asset);
                assert!(is_known, "{}: {asset}", page.path);
            }
        }
    }

    #[test]
    fn everything_is_small_enough_for_a_slow_phone() {
        let sizes = PAGES
            .iter()
            .map(|page| page.content.current(&page.file).compressed.len());
        let total: usize = sizes.sum();
        assert!(total < 150 * 1024, "{total} bytes, compressed");
    }
}
