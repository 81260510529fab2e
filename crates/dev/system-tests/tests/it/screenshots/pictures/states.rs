//! States that people seldom see: what is wrong, missing, or on its way, and dialogs.

use serde_json::json;
use testkit::eventually;

use super::Camera;

/// A latency with which a page shows that it loads.
const SLOW: f64 = 3_000.0;

impl Camera<'_> {
    /// Takes all of them.
    pub(super) async fn of_states(&mut self) -> anyhow::Result<()> {
        self.sign_in("").await;
        self.of_links().await?;
        self.of_print().await?;
        self.of_failures().await?;
        self.of_forms().await?;
        self.of_admin_dialogs().await
    }

    /// Waits for an element.
    async fn has(&self, css: &str) {
        eventually(&format!("the page to have {css}"), || async {
            (self.browser.count(css).await > 0).then_some(())
        })
        .await;
    }

    async fn run(&self, script: &str) {
        let _ = self.browser.run(script).await;
    }

    /// Lets requests fail whose URLs match one of these patterns.
    async fn block(&self, patterns: &[&str]) {
        self.browser.devtools("Network.enable", &json!({})).await;
        let blocked = json!({"urls": patterns});
        self.browser
            .devtools("Network.setBlockedURLs", &blocked)
            .await;
    }

    async fn of_links(&mut self) -> anyhow::Result<()> {
        let example = self.example;
        let proposed = format!("{}&action=approve", example.pending.approver_link);
        self.browser.open(&proposed).await;
        self.take_screen("decision-proposed", "Spare bulb").await?;
        self.browser.open(&example.reason.approver_link).await;
        self.click("Reject").await;
        self.take_screen("decision-reason-missing", "Say why you reject this.")
            .await?;
        self.browser.open(&example.long.approver_link).await;
        self.take("decision-long-title", "Show all").await?;
        self.run("sessionStorage.clear()").await;
        self.open(&format!("/tasks?taskId={}", example.pending.id))
            .await;
        let needed = "Open the link from the message again, or sign in as the person who decides.";
        self.take("link-needed", needed).await
    }

    async fn of_print(&mut self) -> anyhow::Result<()> {
        self.browser.open(&self.example.pending.approver_link).await;
        self.sees("Spare bulb").await;
        let print = json!({"media": "print"});
        self.browser
            .devtools("Emulation.setEmulatedMedia", &print)
            .await;
        self.run("dispatchEvent(new Event('beforeprint'))").await;
        self.take("decision-print", "Spare bulb").await?;
        let screen = json!({"media": ""});
        self.browser
            .devtools("Emulation.setEmulatedMedia", &screen)
            .await;
        self.browser.prefer(self.look.features).await;
        Ok(())
    }

    async fn of_failures(&mut self) -> anyhow::Result<()> {
        let link = &self.example.pending.approver_link;
        self.browser.open(link).await;
        self.sees("Spare bulb").await;
        // Translating takes longer than the text is shown.
        let loading = self.word("Loading …").await;
        self.block(&["*/approve"]).await;
        self.click("Approve").await;
        self.take_screen("decision-offline", "No connection: trying again …")
            .await?;
        self.block(&["*/people-task/*"]).await;
        self.browser.open(link).await;
        self.take("task-not-loaded", "The task could not be loaded")
            .await?;
        self.block(&["*/assets/tasks.js"]).await;
        self.browser.open(link).await;
        self.take_screen("page-not-loaded", "This page did not load completely.")
            .await?;
        self.block(&[]).await;
        self.browser.open("about:blank").await;
        self.browser.limit_network(SLOW, -1.0).await;
        self.browser.open(link).await;
        self.browser.sees(&loading).await;
        let screen = self.browser.picture().await;
        self.write("decision-loading", &screen)?;
        self.browser.set_online(true).await;
        self.sees("Spare bulb").await;
        Ok(())
    }

    async fn of_forms(&mut self) -> anyhow::Result<()> {
        self.sign_in(&self.example.requester).await;
        self.open("/").await;
        self.click("New task").await;
        self.fill("Title", "Clean the windows").await;
        self.fill("Approver (e-mail address)", "facility@localhost")
            .await;
        self.click("Create").await;
        self.has(".remark").await;
        self.take_screen("task-form-remark", "Cancel").await?;
        self.click("Cancel").await;
        self.click("New task").await;
        self.take_screen("task-form-restored", "This is what you wrote before.")
            .await?;
        self.open(&format!("/tasks?taskId={}", self.example.shared.id))
            .await;
        self.click("New link for the approver").await;
        self.take_screen("link-renewal", "Cancel").await?;
        self.has("dialog:not([data-new])").await;
        self.run("document.querySelector('dialog button:not([type])').click()")
            .await;
        self.take_screen("link-panel", "Copy link").await?;
        self.open("/admin").await;
        self.take("admin-refused", "To the start page").await?;
        self.sign_in(&self.example.approver).await;
        self.open(&format!("/tasks?taskId={}", self.example.pending.id))
            .await;
        self.click("Reassign").await;
        self.take_screen("task-reassign", "Cancel").await
    }

    async fn of_admin_dialogs(&mut self) -> anyhow::Result<()> {
        self.sign_in(&self.example.admin).await;
        self.open("/admin").await;
        self.sees("ada@example.com").await;
        self.run("document.querySelector('#selection input').click()")
            .await;
        self.take("admin-selection", "Sign out everywhere").await?;
        self.click("Deactivate").await;
        self.take_screen("admin-dialog", "Go back").await?;
        self.click("Go back").await;
        self.click("New user").await;
        self.take_screen("admin-new-user", "Cancel").await?;
        let email = format!("alan@{}.example", self.look.name);
        let deletion = self.example.deleted(&email)?;
        self.open(&format!("/admin?{deletion}")).await;
        self.take("admin-deletion", "This account is deleted.")
            .await?;
        self.open("/admin?view=audit").await;
        self.sees("grace@example.com").await;
        self.run("document.querySelector('details.fold').open = true")
            .await;
        self.take("admin-filters", "grace@example.com").await
    }
}
