//! Chromium, controlled by labels, names of buttons and visible text.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use local_stack::Identity;
use local_stack::packages::on_path;
use rig::{Call, Client};
use serde_json::{Value, json};
use testkit::{Http, eventually};

const ADVICE: &str = "this test needs a browser: apt-get install chromium chromium-driver";
const READY: &str = "started successfully on port ";
/// How often chromedriver is started at most.
const STARTS: usize = 5;
/// The key of an element's id in the WebDriver protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Where Debian's package `chromium-headless-shell` has Chromium without a window: the same engine for a third less of the
/// processor.
const HEADLESS_SHELL: &str = "/usr/lib/chromium/chromium-headless-shell";
const FLAGS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
];

/// The screen of a browser, in CSS pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Its width.
    pub(crate) width: u32,
    /// Its height.
    pub(crate) height: u32,
    /// Device pixels for each CSS pixel.
    pub(crate) pixel_ratio: f64,
    /// Whether it is touched, as that of a phone.
    pub(crate) is_touched: bool,
}

impl Screen {
    /// That of a phone.
    pub(crate) const PHONE: Self = Self {
        width: 390,
        height: 844,
        pixel_ratio: 2.0,
        is_touched: true,
    };
    /// That of a notebook.
    pub(crate) const DESKTOP: Self = Self {
        width: 1280,
        height: 800,
        pixel_ratio: 1.0,
        is_touched: false,
    };
}

/// A browser with its own profile. Dropping it stops the browser and deletes the profile.
#[derive(Debug)]
pub(crate) struct Browser {
    driver: Child,
    webdriver: Http,
    session: String,
    screen: Screen,
    // The last field, so that the folder is deleted after the browser has stopped.
    _home: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser with the screen of a phone.
    pub(crate) async fn phone() -> Self {
        Self::with(Screen::PHONE).await
    }

    /// Starts a browser.
    pub(crate) async fn with(screen: Screen) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut starts = (0..STARTS).filter_map(|_| start_driver(home.path()));
        let (driver, port) = starts.next().expect("chromedriver must print its port");
        let mut browser = Self {
            driver,
            webdriver: Http::to(([127, 0, 0, 1], port).into()),
            session: String::new(),
            screen,
            _home: home,
        };
        let capabilities = Self::capabilities(screen);
        let reply = browser.webdriver.post("/session").json(&capabilities);
        let value = value_of(&reply.send().await.expect(200).json);
        browser.session = value["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    /// Chromium's windows are at least 500 pixels wide, so the screen is emulated.
    fn capabilities(screen: Screen) -> Value {
        let metrics = json!({
            "width": screen.width, "height": screen.height, "pixelRatio": screen.pixel_ratio,
            "touch": screen.is_touched, "mobile": screen.is_touched,
        });
        let mut options = json!({"args": FLAGS, "mobileEmulation": {"deviceMetrics": metrics}});
        if Path::new(HEADLESS_SHELL).is_file() {
            options["binary"] = json!(HEADLESS_SHELL);
        }
        json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }}})
    }

    /// Sets features such as `prefers-color-scheme` for this page and those that follow.
    pub(crate) async fn prefer(&self, features: &[(&str, &str)]) {
        let features = features.iter();
        let features = features.map(|(name, value)| json!({"name": name, "value": value}));
        let features: Vec<_> = features.collect();
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": features}))
            .await;
    }

    /// Sets the language that this page and those that follow are asked for in.
    pub(crate) async fn speak(&self, language: &str) {
        let agent = self.run("return navigator.userAgent").await;
        let header = json!({"userAgent": agent, "acceptLanguage": language});
        self.devtools("Emulation.setUserAgentOverride", &header)
            .await;
    }

    /// Runs a command of the DevTools protocol.
    pub(crate) async fn devtools(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.command("goog/cdp/execute", &body).await
    }

    /// Slows the network down. A negative throughput in bytes per second is unlimited.
    pub(crate) async fn limit_network(&self, latency_ms: f64, throughput: f64) {
        let conditions = json!({"offline": false, "latency": latency_ms, "throughput": throughput});
        let body = json!({"network_conditions": conditions});
        self.command("chromium/network_conditions", &body).await;
    }

    /// The whole page as a PNG file: the screen is as high as the page meanwhile.
    pub(crate) async fn whole_picture(&self) -> Vec<u8> {
        let metrics = self.devtools("Page.getLayoutMetrics", &json!({})).await;
        let height = metrics["cssContentSize"]["height"].as_u64().unwrap();
        self.emulate_height(height).await;
        let picture = self.picture().await;
        self.emulate_height(self.screen.height.into()).await;
        picture
    }

    async fn emulate_height(&self, height: u64) {
        let Screen {
            width,
            pixel_ratio,
            is_touched,
            ..
        } = self.screen;
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": pixel_ratio, "mobile": is_touched,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics)
            .await;
    }

    /// The screen as a PNG file.
    pub(crate) async fn picture(&self) -> Vec<u8> {
        let format = json!({"format": "png"});
        let captured = self.devtools("Page.captureScreenshot", &format).await;
        STANDARD.decode(captured["data"].as_str().unwrap()).unwrap()
    }

    /// Opens a URL and waits until the page is loaded.
    pub(crate) async fn open(&self, url: &str) {
        self.command("url", &json!({"url": url})).await;
    }

    /// Opens another tab and goes on there. Returns what [`Browser::go_to_tab`] takes to come back.
    pub(crate) async fn open_tab(&self) -> Value {
        let path = format!("/session/{}/window", self.session);
        let reply = self.webdriver.get(&path).send().await.expect(200);
        let earlier = value_of(&reply.json);
        let opened = self.command("window/new", &json!({"type": "tab"})).await;
        self.go_to_tab(&opened["handle"]).await;
        earlier
    }

    /// All tabs.
    pub(crate) async fn tabs(&self) -> Vec<Value> {
        let path = format!("/session/{}/window/handles", self.session);
        let reply = self.webdriver.get(&path).send().await.expect(200);
        value_of(&reply.json).as_array().unwrap().clone()
    }

    /// Goes on in a tab.
    pub(crate) async fn go_to_tab(&self, tab: &Value) {
        self.command("window", &json!({"handle": tab})).await;
    }

    /// Goes on in the first frame of the page.
    pub(crate) async fn go_to_frame(&self) {
        self.command("frame", &json!({"id": 0})).await;
    }

    /// Reloads the page.
    pub(crate) async fn reload(&self) {
        self.command("refresh", &json!({})).await;
    }

    /// The URL in the address bar.
    pub(crate) async fn address(&self) -> String {
        let value = self.run("return location.href").await;
        value.as_str().unwrap().to_owned()
    }

    /// Waits until the page shows this text.
    pub(crate) async fn sees(&self, text: &str) {
        eventually(&format!("the page to show “{text}”"), || async {
            self.text().await.contains(text).then_some(())
        })
        .await;
    }

    /// The visible text of the page. There is none while a page is left for another one.
    pub(crate) async fn text(&self) -> String {
        let value = self.run("return document.body?.innerText ?? ''").await;
        value.as_str().unwrap().to_owned()
    }

    /// The number of elements that match a selector.
    pub(crate) async fn count(&self, css: &str) -> u64 {
        let script = format!("return document.querySelectorAll({}).length", json!(css));
        self.run(&script).await.as_u64().unwrap()
    }

    /// Clicks the button with this name.
    pub(crate) async fn click(&self, name: &str) {
        self.click_at(&format!("//button[normalize-space()={}]", quoted(name)))
            .await;
    }

    /// Clicks the link with this name.
    pub(crate) async fn follow(&self, name: &str) {
        self.click_at(&format!("//a[normalize-space()={}]", quoted(name)))
            .await;
    }

    /// Presses one key: a character, or the code point of a special key in the WebDriver protocol.
    pub(crate) async fn press(&self, key: char) {
        let actions = ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key}));
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.command("actions", &json!({"actions": [keyboard]}))
            .await;
    }

    /// Connects the browser with the network or disconnects it.
    pub(crate) async fn set_online(&self, online: bool) {
        let conditions = json!({"offline": !online, "latency": 0, "throughput": -1});
        let body = json!({"network_conditions": conditions});
        self.command("chromium/network_conditions", &body).await;
    }

    async fn click_at(&self, xpath: &str) {
        let _ = eventually(&format!("{xpath} to be clicked"), || async {
            let button = self.visible(xpath).await;
            let path = format!("/session/{}/element/{button}/click", self.session);
            let reply = self.webdriver.post(&path).json(&json!({})).send().await;
            // The page may have replaced the element meanwhile, or moved it while the text above it grew.
            let covered = reply.json["value"]["error"] == "element click intercepted";
            let again = reply.status == 404 || covered;
            (!again).then(|| reply.expect(200))
        })
        .await;
    }

    /// Replaces the text of the field with this label.
    pub(crate) async fn fill(&self, label: &str, text: &str) {
        let label = quoted(label);
        let field = self
            .visible(&format!(
                "//*[self::input or self::textarea][@id=//label[normalize-space()={label}]/@for]"
            ))
            .await;
        self.command(&format!("element/{field}/clear"), &json!({}))
            .await;
        self.command(&format!("element/{field}/value"), &json!({"text": text}))
            .await;
    }

    /// Runs a script in the page and returns its result.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []}))
            .await
    }

    /// New messages in the console: script errors and violations of the page's policy.
    pub(crate) async fn console_errors(&self) -> Vec<String> {
        let entries = self.command("se/log", &json!({"type": "browser"})).await;
        let entries = entries.as_array().unwrap().iter();
        entries
            // Chromium also reports responses such as 409, which are not errors of the page.
            .filter(|entry| entry["source"] != "network")
            .map(|entry| entry["message"].to_string())
            .collect()
    }

    /// Closes the browser. Fails if the console has errors.
    pub(crate) async fn assert_no_errors(self) {
        assert_eq!(self.console_errors().await, Vec::<String>::new());
    }

    /// Waits until a matching element is visible, scrolls to it as the browser does to what gets the focus, and returns its id:
    /// chromedriver takes no account of what stays at the bottom of the screen. A button that decides takes no press that may
    /// belong to the one that opened the page, and what was just shown none that may belong to the one before.
    async fn visible(&self, xpath: &str) -> String {
        eventually(&format!("the page to show {xpath}"), || async {
            let script = format!(
                "const found = document.evaluate({}, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE, null);
                const one = found.singleNodeValue;
                one?.scrollIntoView({{ block: 'nearest', behavior: 'instant' }});
                const isEarly = one?.closest('[data-new]') || (one?.closest('#decide') && performance.now() < 600);
                return one?.checkVisibility() && !isEarly ? one : null",
                json!(xpath)
            );
            let found = self.run(&script).await;
            Some(found[ELEMENT].as_str()?.to_owned())
        })
        .await
    }

    async fn command(&self, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}/{path}", self.session);
        let reply = self.webdriver.post(&path).json(body).send().await;
        value_of(&reply.expect(200).json)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ending the session stops the browser; killing only the driver would leave it running.
        let session = Call::new("DELETE", format!("/session/{}", self.session));
        let _ = Client::new(self.webdriver.base()).once(&session);
        let identity = i32::try_from(self.driver.id()).ok().and_then(Identity::of);
        if let Some(identity) = identity {
            let _ = identity.kill();
        }
        let _ = self.driver.wait();
    }
}

/// Starts chromedriver. `None` if it ended: it takes a port that is free for IPv4, and ends if that is not free for IPv6.
fn start_driver(home: &Path) -> Option<(Child, u16)> {
    let mut driver = Command::new(on_path("chromedriver").expect(ADVICE))
        .arg("--port=0")
        // All files are deleted with the folder, the browser's profile too.
        .env("HOME", home)
        .env("TMPDIR", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let port = port_of(&mut driver);
    if port.is_none() {
        driver.wait().unwrap();
    }
    port.map(|port| (driver, port))
}

/// The port that the driver chose. Its output is read to the end, so that its pipe never fills up.
fn port_of(driver: &mut Child) -> Option<u16> {
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once(READY)?;
        port.trim_end_matches('.').parse().ok()
    })?;
    thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    Some(port)
}

fn value_of(answer: &Value) -> Value {
    answer["value"].clone()
}

/// A string literal in XPath, which has no escapes.
fn quoted(text: &str) -> String {
    let quote = if text.contains('"') { '\'' } else { '"' };
    format!("{quote}{text}{quote}")
}
