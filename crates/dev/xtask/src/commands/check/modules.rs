//! Which files of a package import each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path as FilePath, PathBuf},
};

use anyhow::Context;

use super::source::{Path, Source};

/// Nodes and the nodes that each imports.
pub(super) type Graph = BTreeMap<String, BTreeSet<String>>;

/// A chain of re-exports is followed this far.
const MAX_REEXPORTS: usize = 16;

/// The library (or the only binary) of a package, by module path. Modules of tests are left out.
#[derive(Debug, Default)]
pub(super) struct Package {
    modules: BTreeMap<Path, Module>,
    /// Files of other binaries, which are crates of their own and use the library by its name.
    programs: Vec<Module>,
}

#[derive(Debug)]
struct Module {
    /// Relative to `src`, such as `tasks/store.rs`.
    file: String,
    source: Source,
}

impl Package {
    /// Reads the sources in `folder`, which is the package's `src`.
    pub(super) fn read(folder: &FilePath) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        list_sources(folder, &mut files)?;
        let mut texts = Vec::new();
        for file in files {
            let text =
                fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            let name = file.strip_prefix(folder)?.to_string_lossy().into_owned();
            texts.push((name, text));
        }
        Self::parse(&texts)
    }

    /// `files` are names relative to `src`, and texts.
    pub(super) fn parse(files: &[(String, String)]) -> anyhow::Result<Self> {
        let has_library = files.iter().any(|(file, _)| file == "lib.rs");
        let mut package = Self::default();
        for (file, text) in files {
            let source = Source::parse(text).with_context(|| file.clone())?;
            let file = file.clone();
            let path = module_path(&file);
            let is_program = file.starts_with("bin/") || (has_library && file == "main.rs");
            let module = Module { file, source };
            if is_program {
                package.programs.push(module);
            } else {
                package.modules.insert(path, module);
            }
        }
        package.remove_tests();
        Ok(package)
    }

    fn remove_tests(&mut self) {
        let tests: Vec<Path> = self
            .modules
            .iter()
            .flat_map(|(path, module)| {
                let names = module.source.test_modules.iter();
                names.map(|name| [path.as_slice(), std::slice::from_ref(name)].concat())
            })
            .collect();
        self.modules
            .retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
    }

    /// Each file and the first segments of the paths in it.
    pub(super) fn named_crates(&self) -> impl Iterator<Item = (&str, BTreeSet<&str>)> {
        self.modules.values().chain(&self.programs).map(|module| {
            let first = module.source.paths.iter().filter_map(|path| path.first());
            (module.file.as_str(), first.map(String::as_str).collect())
        })
    }

    /// Which file imports which.
    pub(super) fn files(&self) -> Graph {
        self.graph(|path| {
            let file = self.modules.get(path).map(|module| module.file.clone());
            file.unwrap_or_default()
        })
    }

    /// Which module at the top of the package imports which. The root is left out, because it declares them all.
    pub(super) fn modules(&self) -> Graph {
        let mut graph = self.graph(|path| path.first().cloned().unwrap_or_default());
        graph.remove("");
        for imported in graph.values_mut() {
            imported.remove("");
        }
        graph
    }

    fn graph(&self, node: impl Fn(&[String]) -> String) -> Graph {
        let mut graph = Graph::new();
        for (path, module) in &self.modules {
            let from = node(path);
            let imported = graph.entry(from.clone()).or_default();
            let targets = module.source.paths.iter().filter(|path| path.len() > 1);
            imported.extend(
                targets
                    .filter_map(|target| self.resolve(path, target, MAX_REEXPORTS))
                    .map(|target| node(&target))
                    .filter(|to| *to != from),
            );
        }
        graph
    }

    /// The module that defines what `path` means in `module`; `None` for other crates.
    fn resolve(&self, module: &[String], path: &[String], fuel: usize) -> Option<Path> {
        let fuel = fuel.checked_sub(1)?;
        let (first, after) = path.split_first()?;
        let (mut base, mut rest) = match first.as_str() {
            "crate" => (Path::new(), after),
            "self" => (module.to_vec(), after),
            "super" => (module.to_vec(), path),
            _ if self.is_known(module, first) => (module.to_vec(), path),
            _ => return None,
        };
        while let Some((segment, after)) = rest.split_first() {
            if segment == "super" {
                base.pop();
            } else if self.modules.contains_key(&child(&base, segment)) {
                base.push(segment.clone());
            } else if base.is_empty()
                && let Some(path) = self.exported_macro(segment)
            {
                return Some(path.clone());
            } else {
                // Defined here, unless a `use` item brings it from another module or crate.
                return match self.import(&base, segment) {
                    Some(import) if import != path => {
                        self.resolve(&base, &[import, after].concat(), fuel)
                    }
                    _ => Some(base),
                };
            }
            rest = after;
        }
        Some(base)
    }

    /// Exported macros belong to the root of a crate, wherever they are defined.
    fn exported_macro(&self, name: &String) -> Option<&Path> {
        let mut modules = self.modules.iter();
        let defines = |module: &Module| module.source.macros.contains(name);
        modules
            .find(|(_, module)| defines(module))
            .map(|(path, _)| path)
    }

    fn is_known(&self, module: &[String], name: &str) -> bool {
        self.modules.contains_key(&child(module, name)) || self.import(module, name).is_some()
    }

    fn import(&self, module: &[String], name: &str) -> Option<&[String]> {
        let imports = &self.modules.get(module)?.source.imports;
        let (_, path) = imports.iter().find(|(imported, _)| imported == name)?;
        Some(path)
    }
}

fn child(module: &[String], name: &str) -> Path {
    let mut path = module.to_vec();
    path.push(name.to_owned());
    path
}

/// `tasks/store.rs` is `["tasks", "store"]`, `tasks/mod.rs` is `["tasks"]`, and `lib.rs` is the root.
fn module_path(file: &str) -> Path {
    let mut path: Path = file
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if matches!(file, "lib.rs" | "main.rs") || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

fn list_sources(folder: &FilePath, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list_sources(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(files: &[(&str, &str)]) -> Package {
        let files: Vec<_> = files
            .iter()
            .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()))
            .collect();
        Package::parse(&files).unwrap()
    }

    fn imported(graph: &Graph, node: &str) -> Vec<String> {
        graph.get(node).unwrap().iter().cloned().collect()
    }

    #[test]
    fn a_reexport_counts_as_the_file_that_defines_the_item() {
        let files = package(&[
            ("lib.rs", "mod error; mod tasks; pub use error::Error;"),
            ("error.rs", "pub struct Error;"),
            ("tasks/mod.rs", "mod store; use crate::Error;"),
            ("tasks/store.rs", "use super::Error; use crate::tasks;"),
        ])
        .files();
        assert_eq!(imported(&files, "lib.rs"), ["error.rs"]);
        assert_eq!(imported(&files, "tasks/mod.rs"), ["error.rs"]);
        assert_eq!(
            imported(&files, "tasks/store.rs"),
            ["error.rs", "tasks/mod.rs"]
        );
    }

    #[test]
    fn a_module_that_is_imported_by_name_leads_to_the_file_behind_it() {
        let files = package(&[
            ("main.rs", "mod a; mod b;"),
            (
                "a.rs",
                "use crate::b; fn f() { b::c::g(); std::mem::drop(1) }",
            ),
            ("b/mod.rs", "pub mod c;"),
            ("b/c.rs", "fn g() { super::super::a::f() }"),
        ]);
        assert_eq!(imported(&files.files(), "a.rs"), ["b/c.rs", "b/mod.rs"]);
        assert_eq!(imported(&files.files(), "b/c.rs"), ["a.rs"]);
        assert_eq!(imported(&files.modules(), "b"), ["a"]);
    }

    #[test]
    fn an_exported_macro_counts_as_the_file_that_defines_it() {
        let files = package(&[
            ("lib.rs", "mod a; mod output;"),
            ("output.rs", "macro_rules! outln { () => {} }"),
            ("a.rs", "use crate::outln;"),
        ])
        .files();
        assert_eq!(imported(&files, "a.rs"), ["output.rs"]);
    }

    #[test]
    fn files_of_tests_and_other_binaries_are_left_out() {
        let files = package(&[
            ("lib.rs", "#[cfg(test)] mod fixture; mod a;"),
            ("fixture.rs", "use crate::a;"),
            ("a.rs", "#[cfg(test)] use crate::fixture;"),
            ("main.rs", "use a::b;"),
            ("bin/worker.rs", "use a::b;"),
        ])
        .files();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a.rs", "lib.rs"]);
        assert!(imported(&files, "a.rs").is_empty());
    }
}
