//! Links between the pages of the project lead to files and headings that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::guides::page::root;

/// Folders with pages of others.
const SKIPPED: [&str; 3] = ["target", "node_modules", ".git"];

#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

fn find_pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let is_hidden = name.starts_with('.') && name != ".github";
        if entry.file_type().unwrap().is_dir() {
            if !is_hidden && !SKIPPED.contains(&&*name) {
                find_pages(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path.canonicalize().unwrap());
        }
    }
}

fn read(text: &str) -> Page {
    let mut page = Page::default();
    let mut heading = None;
    let mut times = BTreeMap::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let before = times.entry(anchor.clone()).or_insert(0);
                page.anchors.insert(match before {
                    0 => anchor,
                    _ => format!("{anchor}-{before}"),
                });
                *before += 1;
            }
            _ => {}
        }
    }
    page
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Why a link leads nowhere.
fn broken(from: &Path, link: &str, pages: &BTreeMap<PathBuf, Page>) -> Option<&'static str> {
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => from.to_owned(),
        _ => match from.parent()?.join(path).canonicalize() {
            Ok(target) => target,
            Err(_) => return Some("there is no such file"),
        },
    };
    let page = pages.get(&target);
    let is_there = fragment.is_empty() || page.is_some_and(|page| page.anchors.contains(fragment));
    (!is_there).then_some("there is no such heading")
}

#[test]
fn links_between_pages_lead_to_files_and_headings_that_exist() {
    let mut found = Vec::new();
    find_pages(&root(), &mut found);
    let pages: BTreeMap<_, _> = found
        .into_iter()
        .map(|path| {
            let page = read(&fs::read_to_string(&path).unwrap());
            (path, page)
        })
        .collect();
    let (mut checked, mut problems) = (0, Vec::new());
    for (path, page) in &pages {
        let links = page.links.iter().filter(|link| !link.contains("://"));
        for link in links.filter(|link| !link.starts_with("mailto:")) {
            checked += 1;
            let problem = broken(path, link, &pages);
            problems.extend(problem.map(|why| format!("{}: {link}: {why}", path.display())));
        }
    }
    assert!(checked > 100, "only {checked} links were found");
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn headings_have_the_anchors_that_github_gives_them() {
    let page = read("# With `code`, and a comma\n\n## Twice\n\n## Twice\n\n[a](#b) [c](d.md)\n");
    let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
    assert_eq!(anchors, ["twice", "twice-1", "with-code-and-a-comma"]);
    assert_eq!(page.links, ["#b", "d.md"]);
}
