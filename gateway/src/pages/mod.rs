//! The web pages: static content with a strict content security policy, which calls the API like any
//! other client.
//!
//! Pages are rendered once, when the process starts, from templates and from what the settings say about the
//! pages. They load nothing from other origins and contain no inline script or style. Opening a page never changes
//! anything, because mail scanners open every link.
//!
//! A page names its assets by URLs with their version, so that a browser asks for each version only once. Modules are joined
//! to the scripts that import them, and the styles of all pages to one file, so that it asks for few.
//!
//! The files are in `site/`; `layout.html` is the frame of every page. A release build contains them; a debug build
//! reads them from there for every response, so that a change is visible at once. A new file takes a restart.

mod files;
mod look;
mod modules;
mod navigation;
mod page;

use std::borrow::Cow;
use std::sync::Arc;

use actix_web::http::StatusCode;
use app_config::Switch;

use crate::settings::PagesSettings;
use files::{LAYOUT, NOT_FOUND, STYLES};
use look::Look;
pub(crate) use navigation::is_navigation;
pub(crate) use page::Page;
use page::Source;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const JSON: &str = "application/json";

/// The OpenAPI document: what the services and the table of routes document together. A test of the whole system compares it with
/// them, and with `UPDATE_OPENAPI` makes it.
const DOCUMENT: &str = "/openapi.json";

#[derive(Clone)]
pub(crate) struct Pages {
    /// Those with paths.
    pub(crate) served: Arc<[Arc<Page>]>,
    pub(crate) not_found: Option<Arc<Page>>,
}

/// Every page and asset, or without pages only the OpenAPI document.
pub(crate) fn load(settings: &PagesSettings) -> anyhow::Result<Pages> {
    let has_pages = settings.mode == Switch::On;
    let look = Arc::new(Look::new(settings)?);
    let logo = look.logo.as_ref();
    let logo_type = logo.map_or("image/svg+xml", |(_, logo_type)| *logo_type);
    let own = [
        ("/assets/style.css".to_owned(), STYLE, Source::Style),
        ("/assets/logo".to_owned(), logo_type, Source::Logo),
    ];
    let scripts = modules::scripts()?.into_iter().map(|script| {
        let path = format!("/assets/{script}");
        (path, SCRIPT, Source::Script(script))
    });
    let served = own
        .into_iter()
        .chain(scripts)
        .chain(files::names().filter_map(place))
        .filter(|(path, ..)| has_pages || path == DOCUMENT)
        .map(|(path, content_type, source)| Page::new(path, content_type, source, &look));
    let not_found = Source::Template(NOT_FOUND.into());
    let mut not_found = Page::new("/".to_owned(), HTML, not_found, &look)?;
    not_found.status = StatusCode::NOT_FOUND;
    Ok(Pages {
        served: served
            .map(|page| page.map(Arc::new))
            .collect::<anyhow::Result<_>>()?,
        not_found: has_pages.then(|| Arc::new(not_found)),
    })
}

/// The path and type of a file of the site: `home.html` is the page `/`, `tasks.html` is `/tasks`, and an asset keeps its
/// name. Modules and styles that are joined are not served, nor files of other types, such as the notes on vendored files.
fn place(file: Cow<'static, str>) -> Option<(String, &'static str, Source)> {
    let (name, extension) = file.rsplit_once('.')?;
    let content_type = match extension {
        "html" if file != LAYOUT && file != NOT_FOUND => {
            let path = if name == "home" { "" } else { name };
            return Some((format!("/{path}"), HTML, Source::Template(file)));
        }
        "js" if !modules::is_module(&file) && !modules::is_joined(&file) => SCRIPT,
        "css" if !STYLES.contains(&file.as_ref()) => STYLE,
        "json" => JSON,
        _ => return None,
    };
    Some((format!("/{file}"), content_type, Source::File(file)))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::Arc;

    use actix_web::body::MessageBody as _;
    use actix_web::http::header::ACCEPT_ENCODING;
    use actix_web::test::TestRequest;
    use app_config::{Reader, Settings as _};

    use super::{DOCUMENT, Page, PagesSettings, load};

    fn pages_with(settings: &[(&str, &str)]) -> Arc<[Arc<Page>]> {
        let mut reader = Reader::from_pairs(settings.iter().copied()).unwrap();
        let settings = PagesSettings::read(&mut reader).unwrap();
        load(&settings).unwrap().served
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
            let named = text.split(['"', '`']).filter(|part| !part.contains("${"));
            // A joined script names its modules by their names alone.
            let assets = named.filter_map(|part| match part.strip_prefix("./") {
                Some(beside) => Some(format!("/assets/{beside}")),
                None => part.starts_with("/assets/").then(|| part.to_owned()),
            });
            for asset in assets {
                let is_known = pages.iter().any(|page| page.path == asset);
                assert!(is_known, "{}: {asset}", page.path);
            }
        }
    }

    #[test]
    fn a_page_names_its_script_and_those_that_it_soon_loads() {
        let pages = pages();
        let tasks = pages.iter().find(|page| page.path == "/tasks").unwrap();
        let german = tasks.german.as_ref().unwrap();
        let german = String::from_utf8(german.plain.to_vec()).unwrap();
        for (text, language, other) in [(text(tasks), "en", "de"), (german, "de", "en")] {
            for (script, number) in [
                ("tasks".to_owned(), 1),
                ("markdown".to_owned(), 1),
                (format!("texts/{language}"), 1),
                (format!("texts/{other}"), 0),
            ] {
                let name = format!("=\"/assets/{script}.js\"");
                assert_eq!(text.matches(&name).count(), number, "{name}");
            }
        }
    }

    #[test]
    fn the_page_of_a_decision_is_small() {
        let pages = pages();
        let loaded = [
            "/tasks",
            "not-loaded.js",
            "style.css",
            "logo",
            "tasks.js",
            "texts/de.js",
            "markdown.js",
            "task-tools.js",
        ];
        let size = |name: &&str| {
            let path = if name.starts_with('/') {
                (*name).to_owned()
            } else {
                format!("/assets/{name}")
            };
            let page = pages.iter().find(|page| page.path == path).unwrap();
            page.content.compressed().unwrap().len()
        };
        let total: usize = loaded.iter().map(size).sum();
        // A person who is signed in also loads the tools.
        assert!(total < 50 * 1024, "{total} bytes, compressed");
    }

    #[test]
    fn styles_are_sent_without_comments() {
        let pages = pages();
        let styles = pages.iter().find(|page| page.path == "/assets/style.css");
        let text = text(styles.unwrap());
        assert!(
            text.contains("\n.skeleton") && !text.contains("/*"),
            "{text}"
        );
    }

    #[test]
    fn only_assets_are_kept_and_only_under_the_name_of_their_version() {
        let red = pages_with(&[("PAGES_COLOR", "#c00")]);
        for page in pages().iter() {
            let version = page.version();
            let other = red.iter().find(|other| other.path == page.path);
            assert_ne!(other.unwrap().version(), version);
            let caching = [Some(version), Some("0123456789abcdef"), None]
                .map(|version| page.caching(version));
            if page.path == DOCUMENT {
                assert_eq!(caching[2], "no-cache");
            } else if page.path.starts_with("/assets/") {
                let kept = "public, max-age=31536000, immutable";
                assert_eq!(caching, [kept, "no-cache", "no-cache"], "{}", page.path);
            } else {
                assert_eq!(caching, ["no-store"; 3], "{}", page.path);
            }
        }
    }

    #[test]
    fn without_pages_there_is_only_the_document() {
        let pages = pages_with(&[("PAGES", "off"), ("PAGES_LOGO", "/no/such/file")]);
        let paths: Vec<_> = pages.iter().map(|page| &*page.path).collect();
        assert_eq!(paths, [DOCUMENT]);
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
        for (path, is_same) in [("/", false), ("/tasks", false), ("/assets/style.css", true)] {
            assert_eq!(tag(&usual, path) == tag(&named, path), is_same, "{path}");
            assert_eq!(tag(&usual, path), tag(&pages(), path), "{path}");
        }
        let red = pages_with(&[("PAGES_COLOR", "#c00")]);
        assert_ne!(
            tag(&usual, "/assets/style.css"),
            tag(&red, "/assets/style.css")
        );
    }

    #[test]
    fn everything_but_the_viewer_is_small_enough_for_a_slow_phone() {
        let is_viewer = |page: &&Arc<Page>| page.path.starts_with("/assets/vendor/swagger-ui");
        let is_document = |page: &&Arc<Page>| page.path == DOCUMENT;
        let size = |page: &Arc<Page>| page.content.compressed().unwrap().len();
        let pages = pages();
        let total: usize = pages.iter().map(size).sum();
        let viewer: usize = pages.iter().filter(is_viewer).map(size).sum();
        let document: usize = pages.iter().filter(is_document).map(size).sum();
        let others = total - viewer - document;
        assert!(others < 168 * 1024, "{others} bytes, compressed");
        // Only `/docs` loads them.
        assert!(viewer < 500 * 1024, "{viewer} bytes, compressed");
        assert!(document < 64 * 1024, "{document} bytes, compressed");
        for page in pages.iter().filter(|page| is_html(page)) {
            let loads = text(page).contains("/assets/vendor/swagger-ui");
            assert_eq!(loads, page.path == "/docs", "{}", page.path);
        }
    }

    #[actix_web::test]
    async fn a_client_that_does_not_read_has_a_part_of_a_page_in_memory() {
        for encoding in ["identity", "gzip"] {
            for page in pages().iter() {
                let request = TestRequest::default().insert_header((ACCEPT_ENCODING, encoding));
                let response = page.response(&request.to_http_request());
                let mut body = pin!(response.into_body());
                while let Some(part) = poll_fn(|cx| body.as_mut().poll_next(cx)).await {
                    let length = part.unwrap().len();
                    assert!(length <= 16 * 1024, "{}: {length} bytes", page.path);
                }
            }
        }
    }
}
