//! Joins a script with the modules that it imports into one file, so that a browser asks for it once: otherwise it asks for
//! each module, and finds it only in the one that imports it.
//!
//! A joined file is a module, too. It keeps what each of its modules exports under the module's name, so that a script that
//! is loaded later, by `import()`, shares the modules of the page's script instead of running them again. It may be of a later
//! version than these: where they lack what it imports, it fails when it is loaded, and the page says so, and not when it is used.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context as _, ensure};

use super::files::{self, LAYOUT};

const FOLDER: &str = "assets/";
/// What a page's HTML names before its script.
const SCRIPT_OF_PAGE: &str = "{% set script = \"";
/// The beginning of a page's script. Who asks a module for a name that it does not export gets an error.
const MODULES_OF_PAGE: &str = "const modules = globalThis.countersignModules ??= new Proxy({}, {
set(all, module, exported) {
const get = (_, name) => {
if (name in exported) return exported[name];
throw new Error(`${module} has no ${name}`);
};
all[module] = new Proxy(exported, { get });
return true;
},
});
";
/// The beginning of a script that is loaded later.
const MODULES: &str = "const modules = globalThis.countersignModules;\n";
/// What a module names before one that it loads later.
const LOADED_LATER: &str = "import(\"./";

/// The scripts that browsers ask for: those of pages, and those that another one loads later.
pub(super) fn scripts() -> anyhow::Result<BTreeSet<String>> {
    let mut found = page_scripts()?;
    for name in files::names().filter(|name| is_module(name)) {
        found.extend(loaded_later(&read(&name)?).map(str::to_owned));
    }
    Ok(found)
}

/// Whether a file of the site is a module of ours. Those of others are only joined to ours.
pub(super) fn is_module(file: &str) -> bool {
    let name = file.strip_prefix(FOLDER);
    name.is_some_and(|name| {
        name.ends_with(".js") && !name.starts_with("vendor/") && name != "not-loaded.js"
    })
}

/// Whether a file is of others, and only joined to modules of ours.
pub(super) fn is_joined(file: &str) -> bool {
    file.ends_with(".esm.js")
}

/// A script with the modules that it imports. One that is loaded later has no module that is there before.
pub(super) fn joined(script: &str) -> anyhow::Result<String> {
    let mut modules = Vec::new();
    add_with_imports(script, &mut modules)?;
    let pages = page_scripts()?;
    let is_of_page = pages.contains(script);
    if !is_of_page {
        let known = known_before(script, &pages)?;
        modules.retain(|module| !known.contains(module));
    }
    let start = if is_of_page { MODULES_OF_PAGE } else { MODULES };
    let mut text = start.to_owned();
    for module in &modules {
        let of_module = wrapped(module).with_context(|| module.clone())?;
        writeln!(text, "modules[\"{module}\"] ??= {of_module}")?;
    }
    let exports = exports(&read_asset(script)?).join(", ");
    if !exports.is_empty() {
        writeln!(
            text,
            "export const {{ {exports} }} = modules[\"{script}\"];"
        )?;
    }
    Ok(text)
}

fn page_scripts() -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for name in files::names().filter(|name| name.ends_with(".html") && name != LAYOUT) {
        let text = read(&name)?;
        let script = text.split_once(SCRIPT_OF_PAGE).context(name)?.1;
        found.extend(script.split_once('"').map(|(script, _)| script.to_owned()));
    }
    Ok(found)
}

/// The modules that a browser already has when it loads a script: those of every page that may load it.
fn known_before(script: &str, pages: &BTreeSet<String>) -> anyhow::Result<BTreeSet<String>> {
    let mut known = Vec::new();
    for page in pages {
        let mut modules = Vec::new();
        add_with_imports(page, &mut modules)?;
        if may_load(&modules, script)? {
            known.push(BTreeSet::from_iter(modules));
        }
    }
    let known = known.into_iter().reduce(|known, modules| &known & &modules);
    Ok(known.unwrap_or_default())
}

/// Whether one of these modules, or one that they load, loads a script.
fn may_load(modules: &[String], script: &str) -> anyhow::Result<bool> {
    let mut found = modules.to_vec();
    let mut next = 0;
    while let Some(module) = found.get(next) {
        for name in loaded_later(&read_asset(module)?) {
            if name == script {
                return Ok(true);
            }
            add_with_imports(name, &mut found)?;
        }
        next += 1;
    }
    Ok(false)
}

fn loaded_later(text: &str) -> impl Iterator<Item = &str> {
    let later = text.split(LOADED_LATER).skip(1);
    later.filter_map(|rest| Some(rest.split_once('"')?.0))
}

/// Adds a module after those that it imports.
fn add_with_imports(module: &str, modules: &mut Vec<String>) -> anyhow::Result<()> {
    if modules.iter().any(|known| known == module) {
        return Ok(());
    }
    let text = read_asset(module)?;
    for name in text.lines().filter_map(imported) {
        add_with_imports(name, modules)?;
    }
    modules.push(module.to_owned());
    Ok(())
}

/// The module that a line imports. Imports have a line each, and name modules beside them.
fn imported(line: &str) -> Option<&str> {
    let import = line.strip_prefix("import ")?;
    Some(import.strip_suffix("\";")?.rsplit_once("\"./")?.1)
}

/// A module as an expression with the value of its exports. Comments that have a line to themselves and indentation are left
/// out. So no text may continue on the next line.
fn wrapped(module: &str) -> anyhow::Result<String> {
    let text = read_asset(module)?;
    if module.starts_with("vendor/") {
        return wrapped_vendored(&text);
    }
    let mut body = String::new();
    let (mut in_comment, mut waits) = (false, "");
    for line in text.lines() {
        let trimmed = line.trim_start();
        in_comment |= trimmed.starts_with("/**");
        if in_comment || trimmed.is_empty() || trimmed.starts_with("//") {
            in_comment &= !trimmed.ends_with("*/");
            continue;
        }
        ensure!(
            line.matches('`').count() % 2 == 0,
            "cannot join a text of several lines: {line}"
        );
        if !line.starts_with(' ') && line.contains("await ") && !line.contains("async ") {
            waits = "await ";
        }
        let exported = trimmed.strip_prefix("export ");
        let line = match line.strip_prefix("import ") {
            Some(import) => import_of(import)?,
            None => exported.unwrap_or(trimmed).to_owned(),
        };
        writeln!(body, "{line}")?;
    }
    let names = exports(&text).join(", ");
    let kind = if waits.is_empty() { "" } else { "async " };
    Ok(format!(
        "{waits}({kind}() => {{\n{body}return {{ {names} }};\n}})();"
    ))
}

/// `{ a } from "./b.js";` as a declaration.
fn import_of(import: &str) -> anyhow::Result<String> {
    let parts = import
        .strip_suffix("\";")
        .and_then(|import| import.split_once(" from \"./"));
    let (names, module) = parts.with_context(|| format!("cannot join: import {import}"))?;
    ensure!(!names.contains(" as "), "cannot join: import {import}");
    Ok(format!("const {names} = modules[\"{module}\"];"))
}

/// The names that a module of ours exports, each at its declaration.
fn exports(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("export "));
    let declared = lines.filter_map(|line| {
        let kinds = ["async function ", "function ", "class ", "const "];
        kinds.iter().find_map(|kind| line.strip_prefix(kind))
    });
    let end = |c: char| !c.is_alphanumeric() && c != '_' && c != '$';
    declared.filter_map(|name| name.split(end).next()).collect()
}

/// A module of others, which is minified: its last statement exports `{a as B,c}`.
fn wrapped_vendored(text: &str) -> anyhow::Result<String> {
    let parts = text
        .rsplit_once("export{")
        .and_then(|(body, rest)| Some((body, rest.split_once('}')?.0)));
    let (body, names) = parts.context("it has no exports at its end")?;
    let names = names.split(',').map(|name| match name.split_once(" as ") {
        Some((inner, outer)) => format!("{outer}: {inner}"),
        None => name.to_owned(),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    Ok(format!("(() => {{\n{body}\nreturn {{ {names} }};\n}})();"))
}

fn read_asset(name: &str) -> anyhow::Result<String> {
    read(&format!("{FOLDER}{name}"))
}

fn read(file: &str) -> anyhow::Result<String> {
    let text = String::from_utf8(files::read(file)?.into());
    text.with_context(|| file.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{MODULES, MODULES_OF_PAGE, exports, import_of, imported, joined, scripts};

    #[test]
    fn scripts_are_those_of_pages_and_those_that_are_loaded_later() {
        let scripts = scripts().unwrap();
        for script in [
            "tasks.js",
            "home.js",
            "markdown.js",
            "sign-in.js",
            "texts/de.js",
        ] {
            assert!(scripts.contains(script), "{script}: {scripts:?}");
        }
        assert!(!scripts.contains("dom.js"), "{scripts:?}");
    }

    #[test]
    fn a_script_has_each_module_once_and_after_those_that_it_imports() {
        let text = joined("tasks.js").unwrap();
        let place = |module| {
            let start = format!("\nmodules[\"{module}\"] ??= ");
            assert_eq!(text.matches(&start).count(), 1, "{module}");
            text.find(&start).unwrap()
        };
        assert!(text.starts_with(MODULES_OF_PAGE));
        assert!(place("session.js") < place("link.js"));
        assert!(place("link.js") < place("tasks.js"));
        assert!(!text.contains("modules[\"sign-in.js\"]"));
        assert!(!text.contains("\nimport ") && !text.contains("\nexport "));
        assert!(joined("missing.js").is_err());
    }

    #[test]
    fn a_script_that_is_loaded_later_has_only_what_pages_may_lack() {
        let text = joined("markdown.js").unwrap();
        for (module, is_there) in [("vendor/marked.esm.js", true), ("dom.js", false)] {
            let start = format!("modules[\"{module}\"] ??= ");
            assert_eq!(text.contains(&start), is_there, "{module}");
        }
        assert!(text.starts_with(MODULES));
        assert!(text.ends_with("export const { render } = modules[\"markdown.js\"];\n"));
        assert!(text.contains("Marked: ne"));
    }

    #[test]
    fn a_line_imports_a_module() {
        let name = |line| imported(line).unwrap_or_default();
        assert_eq!(name("import { $, element } from \"./dom.js\";"), "dom.js");
        assert_eq!(name("import \"./vendor/a.js\";"), "vendor/a.js");
        assert_eq!(name("  import(\"./later.js\");"), "");
        assert_eq!(name("const text = \"./no.js\";"), "");
        let declared = import_of("{ $, element } from \"./dom.js\";").unwrap();
        assert_eq!(declared, "const { $, element } = modules[\"dom.js\"];");
        for unknown in ["\"./a.js\";", "{ a as b } from \"./c.js\";"] {
            assert!(import_of(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn exports_are_found_at_their_declarations() {
        let text = "export const a = 1;\nexport async function b() {\n}\nexport class C extends D {\nexport const $ = 2;\nconst e = 3;";
        assert_eq!(exports(text), ["a", "b", "C", "$"]);
    }
}
