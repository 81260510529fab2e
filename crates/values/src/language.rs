use crate::Names as _;

crate::names! {
    /// A language of mails and pages, by its tag (RFC 5646).
    pub enum Language {
        /// English.
        English = "en",
        /// German.
        German = "de",
    }
}

impl Language {
    /// The first language of an `Accept-Language` header that is known.
    pub fn preferred(accepted: &str) -> Option<Self> {
        let tags = accepted
            .split(',')
            .filter_map(|range| range.split([';', '-']).next());
        tags.map(str::trim).find_map(Self::from_name)
    }
}

#[cfg(test)]
mod tests {
    use super::Language;

    #[test]
    fn the_preferred_language_is_the_first_known_one() {
        for (accepted, language) in [
            ("de", Some(Language::German)),
            ("de-AT,de;q=0.9,en;q=0.8", Some(Language::German)),
            ("fr, en-GB;q=0.5", Some(Language::English)),
            ("fr", None),
            ("", None),
        ] {
            assert_eq!(Language::preferred(accepted), language, "{accepted}");
        }
    }
}
