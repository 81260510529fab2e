//! The fenced blocks of a page.

use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// The comment before a block that no test runs, with the reason.
const NOT_RUN: &str = "<!-- not run: ";
/// The second word of a block that shows what the block before it prints.
const OUTPUT: &str = "output";

/// A fenced block.
pub(super) struct Block {
    /// The first word after the fence.
    pub(super) language: String,
    /// What is between the fences.
    pub(super) text: String,
    /// Whether a comment says why it is not run.
    pub(super) is_run: bool,
    /// What it prints, as the page shows it.
    pub(super) output: Option<String>,
}

/// The folder of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Reads the blocks of `docs/NAME.md`, in order.
pub(super) fn blocks(name: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(format!("docs/{name}.md"))).unwrap();
    parse(&text)
}

/// The text of the blocks of one language, without those that are not run.
pub(super) fn program(name: &str, language: &str) -> String {
    let blocks = blocks(name).into_iter();
    let blocks = blocks.filter(|block| block.is_run && block.language == language);
    blocks.map(|block| block.text).collect()
}

fn parse(text: &str) -> Vec<Block> {
    let (mut blocks, mut words, mut code) = (Vec::new(), None, String::new());
    let mut is_run = true;
    for event in Parser::new(text) {
        match event {
            Event::Html(html) => is_run = !html.starts_with(NOT_RUN),
            Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => {}
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => words = Some(info),
            Event::Text(part) if words.is_some() => code.push_str(&part),
            Event::End(TagEnd::CodeBlock) => {
                if let Some(info) = words.take() {
                    add(&mut blocks, &info, std::mem::take(&mut code), is_run);
                }
                is_run = true;
            }
            _ => is_run = true,
        }
    }
    blocks
}

fn add(blocks: &mut Vec<Block>, info: &str, text: String, is_run: bool) {
    let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
    if rest == OUTPUT {
        let block = blocks.last_mut().expect("output needs a block before it");
        block.output = Some(text);
        return;
    }
    assert_eq!(rest, "", "a word after the language of a block");
    blocks.push(Block {
        language: language.to_owned(),
        text,
        is_run,
        output: None,
    });
}

#[test]
fn a_block_is_run_unless_a_comment_right_before_it_says_why_not() {
    let page = "<!-- not run: a reason -->\n```sh\na\n```\n\n```sh\nb\n```\n\n```json output\n1\n```\n\n\
                <!-- not run: a reason -->\n\ntext\n\n```sh\nc\n```\n";
    let blocks = parse(page);
    let read: Vec<_> = blocks
        .iter()
        .map(|block| (block.text.as_str(), block.is_run, block.output.as_deref()))
        .collect();
    assert_eq!(
        read,
        [
            ("a\n", false, None),
            ("b\n", true, Some("1\n")),
            ("c\n", true, None)
        ]
    );
}
