use std::io::stdin;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use rand::RngExt as _;
use rand::distr::Alphanumeric;
use serde_json::{Value, json};

use crate::api::{Api, Global};
use crate::output::{Column, Output, member, set, text};
use crate::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  countersign users list --filter isActive:false --sort email:1
  countersign users create ada@example.com
  countersign users reset-password ada@example.com --password-stdin < password
  countersign users make-admin ada@example.com
  countersign users create flows@example.com --service
  countersign users disable 6b0211b15a326b85ddc6477a --json";

const GENERATED_LENGTH: usize = 24;
const ADMIN: &str = "admin";
const USER: &str = "user";
const COLUMNS: [Column; 5] = [
    ("id", "/id"),
    ("username", "/username"),
    ("email", "/email"),
    ("active", "/isActive"),
    ("scope", "/scope"),
];

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List users.
    List(List),
    /// Show a user.
    Show(User),
    /// Create a user, and print the password once; or a service account.
    Create(Create),
    /// Keep a user from signing in, revoke the access tokens, and end all API keys for good.
    Disable(User),
    /// Let a disabled user sign in again.
    Enable(User),
    /// Replace a user's password, revoke the access tokens, and end all API keys.
    ResetPassword(ResetPassword),
    /// Make a user an administrator.
    MakeAdmin(User),
    /// Delete a user with all tasks and flows, and print the deletion's ticket.
    Delete(User),
}

#[derive(Args)]
pub(crate) struct List {
    /// A condition such as `isActive:false`; can be repeated.
    #[arg(long, value_name = "FIELD:VALUE")]
    filter: Vec<String>,
    /// A part of the username.
    #[arg(long)]
    pattern: Option<String>,
    /// The order, such as `email:1` or `created:-1`.
    #[arg(long, value_name = "FIELD:1")]
    sort: Option<String>,
    /// How many users at most.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// How many users to leave out.
    #[arg(long, default_value_t = 0)]
    offset: usize,
}

#[derive(Args)]
pub(crate) struct User {
    /// The identifier, the username or the e-mail address.
    user: String,
}

#[derive(Args)]
pub(crate) struct Create {
    /// The username, which is the e-mail address, too, unless --email is given.
    username: String,
    /// The e-mail address.
    #[arg(long)]
    email: Option<String>,
    /// Make the user an administrator.
    #[arg(long)]
    admin: bool,
    /// Make a service account: without a password, for programs with API keys.
    #[arg(long, conflicts_with = "password_stdin")]
    service: bool,
    #[command(flatten)]
    password: PasswordSource,
}

#[derive(Args)]
pub(crate) struct ResetPassword {
    #[command(flatten)]
    user: User,
    #[command(flatten)]
    password: PasswordSource,
}

/// Where a new password comes from. An argument would be visible to every user of the machine.
#[derive(Args)]
pub(crate) struct PasswordSource {
    /// Read the password from the first line of standard input, instead of generating one that is printed once.
    #[arg(long)]
    password_stdin: bool,
}

impl PasswordSource {
    fn read(&self) -> Result<String, Failure> {
        if !self.password_stdin {
            let characters = rand::rng().sample_iter(Alphanumeric);
            return Ok(characters.take(GENERATED_LENGTH).map(char::from).collect());
        }
        let mut line = String::new();
        stdin()
            .read_line(&mut line)
            .context("standard input cannot be read")?;
        let password = line.trim_end_matches(['\r', '\n']).to_owned();
        if password.is_empty() {
            return Err(Failure::Usage("standard input has no password".to_owned()));
        }
        Ok(password)
    }

    /// Says what happened to a user, and a generated password, because no one knows it yet.
    fn done(&self, user: &Value, what: &str, password: &str, output: Output) -> Outcome {
        let (mut result, mut sentence) = (user.clone(), format!("{} {what}.", name(user)));
        if !self.password_stdin {
            set(&mut result, "password", json!(password));
            sentence += &format!(" The password, which is not shown again: {password}");
        }
        output.done(&sentence, &result)
    }
}

pub(crate) fn run(command: &Command, global: &Global, output: Output) -> Outcome {
    let api = Api::open(global)?;
    match command {
        Command::List(arguments) => list(arguments, &api, output),
        Command::Show(user) => output.one(&find(&api, &user.user)?),
        Command::Create(arguments) => create(arguments, &api, output),
        Command::Disable(user) => set_active(&user.user, false, &api, output),
        Command::Enable(user) => set_active(&user.user, true, &api, output),
        Command::ResetPassword(arguments) => reset_password(arguments, &api, output),
        Command::MakeAdmin(user) => make_admin(&user.user, &api, output),
        Command::Delete(user) => delete(&user.user, &api, output),
    }
}

fn list(arguments: &List, api: &Api, output: Output) -> Outcome {
    let mut filters = Vec::new();
    let named = |name| move |value: &String| (name, value.clone());
    filters.extend(arguments.filter.iter().map(named("filter")));
    filters.extend(arguments.pattern.iter().map(named("pattern")));
    filters.extend(arguments.sort.iter().map(named("sort")));
    let (offset, limit) = (arguments.offset, arguments.limit);
    let found = api.rows(&["users"], &filters, offset, limit)?;
    output.list(&COLUMNS, found)
}

fn create(arguments: &Create, api: &Api, output: Output) -> Outcome {
    let email = arguments.email.as_deref().unwrap_or(&arguments.username);
    let mut body = json!({"username": arguments.username, "email": email});
    if arguments.admin {
        set(&mut body, "scope", json!([USER, ADMIN]));
    }
    if arguments.service {
        set(&mut body, "service", json!(true));
        let created = api.post(&["user"], Some(&body))?;
        let user = member(&created, "user");
        let sentence = format!("The service account {} was created.", name(user));
        return output.done(&sentence, user);
    }
    let password = arguments.password.read()?;
    set(&mut body, "password", json!(password));
    let created = api.post(&["user"], Some(&body))?;
    // The response has a token, too, which no one asked for.
    let user = member(&created, "user");
    let source = &arguments.password;
    source.done(user, "was created", &password, output)
}

fn reset_password(arguments: &ResetPassword, api: &Api, output: Output) -> Outcome {
    let user = find_to_change(api, &arguments.user.user, output)?;
    let password = arguments.password.read()?;
    let changed = api.put(&["users", id(&user)], &json!({"password": password}))?;
    let source = &arguments.password;
    let what = "has a new password: all access tokens are revoked, and all API keys have ended";
    source.done(&changed, what, &password, output)
}

fn set_active(user: &str, active: bool, api: &Api, output: Output) -> Outcome {
    let user = find_to_change(api, user, output)?;
    let changed = api.put(&["users", id(&user)], &json!({"isActive": active}))?;
    let what = if active {
        "can sign in again."
    } else {
        "is disabled: all access tokens are revoked, and all API keys have ended."
    };
    output.done(&format!("{} {what}", name(&changed)), &changed)
}

fn make_admin(user: &str, api: &Api, output: Output) -> Outcome {
    let user = find_to_change(api, user, output)?;
    let scope = member(&user, "scope").as_array();
    let mut scope = scope.cloned().unwrap_or_default();
    if !scope.contains(&json!(ADMIN)) {
        scope.push(json!(ADMIN));
    }
    let changed = api.put(&["users", id(&user)], &json!({"scope": scope}))?;
    let name = name(&changed);
    let sentence = format!("{name} is an administrator, after signing in again.");
    output.done(&sentence, &changed)
}

fn delete(user: &str, api: &Api, output: Output) -> Outcome {
    let user = find_to_change(api, user, output)?;
    let question = format!(
        "Delete {} with all tasks, flows and tokens? This cannot be undone.",
        name(&user)
    );
    output.confirm(&question)?;
    let ticket = api.delete(&["users", id(&user)])?;
    let sentence = format!(
        "The deletion has begun. Its progress: countersign deletions status {} {}",
        id(&user),
        text(&ticket, "ticket")
    );
    output.done(&sentence, &ticket)
}

/// The user with this identifier, username or e-mail address.
pub(crate) fn find(api: &Api, user: &str) -> Result<Value, Failure> {
    if is_id(user) {
        return api.get(&["users", user], &[]);
    }
    for field in ["username", "email"] {
        let filter = format!("{field}:{}", user.replace(',', r"\,"));
        let query = [("filter", filter), ("limit", "1".to_owned())];
        if let Some(user) = api.list(&["users"], &query)?.pop() {
            return Ok(user);
        }
    }
    Err(Failure::NotFound(format!(
        "There is no user with the identifier, username or e-mail address {user:?}."
    )))
}

/// The user with this identifier, username or e-mail address, for a command that changes the user.
///
/// A username need not be an address that its user can read, so a user who was found by one of two different names is
/// perhaps not the one who is meant: the operator has to confirm that.
pub(crate) fn find_to_change(api: &Api, wanted: &str, output: Output) -> Result<Value, Failure> {
    let user = find(api, wanted)?;
    if is_id(wanted) || has_one_name(&user, wanted) {
        return Ok(user);
    }
    let question = format!(
        "The user who was found has the username {} and the e-mail address {}. Is this the user you mean?",
        text(&user, "username"),
        text(&user, "email")
    );
    let remedy = format!("If it is, give the identifier {} instead.", id(&user));
    output.confirm_in_person(&question, &remedy)?;
    Ok(user)
}

/// Whether a text is an identifier, which is the same for only one user at all times.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether the username and the e-mail address are both what the operator gave.
fn has_one_name(user: &Value, wanted: &str) -> bool {
    let wanted = wanted.trim().to_lowercase();
    ["username", "email"].map(|field| text(user, field).to_lowercase()) == [wanted.as_str(); 2]
}

pub(crate) fn id(user: &Value) -> &str {
    text(user, "id")
}

/// The username, and the e-mail address if it is another one.
pub(crate) fn name(user: &Value) -> String {
    let (username, email) = (text(user, "username"), text(user, "email"));
    if username.to_lowercase() == email.to_lowercase() {
        return username.to_owned();
    }
    format!("{username} (e-mail address {email})")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{has_one_name, is_id, name};

    #[test]
    fn a_user_with_two_names_is_shown_with_both() {
        let user = |username, email| json!({"username": username, "email": email});
        let ada = user("Ada@example.com", "ada@Example.com");
        assert_eq!(name(&ada), "Ada@example.com");
        assert!(has_one_name(&ada, " ADA@example.com"));
        assert!(!has_one_name(&ada, "ada@example.co"));
        let eve = user("ceo@example.com", "eve@example.org");
        for text in ["ceo@example.com", "eve@example.org"] {
            assert!(name(&eve).contains(text));
            assert!(!has_one_name(&eve, text));
        }
    }

    #[test]
    fn only_24_hexadecimal_digits_are_an_identifier() {
        assert!(is_id("6b0211b15a326b85ddc6477a"));
        assert!(!is_id("6b0211b15a326b85ddc6477") && !is_id("ada@example.com.example."));
    }
}
