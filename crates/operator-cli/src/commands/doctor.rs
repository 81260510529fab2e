use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, anyhow};
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
use crate::failure::{Failure, Outcome};
use crate::output::{Output, member, table, text};

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

/// What was found, as a line of the report.
struct Finding {
    about: String,
    state: State,
    /// What there is; or what is missing, and what to do.
    detail: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    /// It works without it.
    NotSet,
    Missing,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotSet => "not set",
            Self::Missing => "missing",
        }
    }
}

impl Finding {
    fn new(about: &str, state: State, detail: impl Into<String>) -> Self {
        Self {
            about: about.to_owned(),
            state,
            detail: detail.into(),
        }
    }

    /// A check that returns what there is. `remedy` says what to do if it fails.
    fn of(about: &str, checked: anyhow::Result<String>, remedy: &str) -> Self {
        match checked {
            Ok(detail) => Self::new(about, State::Ok, detail),
            Err(error) => {
                // Libraries report several lines.
                let error = format!("{error:#}").replace('\n', " ");
                let error = error.trim_end_matches(['.', ' ']);
                Self::new(about, State::Missing, format!("{error}. {remedy}"))
            }
        }
    }
}

pub(crate) fn run(arguments: &Arguments, global: &Global, output: Output) -> Outcome {
    let findings = examine(arguments, global)?;
    let rows = findings.iter().map(|finding| {
        let (state, detail) = (finding.state.name().to_owned(), finding.detail.clone());
        vec![state, finding.about.clone(), detail]
    });
    let result = findings.iter().map(|finding| {
        let (state, detail) = (finding.state.name(), &finding.detail);
        json!({"about": finding.about, "state": state, "detail": detail})
    });
    output.done(&table(&[], rows), &result.collect());
    let is_missing = |finding: &&Finding| finding.state == State::Missing;
    let missing = findings.iter().filter(is_missing).count();
    if missing == 0 {
        return Ok(());
    }
    let failure = anyhow!("{missing} of {} checks failed", findings.len());
    Err(Failure::Failed(failure))
}

fn examine(arguments: &Arguments, global: &Global) -> Result<Vec<Finding>, Failure> {
    let folder = &arguments.secrets.folder;
    if fs::read_dir(folder).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        // Nothing else could be checked.
        let found = Err(anyhow!("{} cannot be read", folder.display()));
        let remedy = "Run this as root or as a member of the group countersign";
        return Ok(vec![Finding::of("secrets", found, remedy)]);
    }
    let runtime = super::runtime()?;
    let mut findings = vec![secrets(folder)];
    findings.extend(settings());
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

fn secrets(folder: &Path) -> Finding {
    let remedy = "`dpkg-reconfigure countersign` makes the files that are missing";
    for name in SECRETS {
        let found = match read(folder, name) {
            Ok(secret) if secret.expose().is_empty() => Err(anyhow!("{name} is empty: remove it")),
            found => found.map(|_| String::new()),
        };
        if found.is_err() {
            return Finding::of("secrets", found, remedy);
        }
    }
    Finding::new("secrets", State::Ok, folder.display().to_string())
}

/// The settings of all processes: a line for each fault, or one that says that they are valid.
fn settings() -> Vec<Finding> {
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
        return vec![Finding::new("settings", State::Ok, file)];
    }
    let finding = |(error, processes): (String, Vec<String>)| {
        let found = Err(anyhow!("{error}")).context(processes.join(", "));
        let remedy = format!("Correct it in {file}, and restart countersign.target");
        Finding::of("settings", found, &remedy)
    };
    faults.into_iter().map(finding).collect()
}

/// The text of a secret's file.
fn read(folder: &Path, name: &str) -> anyhow::Result<Secret> {
    let path = folder.join(name);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(Secret::new(text.trim()))
}

fn databases(runtime: &Runtime, folder: &Path) -> Vec<Finding> {
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
        let checked = read(folder, name).and_then(|url| {
            let version = runtime.block_on(check_schema(&url, schema, migrations))?;
            Ok(format!("reached and migrated, Postgres {version}"))
        });
        Finding::of(&format!("database {schema}"), checked, &remedy)
    };
    schemas.map(check).into()
}

fn broker(runtime: &Runtime, folder: &Path) -> Finding {
    let checked = read(folder, AMQP_URL).and_then(|url| {
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
    Finding::of("broker", checked, &remedy)
}

fn process(state: &Value) -> Finding {
    let (name, version) = (text(state, "name"), text(state, "version"));
    let row = status::process_row(state);
    let failing = row.last().map_or("", String::as_str);
    let checked = if member(state, "ready") != true {
        Err(anyhow!("it is not ready: {failing}"))
    } else if version != env!("CARGO_PKG_VERSION") {
        Err(anyhow!("version {version} still runs"))
    } else {
        Ok(format!("ready, version {version}"))
    };
    let remedy =
        format!("See `journalctl --unit countersign-{name}`, and restart countersign.target");
    Finding::of(name, checked, &remedy)
}

fn administrator(global: &Global, folder: &Path) -> Finding {
    let about = "administrator";
    match Api::open(global) {
        Ok(_) => Finding::new(about, State::Ok, "can sign in"),
        // The password may have been changed on the pages.
        Err(Failure::Refused(said)) => Finding::new(
            about,
            State::NotSet,
            format!(
                "the command line cannot sign in: {said} Write the current password to {}/admin_password",
                folder.display()
            ),
        ),
        Err(failure) => Finding::of(
            about,
            Err(anyhow!("{failure}")),
            "The user-service creates the first administrator once it is ready",
        ),
    }
}

fn public_url(reader: &mut Reader) -> Option<Finding> {
    let url = PublicUrl::read(reader).ok()?.to_string();
    let parsed = Url::parse(&url).ok()?;
    Some(
        if matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            let detail =
                format!("links begin with {url} and work on this machine only. Set PUBLIC_URL");
            Finding::new("public URL", State::NotSet, detail)
        } else {
            Finding::new("public URL", State::Ok, url)
        },
    )
}

fn mail(reader: &mut Reader, folder: &Path) -> Option<Finding> {
    let smtp: Option<Secret> = reader.optional("SMTP_URL", "The mail server.").ok()?;
    let webhook: Option<Url> = reader
        .optional("WEBHOOK_USER_FORGOT_PASSWORD", "The webhook for codes.")
        .ok()?;
    let host = smtp.and_then(|url| Url::parse(url.expose()).ok()?.host_str().map(str::to_owned));
    Some(match (host, webhook) {
        (Some(host), _) => Finding::new("mail", State::Ok, format!("through {host}")),
        (None, Some(_)) => Finding::new("mail", State::Ok, "codes go to a webhook"),
        (None, None) => Finding::new(
            "mail",
            State::NotSet,
            format!(
                "no mail is sent. Write the mail server's URL to {}/smtp_url, and set MAIL_FROM",
                folder.display()
            ),
        ),
    })
}
