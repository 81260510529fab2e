use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, anyhow, ensure};
use app_config::{PublicUrl, Reader, Settings as _};
use clap::{Args, ValueEnum as _};
use database::check_schema;
use messaging::{BrokerSettings, DeadLetters};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use url::Url;
use values::Secret;

use super::{Secrets, config, status};
use crate::api::{Api, Global};
use crate::output::{Output, member, table, text};
use crate::{Failure, Outcome};

const EXAMPLES: &str = "\
It is for a machine on which the processes run with a folder of secrets, as the Debian package installs them. Run it as root or as
a member of the group countersign.

Examples:
  countersign doctor
  countersign doctor --json | jq '.[] | select(.state == \"missing\")'

The exit code is 1 if something is missing.";

/// The files without which a process does not start.
const SECRETS: [&str; 8] = [
    "users_owner_database_url",
    USERS_URL,
    "people_task_owner_database_url",
    PEOPLE_TASK_URL,
    AMQP_URL,
    "token_signing_key.pem",
    "webhook_signing_key.pem",
    "admin_password",
];
const USERS_URL: &str = "users_service_database_url";
const PEOPLE_TASK_URL: &str = "people_task_service_database_url";
const AMQP_URL: &str = "amqp_url";

/// The page that lists the settings of all processes, also those of the gateway.
const SETTINGS: &str = include_str!("../../../../deploy/SETTINGS.md");
/// The settings of this program alone.
const OWN_SETTINGS: [&str; 2] = ["COUNTERSIGN_URL", "COUNTERSIGN_TOKEN"];

#[derive(Args)]
// Those of `status` are a group of the same name.
#[group(skip)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    secrets: Secrets,
    #[command(flatten)]
    processes: status::Arguments,
}

const OK: &str = "ok";
/// It works without it.
const NOT_SET: &str = "not set";
/// It has no effect.
const UNKNOWN: &str = "unknown";
const MISSING: &str = "missing";
/// The members of what was found, which is a line of the report. `detail` is what there is; or what is missing, and what to
/// do.
const MEMBERS: [&str; 3] = ["state", "about", "detail"];

fn finding(about: &str, state: &str, detail: impl Into<String>) -> Value {
    json!({"about": about, "state": state, "detail": detail.into()})
}

/// A check that returns what there is. `remedy` says what to do if it fails.
fn checked(about: &str, found: anyhow::Result<String>, remedy: &str) -> Value {
    match found {
        Ok(detail) => finding(about, OK, detail),
        Err(error) => {
            // Libraries report several lines.
            let error = format!("{error:#}").replace('\n', " ");
            let error = error.trim_end_matches(['.', ' ']);
            finding(about, MISSING, format!("{error}. {remedy}"))
        }
    }
}

pub(crate) fn run(arguments: &Arguments, global: &Global, output: Output) -> Outcome {
    let findings = examine(arguments, global)?;
    let cells = |finding| MEMBERS.map(|name| text(finding, name).to_owned()).into();
    let rows = table(&[], findings.iter().map(cells));
    let is_missing = |finding: &&Value| text(finding, "state") == MISSING;
    let (missing, all) = (findings.iter().filter(is_missing).count(), findings.len());
    output.done(&rows, &findings.into())?;
    if missing == 0 {
        return Ok(());
    }
    Err(anyhow!("{missing} of {all} checks failed").into())
}

fn examine(arguments: &Arguments, global: &Global) -> Result<Vec<Value>, Failure> {
    let folder = &arguments.secrets.folder;
    if fs::read_dir(folder).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        // Nothing else could be checked.
        let found = Err(anyhow!("{} cannot be read", folder.display()));
        let remedy = "Run this as root or as a member of the group countersign";
        return Ok(vec![checked("secrets", found, remedy)]);
    }
    let runtime = super::runtime()?;
    let mut findings = vec![secrets(folder)];
    findings.extend(settings());
    findings.extend(unknown_settings());
    findings.extend(databases(&runtime, folder));
    findings.push(broker(&runtime, folder));
    let processes = status::states(&arguments.processes)?;
    findings.extend(processes.iter().map(process));
    findings.push(administrator(global, folder));
    // A file that cannot be read is among the faults of the settings.
    if let Ok(mut reader) = Reader::from_process() {
        findings.extend(public_url(&mut reader));
        findings.extend(mail(&mut reader, folder));
    }
    Ok(findings)
}

fn secrets(folder: &Path) -> Value {
    let remedy = "`dpkg-reconfigure countersign` makes the files that are missing";
    let found = SECRETS.iter().try_for_each(|name| {
        let is_empty = read(folder, name)?.expose().is_empty();
        ensure!(!is_empty, "{name} is empty: remove it");
        Ok(())
    });
    let found = found.map(|()| folder.display().to_string());
    checked("secrets", found, remedy)
}

/// The settings of all processes: a line for each fault, or one that says that they are valid.
fn settings() -> Vec<Value> {
    let file = std::env::var("CONFIG_FILE").unwrap_or_else(|_| "the environment".to_owned());
    let mut faults = BTreeMap::<String, Vec<String>>::new();
    for process in config::Process::value_variants() {
        if let Err(error) = config::check(*process) {
            let name = process.to_possible_value();
            let name = name.map_or_else(String::new, |name| name.get_name().to_owned());
            faults.entry(error.to_string()).or_default().push(name);
        }
    }
    if faults.is_empty() {
        return vec![finding("settings", OK, file)];
    }
    let finding = |(error, processes): (String, Vec<String>)| {
        let found = Err(anyhow!("{error}")).context(processes.join(", "));
        let remedy = format!("Correct it in {file}, and restart countersign.target");
        checked("settings", found, &remedy)
    };
    faults.into_iter().map(finding).collect()
}

/// The names in the settings file that no process reads. A file that cannot be read is among the faults of the settings.
fn unknown_settings() -> impl Iterator<Item = Value> {
    let names = app_config::names_in_file().unwrap_or_default().into_iter();
    names.filter(|name| !is_setting(name)).map(|name| {
        let detail = format!("no process reads {name:?}. Correct it, in lower case, or remove it");
        finding("setting", UNKNOWN, detail)
    })
}

/// Whether it is the name of a setting, or of the file with a secret, in lower case.
fn is_setting(name: &str) -> bool {
    let variable = name.to_uppercase();
    let is_known =
        |name: &str| OWN_SETTINGS.contains(&name) || SETTINGS.contains(&format!("`{name}`"));
    name == name.to_lowercase()
        && (is_known(&variable) || is_known(variable.trim_end_matches("_FILE")))
}

fn read(folder: &Path, name: &str) -> anyhow::Result<Secret> {
    let path = folder.join(name);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(Secret::new(text.trim()))
}

fn databases(runtime: &Runtime, folder: &Path) -> Vec<Value> {
    let remedy = format!(
        "Install and start Postgres on this machine (`apt install postgresql`), or name another one in {}/*_database_url",
        folder.display()
    );
    let schemas = [
        (USERS_URL, user_service::SCHEMA, user_service::MIGRATIONS),
        (
            PEOPLE_TASK_URL,
            people_task_service::SCHEMA,
            people_task_service::MIGRATIONS,
        ),
    ];
    let check = |(name, schema, migrations)| {
        let found = read(folder, name).and_then(|url| {
            let version = runtime.block_on(check_schema(&url, schema, migrations))?;
            Ok(format!("reached and migrated, Postgres {version}"))
        });
        checked(&format!("database {schema}"), found, &remedy)
    };
    schemas.map(check).into()
}

fn broker(runtime: &Runtime, folder: &Path) -> Value {
    let found = read(folder, AMQP_URL).and_then(|url| {
        let settings = BrokerSettings { url };
        runtime.block_on(async {
            let queue = people_task_service::deliveries::QUEUE;
            DeadLetters::open(&settings, queue).await?.close().await;
            Ok("reached".to_owned())
        })
    });
    let remedy = format!(
        "Install and start RabbitMQ on this machine (`apt install rabbitmq-server`), or name another one in {}/{AMQP_URL}",
        folder.display()
    );
    checked("broker", found, &remedy)
}

fn process(state: &Value) -> Value {
    let (name, version) = (text(state, "name"), text(state, "version"));
    let row = status::process_row(state);
    let failing = row.last().map_or("", String::as_str);
    let found = if member(state, "ready") != true {
        Err(anyhow!("it is not ready: {failing}"))
    } else if version != env!("CARGO_PKG_VERSION") {
        Err(anyhow!("version {version} still runs"))
    } else {
        Ok(format!("ready, version {version}"))
    };
    let remedy =
        format!("See `journalctl --unit countersign-{name}`, and restart countersign.target");
    checked(name, found, &remedy)
}

fn administrator(global: &Global, folder: &Path) -> Value {
    let about = "administrator";
    let found = match Api::open(global) {
        Ok(_) => Ok("can sign in".to_owned()),
        // The password may have been changed on the pages. After several runs with the old one, the sign-in has to wait.
        Err(Failure::Refused(said) | Failure::Limited(said)) => {
            let detail = format!(
                "the command line cannot sign in: {said} Write the current password to {}/admin_password",
                folder.display()
            );
            return finding(about, NOT_SET, detail);
        }
        Err(failure) => Err(anyhow!("{failure}")),
    };
    let remedy = "The user-service creates the first administrator once it is ready";
    checked(about, found, remedy)
}

fn public_url(reader: &mut Reader) -> Option<Value> {
    let url = PublicUrl::read(reader).ok()?.to_string();
    let parsed = Url::parse(&url).ok()?;
    let is_local = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    let advice = format!("links begin with {url} and work on this machine only. Set PUBLIC_URL");
    let (state, detail) = if is_local {
        (NOT_SET, advice)
    } else {
        (OK, url)
    };
    Some(finding("public URL", state, detail))
}

fn mail(reader: &mut Reader, folder: &Path) -> Option<Value> {
    let smtp: Option<Secret> = reader.optional("SMTP_URL", "The mail server.").ok()?;
    let webhook: Option<Url> = reader
        .optional("WEBHOOK_USER_FORGOT_PASSWORD", "The webhook for codes.")
        .ok()?;
    let host = smtp.and_then(|url| Url::parse(url.expose()).ok()?.host_str().map(str::to_owned));
    let advice = format!(
        "no mail is sent. Write the mail server's URL to {}/smtp_url, and set MAIL_FROM",
        folder.display()
    );
    let (state, detail) = match (host, webhook) {
        (Some(host), _) => (OK, format!("through {host}")),
        (None, Some(_)) => (OK, "codes go to a webhook".to_owned()),
        (None, None) => (NOT_SET, advice),
    };
    Some(finding("mail", state, detail))
}

#[cfg(test)]
mod tests {
    use super::is_setting;

    #[test]
    fn a_name_that_is_misspelt_or_not_in_lower_case_is_no_setting() {
        for name in [
            "public_url",
            "tls_certificate_file",
            "token_signing_key_file",
            "metrics_address",
            "countersign_url",
        ] {
            assert!(is_setting(name), "{name}");
        }
        for name in [
            "pubic_url",
            "PUBLIC_URL",
            "public-url",
            "publicurl",
            "gateway",
        ] {
            assert!(!is_setting(name), "{name}");
        }
    }
}
