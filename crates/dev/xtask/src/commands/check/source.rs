//! Reads which paths a source file names, and what its `use` items bring into scope.
//!
//! The reader works on tokens, so it also sees paths inside macros and attributes. Tests are skipped:
//! whatever follows `#[cfg(test)]` does not count.

use anyhow::Context;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The segments of a path, such as `["crate", "tasks", "store"]`.
pub(super) type Path = Vec<String>;

/// The names in one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// `use` items outside inline modules: the name in scope and the path that it stands for.
    pub(super) imports: Vec<(String, Path)>,
    /// All paths, those of `use` items included, relative to the file's module.
    pub(super) paths: Vec<Path>,
    /// Modules declared as `#[cfg(test)] mod name;`.
    pub(super) test_modules: Vec<String>,
    /// Macros by `macro_rules!`.
    pub(super) macros: Vec<String>,
}

impl Source {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let tokens: TokenStream = text
            .parse()
            .map_err(|error| anyhow::anyhow!("{error}"))
            .context("reading the tokens")?;
        let mut source = Self::default();
        source.read(tokens, 0);
        Ok(source)
    }

    /// `depth` counts the inline modules around `tokens`.
    fn read(&mut self, tokens: TokenStream, depth: usize) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let Some((first, after)) = rest.split_first() {
            rest = match (first, after) {
                (TokenTree::Punct(hash), [TokenTree::Group(attribute), item @ ..])
                    if hash.as_char() == '#' =>
                {
                    self.read_attribute(attribute, item, depth)
                }
                (
                    TokenTree::Ident(word),
                    [TokenTree::Ident(_), TokenTree::Group(body), item @ ..],
                ) if word == "mod" => {
                    self.read(body.stream(), depth + 1);
                    item
                }
                // A visibility such as `pub(in crate::tasks)` imports nothing.
                (TokenTree::Ident(word), [TokenTree::Group(scope), item @ ..])
                    if word == "pub" && scope.stream().to_string().starts_with("in ") =>
                {
                    item
                }
                (TokenTree::Ident(word), [_, TokenTree::Ident(name), item @ ..])
                    if word == "macro_rules" =>
                {
                    self.macros.push(name.to_string());
                    item
                }
                (TokenTree::Ident(word), _) if word == "use" => self.read_use(after, depth),
                (TokenTree::Ident(_), _) => self.read_path(rest, depth),
                (TokenTree::Group(group), _) => {
                    self.read(group.stream(), depth);
                    after
                }
                _ => after,
            };
        }
    }

    /// Returns what follows the attribute, without `item` if that is a test. An attribute counts as naming the
    /// crate or macro that it starts with: `#[diesel(…)]` names `diesel`.
    fn read_attribute<'a>(
        &mut self,
        attribute: &Group,
        item: &'a [TokenTree],
        depth: usize,
    ) -> &'a [TokenTree] {
        if is_cfg_test(attribute) {
            return self.skip_item(item);
        }
        if let Some(TokenTree::Ident(name)) = attribute.stream().into_iter().next() {
            self.paths.push(vec![name.to_string()]);
        }
        self.read(attribute.stream(), depth);
        item
    }

    /// Returns what follows the item that `tokens` start with.
    fn skip_item<'a>(&mut self, tokens: &'a [TokenTree]) -> &'a [TokenTree] {
        let end = tokens.iter().position(|token| {
            is_punct(token, ';')
                || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
        });
        let (item, rest) = tokens.split_at(end.map_or(tokens.len(), |end| end + 1));
        if let [
            ..,
            TokenTree::Ident(word),
            TokenTree::Ident(name),
            TokenTree::Punct(_),
        ] = item
            && word == "mod"
        {
            self.test_modules.push(name.to_string());
        }
        rest
    }

    /// Reads a path of two or more segments; returns what follows it.
    fn read_path<'a>(&mut self, tokens: &'a [TokenTree], depth: usize) -> &'a [TokenTree] {
        let (path, rest) = leading_path(tokens);
        if path.len() > 1 {
            self.add_path(path, depth);
        }
        rest
    }

    /// Reads what follows `use` up to the semicolon. Returns the rest.
    fn read_use<'a>(&mut self, tokens: &'a [TokenTree], depth: usize) -> &'a [TokenTree] {
        let end = tokens.iter().position(|token| is_punct(token, ';'));
        let (tree, rest) = tokens.split_at(end.unwrap_or(tokens.len()));
        self.read_use_tree(tree, &[], depth);
        rest
    }

    fn read_use_tree(&mut self, tree: &[TokenTree], prefix: &[String], depth: usize) {
        let (path, rest) = leading_path(tree);
        let mut path = [prefix, &path].concat();
        match rest {
            [.., TokenTree::Group(branches)] => {
                let branches: Vec<TokenTree> = branches.stream().into_iter().collect();
                for branch in branches.split(|token| is_punct(token, ',')) {
                    self.read_use_tree(branch, &path, depth);
                }
            }
            _ => {
                if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let name = match rest {
                    [.., TokenTree::Ident(alias)] => Some(alias.to_string()),
                    [.., TokenTree::Punct(_)] => None,
                    _ => path.last().cloned(),
                };
                if path.is_empty() {
                    return;
                }
                if let (Some(name), 0) = (name, depth) {
                    self.imports.push((name, path.clone()));
                }
                self.add_path(path, depth);
            }
        }
    }

    /// Paths inside an inline module that do not leave it are of no interest.
    fn add_path(&mut self, path: Path, depth: usize) {
        let supers = path
            .iter()
            .take_while(|segment| *segment == "super")
            .count();
        if supers > 0 && supers <= depth {
            return;
        }
        self.paths
            .push(path.into_iter().skip(depth.min(supers)).collect());
    }
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn is_cfg_test(attribute: &Group) -> bool {
    let text = attribute.stream().to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// The identifiers joined by `::` at the start of `tokens`, and what follows them.
fn leading_path(mut tokens: &[TokenTree]) -> (Path, &[TokenTree]) {
    let mut path = Path::new();
    loop {
        tokens = match tokens {
            [TokenTree::Ident(name), rest @ ..] => {
                path.push(name.to_string());
                rest
            }
            _ => return (path, tokens),
        };
        tokens = match tokens {
            [first, second, rest @ ..] if is_punct(first, ':') && is_punct(second, ':') => rest,
            _ => return (path, tokens),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let source = Source::parse(text).unwrap();
        source.paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn nested_use_items_are_taken_apart() {
        let text = "pub use crate::{a::{self, B as C}, d::*}; use e;";
        assert_eq!(paths(text), ["crate::a", "crate::a::B", "crate::d", "e"]);
        let imports = Source::parse(text).unwrap().imports;
        let names: Vec<&str> = imports.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "C", "e"]);
    }

    #[test]
    fn inline_paths_are_found_in_functions_macros_and_attributes() {
        let text =
            "#[openapi(paths(crate::a::b))] fn f(x: super::X) { assert!(c::d::<E>() == 1); }";
        assert_eq!(paths(text), ["openapi", "crate::a::b", "super::X", "c::d"]);
    }

    #[test]
    fn visibilities_are_not_imports() {
        assert_eq!(paths("pub(in crate::a) struct X(b::C);"), ["b::C"]);
    }

    #[test]
    fn macros_are_listed() {
        let source = Source::parse("macro_rules! m { () => { $crate::a::b() } }").unwrap();
        assert_eq!(source.macros, ["m"]);
        assert_eq!(source.paths, [["crate", "a", "b"]]);
    }

    #[test]
    fn tests_are_skipped() {
        let text = "#[cfg(test)] mod t; #[cfg(test)] mod u { use a::b; } fn f() { c::d() }";
        assert_eq!(paths(text), ["c::d"]);
        assert_eq!(Source::parse(text).unwrap().test_modules, ["t"]);
    }

    #[test]
    fn super_of_an_inline_module_is_the_file() {
        let text = "mod inner { use super::X; use super::super::Y; use crate::Z; }";
        assert_eq!(paths(text), ["super::Y", "crate::Z"]);
    }
}
