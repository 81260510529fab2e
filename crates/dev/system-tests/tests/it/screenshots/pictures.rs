//! The pictures: what each page does before it is taken.

use std::fs;
use std::path::{Path, PathBuf};

use crate::webdriver::{Browser, Screen};
use anyhow::Context as _;
use rig::output::say;
use serde_json::json;

use super::data::Example;

/// How a browser shows the pages.
struct Look {
    name: &'static str,
    screen: Screen,
    features: &'static [(&'static str, &'static str)],
}

const LOOKS: [Look; 5] = [
    Look {
        name: "light",
        screen: Screen::DESKTOP,
        features: &[("prefers-color-scheme", "light")],
    },
    Look {
        name: "dark",
        screen: Screen::DESKTOP,
        features: &[("prefers-color-scheme", "dark")],
    },
    Look {
        name: "forced-colours",
        screen: Screen::DESKTOP,
        features: &[
            ("forced-colors", "active"),
            ("prefers-color-scheme", "dark"),
        ],
    },
    Look {
        name: "phone",
        screen: Screen::PHONE,
        features: &[("prefers-color-scheme", "light")],
    },
    Look {
        name: "phone-dark",
        screen: Screen::PHONE,
        features: &[("prefers-color-scheme", "dark")],
    },
];

/// A browser with one look, and where its pictures go.
struct Camera<'example> {
    browser: Browser,
    example: &'example Example,
    folder: PathBuf,
    taken: usize,
}

/// Takes all pictures. Returns their number.
pub(crate) async fn take(example: &Example, folder: &Path) -> anyhow::Result<usize> {
    let mut taken = 0;
    for look in LOOKS {
        say(&format!("taking pictures: {}", look.name));
        let browser = Browser::with(look.screen).await;
        browser.prefer(look.features).await;
        let folder = folder.join(look.name);
        fs::create_dir_all(&folder).with_context(|| format!("{folder:?}"))?;
        let mut camera = Camera {
            browser,
            example,
            folder,
            taken: 0,
        };
        camera.without_account().await?;
        camera.with_links().await?;
        camera.of_approver().await?;
        camera.of_requester().await?;
        camera.of_admin().await?;
        taken += camera.taken;
    }
    Ok(taken)
}

impl Camera<'_> {
    async fn open(&self, path: &str) {
        let url = format!("{}{path}", self.example.gateway);
        self.browser.open(&url).await;
    }

    /// A picture of the whole page, once it shows this text.
    async fn take(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        self.browser.sees(text).await;
        let picture = self.browser.whole_picture().await;
        self.write(name, &picture)
    }

    fn write(&mut self, name: &str, picture: &[u8]) -> anyhow::Result<()> {
        let path = self.folder.join(format!("{name}.png"));
        self.taken += 1;
        fs::write(&path, picture).with_context(|| format!("{path:?}"))
    }

    async fn without_account(&mut self) -> anyhow::Result<()> {
        self.open("/").await;
        self.take("sign-in", "Forgot your password?").await?;
        self.browser.click("Create an account").await;
        self.take("sign-up", "Sign in instead").await?;
        self.open("/").await;
        self.browser.click("Forgot your password?").await;
        self.take("forgot-password", "Send me a link").await?;
        self.open("/reset-password?code=7f3a").await;
        self.take("reset-password", "Choose a new password").await?;
        self.open("/verify-email?code=7f3a").await;
        self.take("verify-email", "Confirm your e-mail address")
            .await?;
        self.open("/docs").await;
        self.browser.sees("Get user information").await;
        let screen = self.browser.picture().await;
        self.write("docs", &screen)
    }

    async fn with_links(&mut self) -> anyhow::Result<()> {
        let example = self.example;
        self.browser.open(&example.pending.approver_link).await;
        self.take("decision", "Spare bulb").await?;
        let screen = self.browser.picture().await;
        self.write("decision-screen", &screen)?;
        self.browser.open(&example.approved.approver_link).await;
        self.take("decision-approved", "Use the glossary").await?;
        self.browser.open(&example.rejected.approver_link).await;
        self.take("decision-rejected", "Ask again in spring.")
            .await?;
        self.browser.open(&example.pending.requester_link).await;
        self.take("requester", "has not decided yet").await?;
        self.open("/tasks?taskId=0123456789abcdef01234567&secret=0")
            .await;
        self.take("old-link", "no longer valid").await
    }

    /// Opens a tab of a person: the secrets of links that were opened in it are forgotten.
    async fn sign_in(&self, token: &str) {
        self.open("/account").await;
        let script = format!(
            "sessionStorage.clear(); sessionStorage.setItem('countersign-token', {})",
            json!(token)
        );
        let _ = self.browser.run(&script).await;
    }

    async fn of_approver(&mut self) -> anyhow::Result<()> {
        self.sign_in(&self.example.approver).await;
        self.open("/").await;
        self.take("inbox-to-decide", "Order 12 desk lamps").await?;
        let screen = self.browser.picture().await;
        self.write("inbox-screen", &screen)?;
        for (tab, name, text) in [
            ("Asked by me", "inbox-asked-by-me", "Lisbon"),
            ("Created by me", "inbox-created-by-me", "Lisbon"),
            ("Decided", "inbox-decided", "coffee machine"),
        ] {
            self.browser.follow(tab).await;
            self.take(name, text).await?;
        }
        self.browser.fill("Search titles", "no such title").await;
        self.take("inbox-nothing-found", "Nothing found.").await?;
        self.browser.click("New task").await;
        self.browser.sees("You can use Markdown.").await;
        let screen = self.browser.picture().await;
        self.write("task-form", &screen)?;
        self.open("/account").await;
        self.take("account", "Current password").await
    }

    async fn of_requester(&mut self) -> anyhow::Result<()> {
        self.sign_in(&self.example.requester).await;
        let path = format!("/tasks?taskId={}", self.example.approved.id);
        self.open(&path).await;
        self.browser.sees("Webhooks").await;
        self.browser
            .run("document.querySelector('details.card').open = true")
            .await;
        self.browser.sees("Delivered").await;
        self.browser
            .run("for (const one of document.querySelectorAll('.hooks details')) one.open = true")
            .await;
        self.take("webhooks", "Send again").await?;
        let path = format!("/tasks?taskId={}", self.example.pending.id);
        self.open(&path).await;
        self.take("task-of-creator", "Waiting for a decision").await
    }

    async fn of_admin(&mut self) -> anyhow::Result<()> {
        self.sign_in(&self.example.admin).await;
        for (name, query, text) in [
            ("admin", "", "ada@example.com"),
            ("admin-deletions", "?view=deletions", "Deletions"),
            ("admin-hosts", "?view=hosts", "127.0.0.1"),
            (
                "admin-deliveries",
                "?view=deliveries&host=127.0.0.1",
                "Next attempt",
            ),
            ("admin-audit", "?view=audit", "user-created"),
            ("admin-queues", "?view=queues", "webhook.due-deliveries"),
        ] {
            self.open(&format!("/admin{query}")).await;
            self.take(name, text).await?;
        }
        self.open("/admin").await;
        self.browser.follow("ada@example.com").await;
        self.take("admin-user", "All users").await
    }
}
