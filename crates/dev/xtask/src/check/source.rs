//! Reads which paths the source files of a package name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The segments of a path, such as `["crate", "tasks", "store"]`.
pub(super) type Segments = Vec<String>;

/// The files of a package, tests left out: the paths in each, by its name relative to `src`.
pub(super) type Package = BTreeMap<String, Vec<Segments>>;

/// Reads the files below `folder`, which is the package's `src`.
pub(super) fn read(folder: &Path) -> Result<Package, String> {
    let mut texts = Vec::new();
    list(folder, "", &mut texts)?;
    Ok(parse(texts))
}

/// `texts` are names of files and what they hold.
pub(super) fn parse(texts: impl IntoIterator<Item = (String, String)>) -> Package {
    let texts = texts.into_iter();
    let files = texts.filter(|(name, _)| !name.ends_with("tests.rs"));
    let paths_of = |text: &str| paths(&without_strings(&without_tests(text)));
    files.map(|(name, text)| (name, paths_of(&text))).collect()
}

fn list(folder: &Path, prefix: &str, texts: &mut Vec<(String, String)>) -> Result<(), String> {
    let failed = |error| format!("reading {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "tests" {
            list(&path, &format!("{prefix}{name}/"), texts)?;
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).map_err(failed)?;
            texts.push((format!("{prefix}{name}"), text));
        }
    }
    Ok(())
}

/// `text` without comments and without the items after `#[cfg(test)]`. The sources are formatted, so an item ends with its
/// line, or with a brace at its own depth.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let depth = line.len() - line.trim_start().len();
        if line.trim() == "#[cfg(test)]" {
            let ends = |line: &str| {
                let is_shallow = line.len() - line.trim_start().len() == depth;
                is_shallow && (line.ends_with(';') || line.trim_start().starts_with('}'))
            };
            lines.find(|line| ends(line));
        } else if !line.trim_start().starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// All paths in a text, those within the braces of a `use` item included.
fn paths(text: &str) -> Vec<Segments> {
    let mut found = Vec::new();
    // What stands before the braces that are open, such as `crate::tasks::`.
    let mut prefixes: Vec<String> = Vec::new();
    let is_end = |it: char| !it.is_alphanumeric() && it != '_' && it != ':';
    for part in text.split_inclusive(is_end) {
        let word = part.trim_end_matches(is_end);
        let path = prefixes.last().cloned().unwrap_or_default() + word;
        let end = part.strip_prefix(word).unwrap_or_default();
        let is_prefix = end == "{" && word.ends_with("::");
        if !word.is_empty() && !is_prefix {
            let segments = path.split(':').filter(|segment| !segment.is_empty());
            found.push(segments.map(str::to_owned).collect());
        }
        match end {
            "{" => prefixes.push(if is_prefix { path } else { String::new() }),
            "}" => drop(prefixes.pop()),
            _ => {}
        }
    }
    found
}

/// `text` without strings, which hold no paths.
fn without_strings(text: &str) -> String {
    // Neither an escaped quotation mark nor one that is a character ends a string.
    let ends = text
        .replace(r"\\", "")
        .replace(r#"\""#, "")
        .replace("'\"'", "");
    ends.split('"').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_braces_are_complete() {
        let text = "use crate::{a::{self, b}, c}; fn f() { d::e() }";
        let found: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
        let expected = [
            "use",
            "crate::a::self",
            "crate::a::b",
            "crate::c",
            "fn",
            "f",
            "d::e",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn tests_and_comments_are_left_out() {
        let text = "use a::b;\n// c::d\n#[cfg(test)]\nuse e::f;\n#[cfg(test)]\nmod tests {\n    use g::h;\n}\nuse i::j;\n";
        assert_eq!(without_tests(text), "use a::b;\nuse i::j;\n");
    }
}
