//! Modules must not import each other in a circle: neither those at the top of a package, each with all that is in it, nor
//! single files. A file may use the modules around it and in it.

use std::collections::BTreeSet;

use super::source::{Package, Segments};

/// Modules, each with one that it imports.
type Imports = BTreeSet<(Segments, Segments)>;

/// Returns a message for each import of the package in `folder` that is part of a circle, or between two.
pub(super) fn check(folder: &str, package: &Package) -> Vec<String> {
    let depths = [1, usize::MAX].into_iter();
    let mut circles = depths.map(|depth| circular(imports(package, depth)));
    let circular = circles.find(|circles| !circles.is_empty());
    let message = |(from, to): (Segments, Segments)| {
        let (from, to) = (from.join("/"), to.join("/"));
        format!("{folder}: {from} imports {to}, which leads back to it")
    };
    circular.into_iter().flatten().map(message).collect()
}

/// Removes imports by modules that none of the others imports, and of those that import none, until only circles are left.
fn circular(mut imports: Imports) -> Imports {
    loop {
        let (importing, imported): (BTreeSet<_>, BTreeSet<_>) = imports.iter().cloned().unzip();
        let before = imports.len();
        imports.retain(|(from, to)| imported.contains(from) && importing.contains(to));
        if imports.len() == before {
            return imports;
        }
    }
}

/// Which module imports which. Of their paths, `depth` segments count.
fn imports(package: &Package, depth: usize) -> Imports {
    let modules: BTreeSet<Segments> = package.keys().map(|file| module(file)).collect();
    let outer = |path: &Segments| path.iter().take(depth).cloned().collect::<Segments>();
    let mut imports = Imports::new();
    for (file, paths) in package {
        let full = module(file);
        let from = outer(&full);
        let targets = paths
            .iter()
            .filter_map(|path| resolve(&full, path, &modules));
        for to in targets.map(|to| outer(&to)) {
            if !from.starts_with(&to) && !to.starts_with(&from) {
                imports.insert((from.clone(), to));
            }
        }
    }
    imports
}

/// `tasks/store.rs` is `["tasks", "store"]`, `tasks/mod.rs` is `["tasks"]`, and `lib.rs` is the root.
fn module(file: &str) -> Segments {
    let name = file.trim_end_matches(".rs").trim_end_matches("/mod");
    match name {
        "lib" | "main" => Segments::new(),
        _ => name.split('/').map(str::to_owned).collect(),
    }
}

/// The module that `path` leads to in the module `from`. `None` for other crates.
fn resolve(from: &[String], path: &[String], modules: &BTreeSet<Segments>) -> Option<Segments> {
    let (first, rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Segments::new(),
        "super" => from.split_last()?.1.to_vec(),
        _ => return None,
    };
    for segment in rest {
        let mut next = base.clone();
        if segment == "super" {
            next.pop();
        } else {
            next.push(segment.clone());
            if !modules.contains(&next) {
                break;
            }
        }
        base = next;
    }
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source;

    fn errors(files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        check("it", &source::parse(files))
    }

    #[test]
    fn a_circle_of_files_is_an_error_at_every_depth() {
        let forth = ("x/a.rs", "use super::b::c::C;");
        let back = ("x/b/c.rs", "fn f() { crate::x::a::f() }");
        let top = ("x/mod.rs", "mod a; mod b; mod d;");
        let around = ("x/b/mod.rs", "mod c; use crate::x::d;");
        assert!(errors(&[forth, around, ("x/b/c.rs", ""), ("x/d.rs", "use super::a;")]).is_empty());
        let both = errors(&[forth, top, around, back]);
        let expected = [
            "it: x/a imports x/b/c, which leads back to it",
            "it: x/b/c imports x/a, which leads back to it",
        ];
        assert_eq!(both, expected);
    }

    #[test]
    fn folders_at_the_top_count_with_all_that_is_in_them() {
        let files = [
            ("a/b.rs", "use crate::c::d;"),
            ("c/d.rs", ""),
            ("c/mod.rs", ""),
            ("c/e.rs", "use crate::a;"),
            ("a/mod.rs", ""),
        ];
        assert_eq!(
            errors(&files),
            [
                "it: a imports c, which leads back to it",
                "it: c imports a, which leads back to it"
            ]
        );
    }

    #[test]
    fn a_module_may_use_what_is_around_it() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; use self::b::B;"),
            ("a/b.rs", "use super::A;"),
        ];
        assert!(errors(&files).is_empty());
    }
}
