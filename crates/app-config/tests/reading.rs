//! Settings that are missing, wrong, or come from a file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use app_config::{Csv, Error, Networks, Reader, Settings, describe};
use url::Url;
use values::Secret;

#[derive(Debug)]
struct Example {
    upstream: Url,
    pause: Duration,
    schedule: Csv<Duration>,
    cost: u32,
    key: Secret,
    networks: Networks,
    vendor: Option<String>,
}

impl Settings for Example {
    fn read(reader: &mut Reader) -> Result<Self, Error> {
        Ok(Self {
            upstream: reader.required("UPSTREAM_URL", "where requests go.")?,
            pause: reader.or_default("PAUSE", "5s", "Time between two attempts.")?,
            schedule: reader.or_default("SCHEDULE", "5s,30s,2m", "Pauses.")?,
            cost: reader.in_range(
                "COST",
                "12",
                "a whole number from 4 to 31",
                |cost| (4..=31).contains(cost),
                "Cost.",
            )?,
            key: reader.required("KEY", "the key.")?,
            networks: reader.or_default("NETWORKS", "", "Networks.")?,
            vendor: reader.renamed_from("BRAND").optional("VENDOR", "Vendor.")?,
        })
    }
}

fn read(pairs: &[(&str, &str)]) -> Result<Example, Error> {
    Example::read(&mut Reader::from_pairs(pairs.iter().copied()).unwrap())
}

const COMPLETE: [(&str, &str); 2] = [("UPSTREAM_URL", "http://127.0.0.1:1"), ("KEY", "k3y")];

fn with(pair: (&'static str, &'static str)) -> Result<Example, Error> {
    read(&[COMPLETE[0], COMPLETE[1], pair])
}

#[test]
fn defaults_apply_to_settings_that_are_not_set() {
    let example = read(&COMPLETE).unwrap();
    assert_eq!(example.upstream.as_str(), "http://127.0.0.1:1/");
    assert_eq!(example.pause, Duration::from_secs(5));
    assert_eq!(example.schedule.0.len(), 3);
    assert_eq!(example.cost, 12);
    assert_eq!(example.key.expose(), "k3y");
    assert!(example.networks.0.is_empty());
    assert!(example.vendor.is_none());
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    assert!(with(("VENDOR", "")).unwrap().vendor.is_none());
}

#[test]
fn a_missing_setting_is_named_with_what_is_allowed() {
    let message = read(&[]).unwrap_err().to_string();
    assert_eq!(
        message,
        "UPSTREAM_URL is not set. Set it to a URL that starts with http:// or https://. It is where requests go."
    );
}

#[test]
fn an_invalid_value_is_shown_with_what_is_allowed() {
    let message = with(("PAUSE", "5 parsecs")).unwrap_err().to_string();
    assert!(message.starts_with("PAUSE is \"5 parsecs\""), "{message}");
    assert!(message.contains("`500ms`"), "{message}");
    let message = with(("COST", "3")).unwrap_err().to_string();
    assert!(message.contains("from 4 to 31"), "{message}");
    let message = with(("NETWORKS", "10.0.0.0/8,loopback"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("loopback"), "{message}");
    assert!(with(("UPSTREAM_URL", "ftp://host")).is_err());
}

#[test]
fn a_list_without_an_entry_is_refused_and_not_taken_for_an_unset_variable() {
    for (name, text) in [("SCHEDULE", ","), ("SCHEDULE", " "), ("NETWORKS", " , ,")] {
        let error = with((name, text)).unwrap_err().to_string();
        let expected =
            format!("{name} is {text:?}, which is not allowed: the list has no entry. Set it to ");
        assert!(error.starts_with(&expected), "{error}");
    }
    let schedule = with(("SCHEDULE", "5s,,")).unwrap().schedule;
    assert_eq!(schedule.0, [Duration::from_secs(5)]);
    assert_eq!(with(("SCHEDULE", "none")).unwrap().schedule.0, []);
    assert!(with(("SCHEDULE", "none,5s")).is_err());
}

#[test]
fn a_secret_can_come_from_a_file_and_is_never_shown() {
    let path = std::env::temp_dir().join(format!("settings-test-{}", std::process::id()));
    std::fs::write(&path, "from-file\n").unwrap();
    let path_text = path.to_str().unwrap();
    let example = read(&[COMPLETE[0], ("KEY_FILE", path_text)]).unwrap();
    assert_eq!(example.key.expose(), "from-file");
    assert!(!format!("{example:?}").contains("from-file"));

    std::fs::write(path_text, "\u{feff}marked\r\n").unwrap();
    let marked = read(&[COMPLETE[0], ("KEY_FILE", path_text)]).unwrap();
    assert_eq!(marked.key.expose(), "marked");
    let twice = read(&[COMPLETE[0], COMPLETE[1], ("KEY_FILE", path_text)]);
    assert!(matches!(twice, Err(Error::GivenTwice { name: "KEY" })));
    std::fs::remove_file(&path).unwrap();
    let gone = read(&[COMPLETE[0], ("KEY_FILE", path_text)]).unwrap_err();
    assert!(gone.to_string().starts_with("KEY_FILE names"), "{gone}");
}

#[test]
fn an_empty_secret_file_counts_as_not_set() {
    let path = std::env::temp_dir().join(format!("settings-test-empty-{}", std::process::id()));
    std::fs::write(&path, "\n").unwrap();
    let file = ("KEY_FILE", path.to_str().unwrap());
    let missing = read(&[COMPLETE[0], file]);
    let direct = read(&[COMPLETE[0], COMPLETE[1], file]).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(missing, Err(Error::Missing { name: "KEY", .. })));
    assert_eq!(direct.key.expose(), COMPLETE[1].1);
}

#[test]
fn networks_contain_ipv4_mapped_addresses() {
    let networks = with(("NETWORKS", "10.0.0.0/8")).unwrap().networks;
    assert!(networks.contains("::ffff:10.1.2.3".parse().unwrap()));
    assert!(!networks.contains("11.0.0.1".parse().unwrap()));
}

#[test]
fn an_address_alone_is_a_network() {
    let networks = with(("NETWORKS", "127.0.0.1, ::1,::ffff:10.1.2.3")).unwrap();
    let networks = networks.networks;
    for (address, is_in) in [
        ("127.0.0.1", true),
        ("127.0.0.2", false),
        ("::1", true),
        ("::2", false),
        ("10.1.2.3", true),
    ] {
        assert_eq!(
            networks.contains(address.parse().unwrap()),
            is_in,
            "{address}"
        );
    }
}

/// Reads the complete settings and these; the vendor and the warnings.
fn vendor(pairs: &[(&str, &str)]) -> (Option<String>, Vec<String>) {
    let pairs = COMPLETE.iter().chain(pairs).copied();
    let mut reader = Reader::from_pairs(pairs).unwrap();
    let example = Example::read(&mut reader).unwrap();
    (example.vendor, reader.warnings().to_vec())
}

#[test]
fn the_old_name_of_a_setting_is_accepted_with_a_warning() {
    let (vendor, warnings) = vendor(&[("BRAND", "acme")]);
    assert_eq!(vendor.as_deref(), Some("acme"));
    assert_eq!(
        warnings,
        ["BRAND is now VENDOR. Rename it: the next release ignores it."]
    );
}

#[test]
fn the_new_name_of_a_setting_wins_over_the_old_one() {
    let (vendor, warnings) = vendor(&[("BRAND", "acme"), ("VENDOR", "ajax")]);
    assert_eq!(vendor.as_deref(), Some("ajax"));
    assert_eq!(
        warnings,
        ["BRAND is ignored because VENDOR is set. Remove it."]
    );
}

#[test]
fn the_new_name_of_a_setting_gives_no_warning() {
    let (vendor, warnings) = vendor(&[("VENDOR", "ajax")]);
    assert_eq!(vendor.as_deref(), Some("ajax"));
    assert!(warnings.is_empty());
}

#[test]
fn the_description_names_the_old_name() {
    let described = describe::<Example>().unwrap();
    let old_name = |name| described.iter().find(|d| d.name == name).unwrap().old_name;
    assert_eq!(old_name("VENDOR"), Some("BRAND"));
    assert_eq!(old_name("COST"), None);
}

#[test]
fn every_setting_can_be_described_without_a_value() {
    let names: Vec<_> = describe::<Example>()
        .unwrap()
        .iter()
        .map(|d| d.name)
        .collect();
    assert_eq!(
        names,
        [
            "UPSTREAM_URL",
            "PAUSE",
            "SCHEDULE",
            "COST",
            "KEY",
            "NETWORKS",
            "VENDOR"
        ]
    );
}
