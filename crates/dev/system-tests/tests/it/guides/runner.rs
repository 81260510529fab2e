//! Runs the blocks of one language of a page as one program, and compares what they print with what the page shows.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::page::{Block, blocks};

/// Printed after each block.
const SEPARATOR: char = '\u{1e}';
/// Stands for any text in the output that a page shows.
const ANYTHING: char = '…';
/// In seconds. A run takes a few.
const TIME_LIMIT: &str = "120";

/// A language whose blocks are run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Language {
    Shell,
    Python,
    JavaScript,
}

impl Language {
    /// The first word after the fences of its blocks.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Shell => "sh",
            Self::Python => "python",
            Self::JavaScript => "js",
        }
    }

    /// What runs it, and what its blocks use.
    pub(super) fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Shell => &["bash", "curl", "jq"],
            Self::Python => &["python3"],
            Self::JavaScript => &["node"],
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Shell => "program.sh",
            Self::Python => "program.py",
            Self::JavaScript => "program.mjs",
        }
    }

    fn start(self) -> &'static str {
        match self {
            // With `pipefail`, a failed call fails the block although `jq` follows.
            Self::Shell => "set -euo pipefail\n",
            Self::Python | Self::JavaScript => "",
        }
    }

    fn separator(self) -> &'static str {
        match self {
            Self::Shell => "printf '\\036'\n",
            Self::Python => "print('\\x1e', end='', flush=True)\n",
            Self::JavaScript => "process.stdout.write('\\x1e');\n",
        }
    }
}

/// Whether the tools are installed. Prints the first that is missing.
pub(super) fn installed(tools: &[&str]) -> bool {
    let missing = tools.iter().find(|tool| {
        let found = Command::new(tool)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        found.is_err()
    });
    if let Some(missing) = missing {
        let _ = writeln!(io::stderr(), "skipped: {missing} is not installed");
    }
    missing.is_none()
}

/// A program that is stopped after a while.
pub(super) fn bounded(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", TIME_LIMIT, program]);
    command
}

/// Runs the blocks of `docs/NAME.md` in a folder, with `replaced` texts and an environment. Fails if one of them
/// fails or prints something else than the page shows.
pub(super) fn run(
    name: &str,
    language: Language,
    folder: &Path,
    replaced: &[(&str, &str)],
    environment: &[(&str, &str)],
) {
    let blocks = blocks(name).into_iter();
    let blocks = blocks.filter(|block| block.is_run && block.language == language.name());
    let blocks: Vec<_> = blocks.collect();
    assert!(!blocks.is_empty(), "{name} has no blocks of {language:?}");
    std::fs::write(
        folder.join(language.file()),
        source(&blocks, language, replaced),
    )
    .unwrap();
    let [program, ..] = language.tools() else {
        unreachable!()
    };
    let output = bounded(program)
        .arg(language.file())
        .current_dir(folder)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed: Vec<_> = printed.split(SEPARATOR).collect();
    for (index, block) in blocks.iter().enumerate() {
        let printed = printed.get(index).copied().unwrap_or_default();
        assert!(
            index + 1 < printed_blocks(&output.stdout),
            "docs/{name}.md: this block failed ({}):\n{}\n{printed}\n{errors}",
            output.status,
            block.text
        );
        compare(name, block, printed);
    }
    assert!(output.status.success(), "{}: {errors}", output.status);
}

/// The number of texts between separators.
fn printed_blocks(output: &[u8]) -> usize {
    output.split(|byte| *byte == 0x1e).count()
}

fn source(blocks: &[Block], language: Language, replaced: &[(&str, &str)]) -> String {
    let mut source = language.start().to_owned();
    for block in blocks {
        let mut text = block.text.clone();
        for (from, to) in replaced {
            text = text.replace(from, to);
        }
        source += &text;
        source += language.separator();
    }
    source
}

fn compare(name: &str, block: &Block, printed: &str) {
    if let Some(expected) = &block.output {
        assert!(
            matches(expected, printed),
            "docs/{name}.md: this block\n{}\nprinted\n{printed}\nand not\n{expected}",
            block.text
        );
    }
}

/// Whether a text is as a page shows it, but for whitespace and what `…` stands for.
fn matches(expected: &str, text: &str) -> bool {
    let dense = |text: &str| -> String { text.split_whitespace().collect() };
    let (expected, text) = (dense(expected), dense(text));
    let mut parts = expected.split(ANYTHING);
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn an_ellipsis_stands_for_any_text() {
    for (expected, text, same) in [
        ("{ \"id\": \"…\" }", "{\"id\":\"42\"}", true),
        ("a … c", "a b c\n", true),
        ("a…c…e", "abcde", true),
        ("a…c…e", "abde", false),
        ("a…", "b", false),
        ("…c", "cb", false),
        ("a", "ab", false),
        ("a", "a", true),
    ] {
        assert_eq!(matches(expected, text), same, "{expected} and {text}");
    }
}
