//! Texts of unknown authors, made safe to show in a mail.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// The beginning of a text as one line: without control characters, line breaks, and marks that change the direction of
/// what follows.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let is_mark = |c: char| matches!(c, '\u{061c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    let line: String = words.join(" ").chars().filter(|c| !is_mark(*c)).collect();
    shorten(&line, max)
}

/// The beginning of a Markdown text as plain text, with its paragraphs as lines, and what links refer to after them. What
/// looks like HTML stays as it was written, because `<words>` in angle brackets are seldom meant as HTML.
pub(super) fn excerpt(markdown: &str, max: usize) -> String {
    let parser = Parser::new(markdown);
    let definitions = parser.reference_definitions().iter();
    let mut definitions: Vec<_> = definitions.map(|(_, one)| one.span.clone()).collect();
    definitions.sort_by_key(|span| span.start);
    let mut text = String::new();
    for event in parser {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(words))) => {
                text.extend(["\n", &*words, "\n"]);
            }
            Event::Text(part) | Event::Code(part) | Event::Html(part) | Event::InlineHtml(part) => {
                text.push_str(&part);
            }
            Event::Start(Tag::Item) => text.push_str("\n- "),
            Event::SoftBreak => text.push(' '),
            Event::HardBreak => text.push('\n'),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::CodeBlock
                | TagEnd::HtmlBlock,
            ) => text.push('\n'),
            _ => {}
        }
    }
    for span in definitions {
        text.extend([markdown.get(span).unwrap_or_default(), "\n"]);
    }
    let lines = text.lines().map(|line| one_line(line, usize::MAX));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    shorten(&lines.join("\n"), max)
}

/// At most `max` characters; a shortened text ends with an ellipsis.
fn shorten(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::{excerpt, one_line};

    #[test]
    fn a_line_has_no_breaks_no_marks_and_no_more_than_its_length() {
        for (text, line) in [
            ("Buy a printer", "Buy a printer"),
            ("a\r\nBcc: eve@example.com\n\nb", "a Bcc: eve@example.com b"),
            ("a\u{2028}b\u{85}c\0d", "a b c d"),
            ("\u{202e}txt.exe\u{202c}", "txt.exe"),
            ("0123456789ab", "012345678…"),
            ("ääääääääääää", "äääääääää…"),
        ] {
            assert_eq!(one_line(text, 10.max(line.chars().count())), line);
        }
    }

    #[test]
    fn an_excerpt_is_plain_text() {
        let markdown = "# Why\n\nThe **first** one\njams, [see](https://example.com).\n\n- a\n- `b`\n\n<script>x</script>";
        assert_eq!(
            excerpt(markdown, 100),
            "Why\nThe first one jams, see.\n- a\n- b\n<script>x</script>"
        );
        assert_eq!(excerpt("one two three", 8), "one two…");
        for (markdown, text) in [
            (
                "Use <your name> and <b>bold</b>.",
                "Use <your name> and <b>bold</b>.",
            ),
            ("<p>\na <i>b</i>\n</p>\n\nc", "<p>\na <i>b</i>\n</p>\nc"),
            ("<!-- a\n\nb -->\n\nc", "<!-- a\nb -->\nc"),
            (
                "- <img src=x>\n- <a href=\"u\">v</a>",
                "- <img src=x>\n- <a href=\"u\">v</a>",
            ),
            (
                "x < y > z, a<b, &lt;c&gt;, `<d>`, \\<e>",
                "x < y > z, a<b, <c>, <d>, <e>",
            ),
            ("<style>\nf\n\ng</style>", "<style>\nf\ng</style>"),
            (
                "Lunch\n\n```and a laptop\n12\n```\n\nTea",
                "Lunch\nand a laptop\n12\nTea",
            ),
            (
                "[a]: /x \"and a laptop\"\n\n[Lunch][b]\n\n[b]: /y",
                "Lunch\n[a]: /x \"and a laptop\"\n[b]: /y",
            ),
        ] {
            assert_eq!(excerpt(markdown, 100), text, "{markdown}");
        }
    }
}
