/// A `LIKE` pattern that matches any text that contains `text` literally, with the default escape character.
/// It is case-sensitive: lower both sides to ignore case.
pub fn substring_pattern(text: &str) -> String {
    let text = text.replace('\\', r"\\").replace('%', r"\%");
    format!("%{}%", text.replace('_', r"\_"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::substring_pattern;

    /// `LIKE` as Postgres documents it.
    fn like(text: &[char], pattern: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|skip| like(&text[skip..], rest)),
            ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
            ['\\', literal, rest @ ..] | [literal, rest @ ..] => {
                text.first() == Some(literal) && like(&text[1..], rest)
            }
        }
    }

    proptest! {
        #[test]
        fn it_matches_exactly_the_texts_that_contain_the_text(
            text in "[a%_\\\\]{0,8}",
            part in "[a%_\\\\]{0,3}",
        ) {
            let characters: Vec<_> = text.chars().collect();
            let pattern: Vec<_> = substring_pattern(&part).chars().collect();
            prop_assert_eq!(like(&characters, &pattern), text.contains(&part));
        }
    }
}
