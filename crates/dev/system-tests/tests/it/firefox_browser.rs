//! Firefox, controlled by Marionette: the protocol that it has built in, which needs no driver.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use local_stack::packages::on_path;
use serde_json::{Value, json};

use testkit::eventually;

const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
const ADVICE: &str = "this test needs a browser: apt-get install firefox-esr";
/// It takes a free port, and asks nothing of other servers.
const PREFERENCES: &str = "user_pref('marionette.port', 0);
user_pref('app.update.enabled', false);
user_pref('browser.startup.homepage', 'about:blank');
user_pref('datareporting.policy.dataSubmissionEnabled', false);
user_pref('network.captive-portal-service.enabled', false);
user_pref('network.connectivity-service.enabled', false);
user_pref('services.settings.server', 'http://127.0.0.1:9');
user_pref('toolkit.telemetry.enabled', false);
";

/// A browser with its own profile. Dropping it stops the browser and deletes the profile.
#[derive(Debug)]
pub(crate) struct Firefox {
    process: Child,
    connection: BufReader<TcpStream>,
    // The last field, so that the folder is deleted after the browser has stopped.
    _profile: tempfile::TempDir,
}

impl Firefox {
    /// Starts a browser.
    ///
    /// # Panics
    /// Firefox is missing, or does not start.
    pub(crate) async fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        fs::write(profile.path().join("user.js"), PREFERENCES).unwrap();
        let process = Command::new(on_path("firefox-esr").expect(ADVICE))
            .args(["--headless", "--marionette", "--no-remote", "--profile"])
            .arg(profile.path())
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let file = profile.path().join("MarionetteActivePort");
        let port: u16 = eventually("Firefox to start", || async {
            fs::read_to_string(&file).ok()?.trim().parse().ok()
        })
        .await;
        let connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
        connection.set_read_timeout(Some(REPLY_TIMEOUT)).unwrap();
        let mut browser = Self {
            process,
            connection: BufReader::new(connection),
            _profile: profile,
        };
        // Firefox speaks first.
        let _ = browser.receive();
        let _ = browser.command("WebDriver:NewSession", &json!({}));
        browser
    }

    /// Opens a URL and waits until the page is loaded.
    pub(crate) fn open(&mut self, url: &str) {
        let _ = self.command("WebDriver:Navigate", &json!({"url": url}));
    }

    /// Runs a script in the page and returns its result.
    pub(crate) fn run(&mut self, script: &str) -> Value {
        let parameters = json!({"script": script, "args": []});
        self.command("WebDriver:ExecuteScript", &parameters)["value"].clone()
    }

    /// Presses the button with this id, as a person does.
    ///
    /// # Panics
    /// There is none.
    pub(crate) fn press(&mut self, id: &str) {
        let wanted = json!({"using": "css selector", "value": format!("#{id}")});
        let found = self.command("WebDriver:FindElement", &wanted)["value"].clone();
        let element = found.as_object().and_then(|ids| ids.values().next());
        let _ = self.command("WebDriver:ElementClick", &json!({"id": element.unwrap()}));
    }

    fn command(&mut self, name: &str, parameters: &Value) -> Value {
        let message = json!([0, 1, name, parameters]).to_string();
        let stream = self.connection.get_mut();
        write!(stream, "{}:{message}", message.len()).unwrap();
        let reply = self.receive();
        assert!(reply[2].is_null(), "{name}: {}", reply[2]);
        reply[3].clone()
    }

    /// A message is its length, a colon, and JSON.
    fn receive(&mut self) -> Value {
        let mut length = Vec::new();
        self.connection.read_until(b':', &mut length).unwrap();
        let length = String::from_utf8(length).unwrap();
        let mut message = vec![0; length.trim_end_matches(':').parse().unwrap()];
        self.connection.read_exact(&mut message).unwrap();
        serde_json::from_slice(&message).unwrap()
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
