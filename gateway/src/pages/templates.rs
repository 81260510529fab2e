//! The pages that are rendered from templates of the site.

use bytes::Bytes;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use values::{Language, Names as _};

use super::files::{LAYOUT, read};
use super::look::Look;

/// A page from its template, for readers of a language. What the settings say is escaped.
///
/// # Errors
/// A template is missing or invalid.
pub(super) fn render(file: &str, look: &Look, language: Language) -> anyhow::Result<Bytes> {
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
    let assets = Value::from_safe_string(look.assets());
    let (name, language) = (look.name.as_str(), language.name());
    let text = page.render(context! { name, assets, language })?;
    Ok(Bytes::from(text))
}
