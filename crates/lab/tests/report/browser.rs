//! A headless Chromium, controlled by its DevTools protocol over a pipe: messages are JSON that ends with a NUL.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The longest wait for an answer: a machine with several other builds is slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// The browser with one page. It ends when this is dropped, also after a panic.
pub(crate) struct Browser {
    child: Child,
    /// `None` once the browser is told to end.
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// What the page reported, in order.
    events: Vec<Value>,
    profile: PathBuf,
}

impl Browser {
    /// Starts the installed browser. If there is none, prints so and returns `None`, or panics if `ANABRANCH_REQUIRE_BROWSER` is 1.
    #[expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]
    pub(crate) fn start(name: &str) -> Option<Self> {
        let is_there = |program: &&str| {
            Command::new("sh")
                .args(["-c", &format!("command -v {program}")])
                .output()
                .is_ok_and(|found| found.status.success())
        };
        let Some(program) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there) else {
            let is_required = std::env::var("ANABRANCH_REQUIRE_BROWSER").is_ok_and(|value| value == "1");
            assert!(!is_required, "no chromium is installed: apt-get install chromium");
            println!("skipped: no chromium is installed");
            return None;
        };
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chromium-{name}-{}", std::process::id()));
        fs::create_dir_all(&profile).unwrap();
        // The browser reads from file 3 and writes to file 4. A shell can open those; Rust alone cannot without `unsafe`.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>&1", program])
            .args(["--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-background-networking"])
            // Tests run as root in containers, which have a small /dev/shm and no graphics.
            .args(["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .env("HOME", &profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self { child, input, messages, next: 0, session: None, events: Vec::new(), profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Sends a command and returns what it answers.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.ask(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a command and returns what it answers, or its error.
    #[track_caller]
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.as_mut().expect("it was not told to go").write_all(&bytes).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut message = self.messages.recv_timeout(left).unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == self.next {
                let error = message["error"].take();
                return if error.is_null() { Ok(message["result"].take()) } else { Err(error) };
            }
            self.events.push(message);
        }
    }

    /// Opens a file and waits until it is loaded.
    #[track_caller]
    pub(crate) fn open(&mut self, file: &Path) {
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'");
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        self.try_evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    #[track_caller]
    fn try_evaluate(&mut self, expression: &str) -> Result<Value, Value> {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.ask("Runtime.evaluate", parameters)?;
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {:#}", answer["exceptionDetails"]);
        Ok(answer["result"]["value"].take())
    }

    /// Waits until an expression holds. A page that goes to another one in the middle of an answer gives an error: the next has the value.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        let leaves = |error: &Value| error["message"].as_str().is_some_and(|text| text.contains("navigated"));
        loop {
            match self.try_evaluate(expression) {
                Ok(Value::Bool(true)) => return,
                Ok(_) => {}
                Err(error) => assert!(leaves(&error), "{expression}: {error}"),
            }
            assert!(Instant::now() < deadline, "in vain: {expression}; {:#?}", self.complaints());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sets the size of the window, in CSS pixels.
    pub(crate) fn resize(&mut self, width: u32, height: u32, is_phone: bool) {
        let scale = if is_phone { 2 } else { 1 };
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": is_phone }),
        );
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    /// Presses the mouse at one point and lets it go at another.
    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let steps = (1..=4).map(|step| {
            let part = f64::from(step) / 4.0;
            ("mouseMoved", (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part))
        });
        let begin = [("mouseMoved", from), ("mousePressed", from)];
        for (kind, (x, y)) in begin.into_iter().chain(steps).chain([("mouseReleased", to)]) {
            let (button, buttons) = if kind == "mouseMoved" && (x, y) == from { ("none", 0) } else { ("left", 1) };
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Clicks twice, as people do.
    pub(crate) fn double_click(&mut self, (x, y): (f64, f64)) {
        for (kind, count) in [("mousePressed", 1), ("mouseReleased", 1), ("mousePressed", 2), ("mouseReleased", 2)] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": count });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Moves the mouse.
    pub(crate) fn hover(&mut self, (x, y): (f64, f64)) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y, "button": "none" }));
    }

    /// Takes a screenshot, if `ANABRANCH_SCREENSHOTS` names a folder.
    pub(crate) fn screenshot(&mut self, name: &str) {
        let Ok(folder) = std::env::var("ANABRANCH_SCREENSHOTS") else { return };
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        fs::create_dir_all(&folder).unwrap();
        fs::write(Path::new(&folder).join(name), decoded(answer["data"].as_str().unwrap())).unwrap();
    }

    /// The page as it would be printed.
    pub(crate) fn print(&mut self) -> Vec<u8> {
        let answer = self.call(
            "Page.printToPDF",
            json!({ "printBackground": true, "preferCSSPageSize": true, "paperWidth": 8.27, "paperHeight": 11.69 }),
        );
        decoded(answer["data"].as_str().unwrap())
    }

    /// Errors, warnings and exceptions of the page.
    pub(crate) fn complaints(&self) -> Vec<&Value> {
        let is_bad = |event: &&Value| match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => {
                ["error", "warning", "assert"].iter().any(|kind| event["params"]["type"] == *kind)
            }
            "Log.entryAdded" => ["error", "warning"].iter().any(|level| event["params"]["entry"]["level"] == *level),
            _ => false,
        };
        self.events.iter().filter(is_bad).collect()
    }

    /// The URLs that the page requested, itself included.
    pub(crate) fn requests(&self) -> Vec<&str> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A browser whose pipe is closed ends by itself, with all its processes. One that hangs is killed.
        drop(self.input.take());
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}

/// Base64 (RFC 4648), as the protocol sends files.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |sign: u8| match sign {
        b'A'..=b'Z' => sign - b'A',
        b'a'..=b'z' => sign - b'a' + 26,
        b'0'..=b'9' => sign - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let group = |signs: &[u8]| {
        let signs: Vec<u8> = signs.iter().copied().filter(|&sign| sign != b'=').collect();
        let bits =
            signs.iter().fold(0_u32, |bits, &sign| bits << 6 | u32::from(digit(sign))) << (6 * (4 - signs.len()));
        bits.to_be_bytes()[1..signs.len()].to_vec()
    };
    text.as_bytes().chunks(4).flat_map(group).collect()
}
