//! The pictures: what each page does before it is taken.

mod states;

use std::fs;
use std::path::{Path, PathBuf};

use crate::browser::buttons_work;
use crate::webdriver::{Browser, Screen};
use anyhow::Context as _;
use rig::say;
use serde_json::json;

use super::data::{APPROVER, Example, PASSWORD};

/// How a browser shows the pages.
struct Look {
    name: &'static str,
    language: &'static str,
    screen: Screen,
    features: &'static [(&'static str, &'static str)],
}

const LOOKS: [Look; 9] = [
    Look {
        name: "light",
        language: "en",
        screen: Screen::DESKTOP,
        features: &[("prefers-color-scheme", "light")],
    },
    Look {
        name: "dark",
        language: "en",
        screen: Screen::DESKTOP,
        features: &[("prefers-color-scheme", "dark")],
    },
    Look {
        name: "forced-colours",
        language: "en",
        screen: Screen::DESKTOP,
        features: &[
            ("forced-colors", "active"),
            ("prefers-color-scheme", "dark"),
        ],
    },
    Look {
        name: "phone",
        language: "en",
        screen: Screen::PHONE,
        features: &[("prefers-color-scheme", "light")],
    },
    Look {
        name: "phone-dark",
        language: "en",
        screen: Screen::PHONE,
        features: &[("prefers-color-scheme", "dark")],
    },
    Look {
        name: "german",
        language: "de",
        screen: Screen::DESKTOP,
        features: &[("prefers-color-scheme", "light")],
    },
    Look {
        name: "german-dark",
        language: "de",
        screen: Screen::DESKTOP,
        features: &[("prefers-color-scheme", "dark")],
    },
    Look {
        name: "german-phone",
        language: "de",
        screen: Screen::PHONE,
        features: &[("prefers-color-scheme", "light")],
    },
    Look {
        name: "german-phone-dark",
        language: "de",
        screen: Screen::PHONE,
        features: &[("prefers-color-scheme", "dark")],
    },
];

/// What a text is in the page's language: the value that another language has under the same key.
const TRANSLATE: &str = "return Promise.all(['en', LANGUAGE, 'admin-en', `admin-${LANGUAGE}`].map((name) => import(`/assets/texts/${name}.js`)))
    .then((modules) => modules.map(({ texts }) => texts))
    .then(([en, other, adminEn, admin]) => {
      const find = (from, to) => Object.keys(from).filter((key) => from[key] === TEXT).map((key) => to[key])[0];
      return find(en, other) ?? find(adminEn, admin) ?? TEXT;
    })";

/// A browser with one look, and where its pictures go.
struct Camera<'example> {
    browser: Browser,
    example: &'example Example,
    look: &'static Look,
    folder: PathBuf,
    taken: usize,
}

/// Takes all pictures. Returns their number.
pub(crate) async fn take(example: &Example, folder: &Path) -> anyhow::Result<usize> {
    let mut taken = 0;
    for look in &LOOKS {
        say(&format!("taking pictures: {}", look.name));
        let browser = Browser::with(look.screen).await;
        browser.prefer(look.features).await;
        browser.speak(look.language).await;
        let folder = folder.join(look.name);
        fs::create_dir_all(&folder).with_context(|| format!("{folder:?}"))?;
        let mut camera = Camera {
            browser,
            example,
            look,
            folder,
            taken: 0,
        };
        camera.without_account().await?;
        camera.with_links().await?;
        camera.of_approver().await?;
        camera.of_requester().await?;
        camera.of_change().await?;
        camera.of_session().await?;
        camera.of_admin().await?;
        camera.of_states().await?;
        taken += camera.taken;
    }
    Ok(taken)
}

impl Camera<'_> {
    async fn open(&self, path: &str) {
        let url = format!("{}{path}", self.example.gateway);
        self.browser.open(&url).await;
    }

    /// A text of the pages in their language.
    async fn word(&self, text: &str) -> String {
        if self.look.language == "en" {
            return text.to_owned();
        }
        let script = TRANSLATE.replace("LANGUAGE", &json!(self.look.language).to_string());
        let script = script.replace("TEXT", &json!(text).to_string());
        let word = self.browser.run(&script).await;
        word.as_str().unwrap_or(text).to_owned()
    }

    async fn sees(&self, text: &str) {
        self.browser.sees(&self.word(text).await).await;
    }

    async fn click(&self, name: &str) {
        self.browser.click(&self.word(name).await).await;
    }

    async fn follow(&self, name: &str) {
        self.browser.follow(&self.word(name).await).await;
    }

    async fn fill(&self, label: &str, text: &str) {
        self.browser.fill(&self.word(label).await, text).await;
    }

    /// A picture of the screen, once it shows this text.
    async fn take_screen(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        self.sees(text).await;
        let screen = self.browser.picture().await;
        self.write(name, &screen)
    }

    /// A picture of the whole page, once it shows this text.
    async fn take(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        self.sees(text).await;
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
        self.click("Create an account").await;
        self.take("sign-up", "Sign in instead").await?;
        self.open("/").await;
        self.click("Forgot your password?").await;
        self.take("forgot-password", "Send me a link").await?;
        self.open("/reset-password?code=7f3a").await;
        self.take("reset-password", "Choose a new password").await?;
        self.open("/verify-email?code=7f3a").await;
        self.take("verify-email", "Confirm your e-mail address")
            .await?;
        self.open("/docs").await;
        self.take_screen("docs", "Get user information").await
    }

    async fn with_links(&mut self) -> anyhow::Result<()> {
        let example = self.example;
        self.browser.open(&example.pending.approver_link).await;
        self.take("decision", "Spare bulb").await?;
        self.take_screen("decision-screen", "Spare bulb").await?;
        self.click("Add a comment").await;
        self.fill("Comment (optional)", "Only from a shop nearby.")
            .await;
        self.take_screen("decision-comment", "Approve").await?;
        self.browser.open(&example.confirmed()?.approver_link).await;
        self.click("Approve").await;
        self.take_screen("decision-second-press", "Yes, approve")
            .await?;
        self.browser.open(&example.approved.approver_link).await;
        self.take("decision-approved", "Use the glossary").await?;
        self.browser.open(&example.rejected.approver_link).await;
        self.take("decision-rejected", "Ask again in spring.")
            .await?;
        self.browser.open(&example.pending.requester_link).await;
        self.take("requester", "grace@example.com").await?;
        self.open("/tasks?taskId=0123456789abcdef01234567&secret=0")
            .await;
        self.take("half-link", "This link is not complete").await?;
        let old = "0".repeat(64);
        self.open(&format!("/tasks?secret={old}")).await;
        self.take("old-link", "Task not found").await?;
        self.open("/nothing").await;
        self.take("page-not-found", "Page not found").await
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
        self.open("/?sort=decisionBy:1").await;
        self.take_screen("inbox-screen", "Order 12 desk lamps")
            .await?;
        for (tab, name, text) in [
            ("My requests", "inbox-my-requests", "Lisbon"),
            ("Created by me", "inbox-created-by-me", "Lisbon"),
            ("Decided", "inbox-decided", "coffee machine"),
        ] {
            self.follow(tab).await;
            self.take(name, text).await?;
        }
        self.fill("Search titles and people", "no such title").await;
        self.take("inbox-nothing-found", "Nothing found.").await?;
        self.click("New task").await;
        self.take_screen("task-form", "You can use Markdown.")
            .await?;
        self.open("/account").await;
        self.take("account", "Current password").await
    }

    async fn of_requester(&mut self) -> anyhow::Result<()> {
        self.sign_in(&self.example.requester).await;
        let path = format!("/tasks?taskId={}", self.example.approved.id);
        self.open(&path).await;
        self.sees("Advanced").await;
        self.browser
            .run("document.querySelector('details.card').open = true")
            .await;
        self.sees("Delivered").await;
        self.browser
            .run("for (const one of document.querySelectorAll('.hooks details')) one.open = true")
            .await;
        self.take("webhooks", "Send again").await?;
        let path = format!("/tasks?taskId={}", self.example.pending.id);
        self.open(&path).await;
        self.take("task-of-creator", "Waiting for a decision")
            .await?;
        self.click("Decide yourself …").await;
        self.take("task-in-place", "Approve").await?;
        self.click("Edit").await;
        self.take_screen("task-edit", "You can use Markdown.").await
    }

    /// A task that changes while it is read, is decided, and leads on; and a session that ends meanwhile.
    async fn of_change(&mut self) -> anyhow::Result<()> {
        self.sign_in(&self.example.approver).await;
        let task = self.example.changing()?;
        self.open(&format!("/tasks?taskId={}", task.id)).await;
        self.sees("Approve").await;
        self.example.change(&task)?;
        self.click("Approve").await;
        self.take_screen("decision-changed", "Read the change")
            .await?;
        let end = "sessionStorage.setItem('countersign-token', 'ended')";
        let _ = self.browser.run(end).await;
        buttons_work(&self.browser).await;
        self.click("Approve").await;
        self.take_screen("session-ended", "Your session has ended. Sign in again.")
            .await?;
        self.sign_in(&self.example.approver).await;
        self.open(&format!("/tasks?taskId={}", task.id)).await;
        self.click("Approve").await;
        self.take("decided", "Back to your tasks").await
    }

    /// A browser that stays signed in.
    async fn of_session(&mut self) -> anyhow::Result<()> {
        self.sign_in("").await;
        let _ = self.browser.run("sessionStorage.clear()").await;
        self.open("/").await;
        self.fill("E-mail address", APPROVER).await;
        self.fill("Password", PASSWORD).await;
        self.sees("Keep me signed in on this device").await;
        let _ = self
            .browser
            .run("document.getElementById('stay').click()")
            .await;
        self.click("Sign in").await;
        self.follow("Account").await;
        self.follow("Where you are signed in").await;
        self.take("sessions", "This browser").await?;
        // What the browser knows of the person's token.
        let unverified = "const stay = JSON.parse(localStorage.getItem('countersign-stay'));
            stay.claims.emailVerified = false; localStorage.setItem('countersign-stay', JSON.stringify(stay))";
        let _ = self.browser.run(unverified).await;
        self.open("/").await;
        self.take("inbox-unverified", "Send the message again")
            .await?;
        self.click("Sign out").await;
        self.sees("Forgot your password?").await;
        Ok(())
    }

    async fn of_admin(&mut self) -> anyhow::Result<()> {
        self.sign_in(&self.example.admin).await;
        for (name, query, text) in [
            ("admin", "", "ada@example.com"),
            ("admin-deletions", "?view=deletions", "Completed"),
            ("admin-hosts", "?view=hosts", "127.0.0.1"),
            (
                "admin-deliveries",
                "?view=deliveries&host=127.0.0.1",
                "Next attempt",
            ),
            ("admin-audit", "?view=audit", "grace@example.com"),
            ("admin-queues", "?view=queues", "webhook.due-deliveries"),
        ] {
            self.open(&format!("/admin{query}")).await;
            self.take(name, text).await?;
        }
        self.open("/admin").await;
        self.follow("ada@example.com").await;
        self.take("admin-user", "Sign out everywhere").await
    }
}
