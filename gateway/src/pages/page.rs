use std::borrow::Cow;
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_LANGUAGE, AcceptEncoding, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    ETAG, Encoding, Header as _, HeaderMap, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_FRAME_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse};
use anyhow::Context as _;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use ring::digest::{SHA256, digest};
use values::{Language, Names as _};

use super::files::{self, LAYOUT, STYLES};
use super::look::{Look, version_of};
use super::modules;
use crate::limits::concurrency::in_parts;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";
/// A URL of a page may contain a code or a secret.
const NEVER_STORED: &str = "no-store";
const CHECKED_FIRST: &str = "no-cache";
/// A year. Its URL changes with its content.
const KEPT: &str = "public, max-age=31536000, immutable";
/// The parameter of a path that names the version of an asset.
const VERSION: &str = "version";

pub(crate) struct Page {
    /// The path that does not change.
    pub(crate) path: String,
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    source: Source,
    look: Arc<Look>,
    pub(super) content: Content,
    /// The same for readers of German, if it depends on the language.
    pub(super) german: Option<Content>,
}

pub(super) enum Source {
    Template(Cow<'static, str>),
    File(Cow<'static, str>),
    /// A script of the site with the modules that it imports.
    Script(String),
    /// The styles of all pages, with the colours of the settings.
    Style,
    /// The logo of the settings, or the built-in one.
    Logo,
}

impl Source {
    fn content(&self, look: &Look, language: Language) -> anyhow::Result<Content> {
        let plain = match self {
            Self::Template(file) => render(file, look, language)?,
            Self::File(file) => files::read(file)?,
            Self::Script(script) => Bytes::from(modules::joined(script)?),
            Self::Style => style(look)?,
            Self::Logo => match &look.logo {
                Some((logo, _)) => logo.clone(),
                None => files::read("logo.svg")?,
            },
        };
        Ok(Content::new(plain))
    }
}

/// A page from its template, for readers of a language. What the settings say is escaped.
fn render(file: &str, look: &Look, language: Language) -> anyhow::Result<Bytes> {
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
        let text = String::from_utf8(files::read(name)?.into())?;
        environment.add_template_owned(name.to_owned(), text)?;
    }
    let page = environment.get_template(file)?;
    let assets = Value::from_safe_string(look.assets());
    let (name, language) = (look.name.as_str(), language.name());
    let text = page.render(context! { name, assets, language })?;
    Ok(Bytes::from(text))
}

/// The styles of all pages without their comments, as scripts are sent.
fn style(look: &Look) -> anyhow::Result<Bytes> {
    let mut text = String::new();
    for file in STYLES {
        let styles = String::from_utf8(files::read(file)?.into())?;
        let is_comment = |line: &&str| line.starts_with("/*") && line.ends_with("*/");
        let lines = styles.lines().filter(|line| !is_comment(line));
        text.extend(lines.flat_map(|line| [line, "\n"]));
    }
    text.push_str(&look.stylesheet());
    Ok(Bytes::from(text))
}

impl Page {
    pub(super) fn new(
        path: String,
        content_type: &'static str,
        source: Source,
        look: &Arc<Look>,
    ) -> anyhow::Result<Self> {
        let content = |language| {
            let content = source.content(look, language);
            content.with_context(|| path.clone())
        };
        let is_template = matches!(source, Source::Template(_));
        let german = is_template.then(|| content(Language::German)).transpose()?;
        let content = content(Language::English)?;
        Ok(Self {
            path,
            status: StatusCode::OK,
            content_type,
            source,
            look: Arc::clone(look),
            content,
            german,
        })
    }

    /// The paths at which the page is served. Pages name their assets by the ones with a version.
    /// A page is also served with a slash at its end, which people add.
    pub(crate) fn paths(&self) -> Vec<String> {
        let other = match self.path.strip_prefix("/assets/") {
            Some(name) => Some(format!("/assets/{{{VERSION}:[0-9a-f]{{16}}}}/{name}")),
            None if self.path == "/" => None,
            None => Some(format!("{}/", self.path)),
        };
        other.into_iter().chain([self.path.clone()]).collect()
    }

    /// What a response has now for readers of a language. Only a debug build reads the files again.
    fn current(&self, language: Language) -> Cow<'_, Content> {
        let german = self.german.as_ref();
        let of_language = german.filter(|_| language == Language::German);
        let content = of_language.unwrap_or(&self.content);
        if !cfg!(debug_assertions) {
            return Cow::Borrowed(content);
        }
        match self.source.content(&self.look, language) {
            Ok(content) => Cow::Owned(content),
            Err(error) => {
                tracing::warn!(path = %self.path, ?error, "the page cannot be rendered again");
                Cow::Borrowed(content)
            }
        }
    }

    /// The content with its security headers, compressed if the client accepts that, or `304` if the client has it.
    pub(crate) fn response(&self, request: &HttpRequest) -> HttpResponse {
        let current = self.current(language_of(request.headers()));
        let caching = self.caching(request.match_info().get(VERSION));
        let vary = if self.german.is_some() {
            "accept-encoding, accept-language"
        } else {
            "accept-encoding"
        };
        let is_known = self.status == StatusCode::OK && has(request.headers(), &current.etag);
        let mut response = HttpResponse::build(if is_known {
            StatusCode::NOT_MODIFIED
        } else {
            self.status
        });
        response
            .insert_header((CACHE_CONTROL, caching))
            .insert_header((VARY, vary))
            .insert_header((ETAG, current.etag.as_str()));
        if is_known {
            return response.finish();
        }
        response
            .content_type(self.content_type)
            .insert_header((CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((REFERRER_POLICY, "no-referrer"))
            .insert_header((X_FRAME_OPTIONS, "DENY"))
            .insert_header(("cross-origin-opener-policy", "same-origin"));
        if accepts_gzip(request)
            && let Some(compressed) = current.compressed()
        {
            response.insert_header((CONTENT_ENCODING, "gzip"));
            return response.body(in_parts(compressed, None));
        }
        response.body(in_parts(current.plain.clone(), None))
    }

    #[cfg(test)]
    pub(super) fn version(&self) -> &str {
        &self.look.version
    }

    /// How long a response may be kept. While gateways are replaced, a page of the other version may ask for its own
    /// assets; it gets these, which must not be kept under that name.
    pub(super) fn caching(&self, version: Option<&str>) -> &'static str {
        if matches!(self.source, Source::Template(_)) {
            NEVER_STORED
        } else if version == Some(self.look.version.as_str()) {
            KEPT
        } else {
            CHECKED_FIRST
        }
    }
}

/// The language of the texts that a browser will ask for: the first one that the pages have, as its scripts choose it.
fn language_of(headers: &HeaderMap) -> Language {
    let accepted = headers.get(ACCEPT_LANGUAGE);
    let accepted = accepted.and_then(|value| value.to_str().ok());
    let preferred = accepted.and_then(Language::preferred);
    preferred.unwrap_or(Language::English)
}

/// Whether the client already has the content with this entity tag.
fn has(headers: &HeaderMap, etag: &str) -> bool {
    let tags = headers.get(IF_NONE_MATCH);
    let tags = tags.and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    tags.split(',').any(|tag| tag.trim() == etag)
}

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

    pub(super) fn compressed(&self) -> Option<Bytes> {
        let compressed = || compress(&self.plain).ok();
        self.compressed.get_or_init(compressed).clone()
    }
}

fn compress(plain: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain)?;
    encoder.finish().map(Bytes::from)
}

fn accepts_gzip(request: &HttpRequest) -> bool {
    let supported = [Encoding::gzip(), Encoding::identity()];
    let accepted = AcceptEncoding::parse(request).ok();
    let chosen = accepted.and_then(|accepted| accepted.negotiate(supported.iter()));
    chosen == Some(Encoding::gzip())
}
