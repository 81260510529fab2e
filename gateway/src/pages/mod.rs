//! The web pages: static files with a strict content security policy, which call the API like any
//! other client.
//!
//! They load nothing from other origins and contain no inline script or style. Opening a page never changes
//! anything, because mail scanners open every link.

use actix_web::HttpResponse;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_FRAME_OPTIONS,
};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

/// One file at one path.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) path: &'static str,
    content_type: &'static str,
    cache_control: &'static str,
    body: &'static [u8],
}

const fn page(path: &'static str, body: &'static [u8]) -> Page {
    Page {
        path,
        content_type: "text/html; charset=utf-8",
        // Its URL may contain a code or a secret.
        cache_control: "no-store",
        body,
    }
}

const fn asset(path: &'static str, content_type: &'static str, body: &'static [u8]) -> Page {
    Page {
        path,
        content_type,
        cache_control: "no-cache",
        body,
    }
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Every page and asset.
#[rustfmt::skip]
pub(crate) static PAGES: &[Page] = &[
    page("/", include_bytes!("home.html")),
    page("/docs", include_bytes!("docs.html")),
    page("/reset-password", include_bytes!("reset-password.html")),
    page("/tasks", include_bytes!("tasks.html")),
    page("/verify-email", include_bytes!("verify-email.html")),
    asset("/assets/style.css", STYLE, include_bytes!("style.css")),
    asset("/assets/docs.js", SCRIPT, include_bytes!("docs.js")),
    asset("/assets/schema.js", SCRIPT, include_bytes!("schema.js")),
    asset("/assets/page.js", SCRIPT, include_bytes!("page.js")),
    asset("/assets/reset-password.js", SCRIPT, include_bytes!("reset-password.js")),
    asset("/assets/tasks.js", SCRIPT, include_bytes!("tasks.js")),
    asset("/assets/verify-email.js", SCRIPT, include_bytes!("verify-email.js")),
    asset("/assets/icon.svg", "image/svg+xml", include_bytes!("icon.svg")),
];

impl Page {
    /// The file with its security headers.
    pub(crate) fn response(&self) -> HttpResponse {
        HttpResponse::Ok()
            .content_type(self.content_type)
            .insert_header((CACHE_CONTROL, self.cache_control))
            .insert_header((CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((REFERRER_POLICY, "no-referrer"))
            .insert_header((X_FRAME_OPTIONS, "DENY"))
            .insert_header(("cross-origin-opener-policy", "same-origin"))
            .body(self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::PAGES;

    #[test]
    fn pages_contain_nothing_inline_and_load_only_known_assets() {
        for page in PAGES
            .iter()
            .filter(|page| page.content_type.starts_with("text/html"))
        {
            let text = std::str::from_utf8(page.body).unwrap();
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
            for part in text.split('"').filter(|part| part.starts_with("/assets/")) {
                assert!(
                    PAGES.iter().any(|page| page.path == part),
                    "{}: {part}",
                    page.path
                );
            }
        }
    }
}
