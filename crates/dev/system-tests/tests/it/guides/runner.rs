//! Runs the blocks of one language of a page as one program, and compares what they print with what the page shows.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::page::{Block, blocks, root};

/// Printed after each block.
const SEPARATOR: char = '\u{1e}';
/// Stands for any text in the output that a page shows.
const ANYTHING: char = '…';
/// In seconds. A run takes a few.
const TIME_LIMIT: &str = "120";
/// Installs the clients that the blocks of Python and JavaScript use.
const INSTALL_CLIENTS: &str = "clients/engines-test/run --install-only python js";

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

    /// Whether what its blocks use is installed. Prints what is missing.
    pub(super) fn is_installed(self) -> bool {
        let programs: &[&str] = match self {
            Self::Shell => &["bash", "curl", "jq"],
            Self::Python => &[],
            Self::JavaScript => &["node"],
        };
        if !installed(programs) {
            return false;
        }
        let has_client = self.has_client();
        if !has_client {
            let _ = writeln!(
                io::stderr(),
                "skipped: the client of {self:?} is not installed: run {INSTALL_CLIENTS}"
            );
        }
        has_client
    }

    /// Whether the client is installed that its blocks use.
    fn has_client(self) -> bool {
        match self {
            Self::Shell => true,
            Self::Python => {
                let mut import = Command::new(self.program());
                import.args(["-c", "import countersign_client"]);
                import.stdout(Stdio::null()).stderr(Stdio::null());
                import.status().is_ok_and(|status| status.success())
            }
            Self::JavaScript => javascript_client().join("dist/index.js").exists(),
        }
    }

    /// What runs it.
    fn program(self) -> PathBuf {
        match self {
            Self::Shell => "bash".into(),
            // The environment that has the client.
            Self::Python => root().join(".local/engines/python/bin/python"),
            Self::JavaScript => "node".into(),
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
pub(super) fn bounded(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", TIME_LIMIT]).arg(program);
    command
}

/// The package of JavaScript's client, which is built.
fn javascript_client() -> PathBuf {
    root().join("clients/js")
}

/// Lets the modules of a folder import the client. Modules are found in the folders above a program.
fn link_javascript_client(folder: &Path) {
    let scope = folder.join("node_modules/@countersign");
    fs::create_dir_all(&scope).unwrap();
    symlink(javascript_client(), scope.join("client")).unwrap();
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
    let source = source(&blocks, language, replaced);
    fs::write(folder.join(language.file()), source).unwrap();
    if matches!(language, Language::JavaScript) {
        link_javascript_client(folder);
    }
    let output = bounded(language.program())
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
