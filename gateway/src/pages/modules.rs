//! Which modules a script imports, so that a page can name all of them at once: otherwise a browser finds each only in the
//! one that imports it, and a slow network delays the page once for each step.

use std::collections::HashSet;

use super::files;

const FOLDER: &str = "assets/";

/// The scripts and every module that they import, without those that they load later by `import()`. Names are relative to
/// the folder of the assets.
///
/// # Errors
/// A module is missing, or is no text.
pub(super) fn with_imports(scripts: &[String]) -> anyhow::Result<Vec<String>> {
    let mut found = scripts.to_vec();
    let mut known: HashSet<String> = found.iter().cloned().collect();
    let mut next = 0;
    while let Some(module) = found.get(next) {
        let text = String::from_utf8(files::read(&format!("{FOLDER}{module}"))?.into())?;
        let new = text.lines().filter_map(imported);
        let new: Vec<_> = new.filter(|name| known.insert(name.clone())).collect();
        found.extend(new);
        next += 1;
    }
    Ok(found)
}

/// The module that a line imports. The imports of our own modules have a line each, and name modules beside them.
fn imported(line: &str) -> Option<String> {
    let import = line.strip_prefix("import ")?;
    let name = import.strip_suffix("\";")?.rsplit_once("\"./")?.1;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{imported, with_imports};

    #[test]
    fn modules_are_found_through_others_and_once() {
        let found = with_imports(&["tasks.js".to_owned()]).unwrap();
        for module in ["tasks.js", "link.js", "retry.js", "session.js"] {
            let number = found.iter().filter(|name| *name == module).count();
            assert_eq!(number, 1, "{module}: {found:?}");
        }
        // It is loaded later, and only for some.
        assert!(!found.contains(&"sign-in.js".to_owned()));
        let markdown = with_imports(&["markdown.js".to_owned()]).unwrap();
        assert!(markdown.contains(&"vendor/dompurify.min.js".to_owned()));
        assert!(with_imports(&["missing.js".to_owned()]).is_err());
    }

    #[test]
    fn a_line_imports_a_module() {
        let name = |line| imported(line).unwrap_or_default();
        assert_eq!(name("import { $, element } from \"./dom.js\";"), "dom.js");
        assert_eq!(name("import \"./vendor/a.js\";"), "vendor/a.js");
        assert_eq!(name("  import(\"./later.js\");"), "");
        assert_eq!(name("const text = \"./no.js\";"), "");
    }
}
