//! `deploy/SETTINGS.md` is generated from the settings that the processes read.

use std::fmt::Write as _;
use std::path::PathBuf;

use app_config::Description;

use crate::harness::described_settings;

#[test]
fn the_settings_page_matches_the_code() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/SETTINGS.md");
    let page = page();
    if std::env::var_os("UPDATE_SETTINGS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "deploy/SETTINGS.md is out of date: run the tests with UPDATE_SETTINGS=1"
    );
}

fn page() -> String {
    let mut page = String::from(
        "# Settings\n\n\
        Every process reads its settings from the environment, over the TOML file that `CONFIG_FILE` names (the same names in lower case), over the defaults. \
        An empty variable counts as not set. A secret `X` can also come from the file that `X_FILE` names. \
        A wrong value stops the process with the variable's name, the value (unless it is a secret) and what is allowed.\n",
    );
    for (process, mut settings) in described_settings() {
        settings.sort();
        settings.dedup();
        let _ = write!(
            page,
            "\n## {process}\n\n| variable | default | allowed | purpose |\n|---|---|---|---|\n"
        );
        for setting in settings {
            page.push_str(&row(&setting));
        }
    }
    page
}

fn row(setting: &Description) -> String {
    let default = match (setting.default.as_deref(), setting.required) {
        (_, true) => "**required**".to_owned(),
        (None | Some(""), false) => "–".to_owned(),
        (Some(default), false) => format!("`{default}`"),
    };
    let secret = if setting.secret {
        ", or a file by `_FILE`"
    } else {
        ""
    };
    let purpose = setting.purpose;
    let mut purpose = purpose.chars();
    let purpose: String = purpose
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default()
        + purpose.as_str();
    let old_name = setting.old_name.map_or_else(String::new, |name| {
        format!(" Formerly `{name}`, which this release still accepts.")
    });
    let allowed = setting.allowed.replace('|', "\\|");
    format!(
        "| `{}` | {default} | {allowed}{secret} | {purpose}{old_name} |\n",
        setting.name
    )
}
