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
    /// The language of an `Accept-Language` header that is wanted most of those that are known, and of equals the first.
    pub fn preferred(accepted: &str) -> Option<Self> {
        let accepted = accepted.to_ascii_lowercase();
        let known = accepted.split(',').filter_map(|range| {
            let language = Self::from_name(range.split([';', '-']).next()?.trim())?;
            let quality = range.split_once("q=").map_or("1", |(_, value)| value);
            Some((language, quality.trim().parse::<f32>().ok()?))
        });
        let wanted = known.filter(|(_, quality)| *quality > 0.0);
        let most = wanted.min_by(|(_, one), (_, other)| other.total_cmp(one));
        most.map(|(language, _)| language)
    }
}

#[cfg(test)]
mod tests {
    use super::Language;

    #[test]
    fn the_preferred_language_is_the_known_one_that_is_wanted_most() {
        for (accepted, language) in [
            ("de", Some(Language::German)),
            ("de-AT,de;q=0.9,en;q=0.8", Some(Language::German)),
            ("fr, en-GB;q=0.5", Some(Language::English)),
            ("en;q=0.5, DE-at;Q=0.9", Some(Language::German)),
            ("en, de", Some(Language::English)),
            ("de; q=0, en;q=0.1", Some(Language::English)),
            ("de;q=0.0", None),
            ("de;q=much, fr", None),
            ("fr", None),
            ("", None),
        ] {
            assert_eq!(Language::preferred(accepted), language, "{accepted}");
        }
    }
}
