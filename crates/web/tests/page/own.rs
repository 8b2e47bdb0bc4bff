//! Laws from files.

use std::fs;
use std::path::Path;

use anabranch_lab::own::Module;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::guest::{GROWS, module};
use crate::scenarios;
use crate::{assert_quiet, go, hashes, open, wait_for_hashes, wait_for_run};

/// Drops a file onto the page.
fn drop_file(browser: &mut Browser, name: &str, bytes: &[u8]) {
    browser.evaluate(&format!(
        "(() => {{ playground.sides.forEach((side) => {{ side.answer = null; }}); const transfer = new DataTransfer(); \
         transfer.items.add(new File([new Uint8Array({})], {})); \
         for (const kind of ['dragover', 'drop']) document.body.dispatchEvent(new DragEvent(kind, {{ dataTransfer: transfer, bubbles: true, cancelable: true }})); return 0; }})()",
        json!(bytes),
        json!(name)
    ));
}

/// What the interpreter makes of the runs that are shown.
fn interpreted(browser: &mut Browser, laws: &[(&str, &[u8])]) -> Value {
    let requests = browser.evaluate("playground.sides.map((side) => JSON.stringify(side.request))");
    let hash = |request: &Value| {
        let mut last = Value::Null;
        let mut modules = |wanted: &str| {
            let (name, bytes) = laws.iter().find(|(name, _)| *name == wanted).ok_or("not dropped")?;
            Module::new(name, bytes.to_vec()).map_err(|error| error.to_string())
        };
        let request = serde_json::from_str(request.as_str().unwrap()).unwrap();
        scenarios::asked(&request, &mut modules, &mut |answer| last = answer.clone());
        assert_eq!(last["kind"], "end", "{last}");
        last["hash"].clone()
    };
    requests.as_array().unwrap().iter().map(hash).collect()
}

#[track_caller]
fn wait_for_error(browser: &mut Browser, because: &str) {
    browser.wait(&format!("document.getElementById('error').textContent.includes({})", json!(because)));
}

/// A law is dropped, is in the lists with its setting, and runs; the address names it, and it is dropped again.
#[test]
fn dropped_law_runs_as_under_the_interpreter() {
    let Some(mut browser) = Browser::start("own") else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-exports");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    browser.call("Page.setDownloadBehavior", json!({ "behavior": "allow", "downloadPath": folder }));
    browser.resize(1400, 1000, false);
    open(&mut browser, "");
    let law = module(&format!(
        "{GROWS}(func (export \"init\") (f64.store (i32.const 1056) (f64.add (f64.const 1) (f64.load (i32.const 2064)))))"
    ));
    let laws: [(&str, &[u8]); 1] = [("mine.wasm", &law)];
    drop_file(&mut browser, "mine.wasm", &law);
    browser.wait("playground.state.laws[0].name === 'mine.wasm'");
    wait_for_run(&mut browser);
    assert_eq!(hashes(&mut browser), interpreted(&mut browser, &laws));
    let lists = "['law-a', 'law-b', 'scene-rival'].map((id) => [...document.querySelectorAll(`#${id} option`)].filter(({ value }) => value === 'mine.wasm').length)";
    assert_eq!(browser.evaluate(lists), json!([1, 1, 1]));
    assert_eq!(browser.evaluate("document.querySelector('#settings-a label').textContent"), "n");
    browser.evaluate("document.querySelector('#laws details').open = true, 0");
    browser.screenshot("own-1400.png");
    // Its setting.
    browser.evaluate(
        "(() => { playground.sides.forEach((side) => { side.answer = null; }); const field = document.querySelector('#settings-a input'); \
         field.value = '30'; field.dispatchEvent(new Event('change')); return 0; })()",
    );
    browser.wait("location.hash.includes('mine.wasm')");
    wait_for_run(&mut browser);
    let with_setting = hashes(&mut browser);
    assert_eq!(with_setting, interpreted(&mut browser, &laws));
    let text = browser.evaluate("playground.sides[0].request.file.text");
    assert!(text.as_str().unwrap().contains("cc = { plugin = \"mine.wasm\", n = 30 }"), "{text}");
    // The file of the scenario names the law, and the page says so.
    browser.evaluate("document.getElementById('export-toml').click(), 0");
    browser.wait("document.getElementById('told').textContent.includes('mine.wasm: put the file beside it')");
    // The link names it too.
    let address = browser.evaluate("location.hash.slice(1)");
    open(&mut browser, "");
    go(&mut browser, address.as_str().unwrap());
    wait_for_error(&mut browser, "needs the law mine.wasm, which an address cannot hold. Drop the file");
    assert_eq!(browser.evaluate("document.querySelectorAll('.panel, svg.network, table.numbers').length"), 0);
    drop_file(&mut browser, "mine.wasm", &law);
    browser.wait("document.getElementById('error').hidden");
    wait_for_run(&mut browser);
    assert_eq!(hashes(&mut browser), with_setting);
    // Beside another law, as the rival, and in a file of the suite.
    go(&mut browser, &format!("{}&b=%5B%22cubic%22%2C%7B%7D%5D", address.as_str().unwrap()));
    assert_eq!(hashes(&mut browser)[0], with_setting[0]);
    for address in ["rival=mine.wasm", "file=eval/alone.toml&a=%5B%22mine.wasm%22%2C%7B%22n%22%3A4%7D%5D"] {
        go(&mut browser, address);
        assert_eq!(hashes(&mut browser), interpreted(&mut browser, &laws), "{address}");
    }
    // Its packets, which are recorded by a run of their own.
    assert_eq!(browser.evaluate("playground.sides[0].watch(1, 1.1)"), true);
    assert_quiet(&browser);
}

/// A file is chosen in a dialogue, and a new build of it takes its place.
#[test]
fn chosen_law_is_replaced_by_its_next_build() {
    let Some(mut browser) = Browser::start("chosen") else { return };
    open(&mut browser, "time=5");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chosen");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mine.wasm");
    let builds = [GROWS.to_owned(), GROWS.replace("(f64.const 1)", "(f64.const 0.1)")].map(|more| module(&more));
    let mut seen = Vec::new();
    for build in &builds {
        fs::write(&file, build).unwrap();
        browser.evaluate("playground.sides.forEach((side) => { side.answer = null; }), 0");
        let input =
            browser.call("Runtime.evaluate", json!({ "expression": "document.getElementById('own-law-file')" }));
        browser.call("DOM.setFileInputFiles", json!({ "files": [file], "objectId": input["result"]["objectId"] }));
        browser.wait("playground.state.laws[0].name === 'mine.wasm'");
        wait_for_run(&mut browser);
        seen.push(hashes(&mut browser));
        assert_eq!(seen.last(), Some(&interpreted(&mut browser, &[("mine.wasm", build)])));
    }
    assert_ne!(seen[0], seen[1]);
    assert_quiet(&browser);
}

/// Nothing that is dropped stalls the page, or changes what is shown before it runs.
#[test]
fn hostile_file_gets_a_message() {
    let Some(mut browser) = Browser::start("hostile-files") else { return };
    open(&mut browser, "time=5");
    let first = hashes(&mut browser);
    let imports = wat::parse_str("(module (import \"env\" \"now\" (func)))").unwrap();
    let refused: [(&str, Vec<u8>, &str); 5] = [
        ("text.wasm", b"hello".to_vec(), "is no WASM module"),
        ("imports.wasm", imports, "imports `now` of `env`, and there is nothing to import"),
        ("none.wasm", module(""), "exports no hook in which a window could grow"),
        ("mine.txt", module(GROWS), "is not taken for a law"),
        ("<img src=x onerror=alert(1)>.wasm", module(GROWS), "is not taken for a law"),
    ];
    for (name, bytes, because) in refused {
        drop_file(&mut browser, name, &bytes);
        wait_for_error(&mut browser, because);
        assert_eq!(
            browser.evaluate("document.querySelectorAll('#law-a option[value$=wasm], img').length"),
            0,
            "{name}"
        );
    }
    // A file that is far too large is not read.
    browser.evaluate(
        "(() => { const transfer = new DataTransfer(); transfer.items.add(new File([new Uint8Array(1e8)], 'large.wasm')); \
         document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true })); return 0; })()",
    );
    wait_for_error(&mut browser, "large.wasm has 100 MB, and a law has at most 4 MiB");
    // What misbehaves when it runs ends its run, and the next one is as any other.
    let acks = |what: &str| module(&format!("(func (export \"on_ack\") {what})"));
    let wrong = [
        ("endless.wasm", acks("(loop br 0)"), "`on_ack` did not end within 1000000 instructions"),
        ("deep.wasm", module("(func $f (export \"on_ack\") (call $f))"), "calls itself more than 500 deep"),
        ("trap.wasm", acks("unreachable"), "`on_ack` trapped"),
        ("nan.wasm", acks("(f64.store (i32.const 1056) (f64.const nan))"), "left a window of NaN"),
        ("grow.wasm", acks("(loop (drop (memory.grow (i32.const 1))) (br 0))"), "did not end within"),
    ];
    for (name, bytes, because) in wrong {
        drop_file(&mut browser, name, &bytes);
        wait_for_error(&mut browser, because);
        wait_for_run(&mut browser);
    }
    go(&mut browser, "time=5");
    assert_eq!(hashes(&mut browser), first);
    // More instances than a browser has addresses for, each with all the memory that it may have.
    let greedy = module(&format!("{GROWS}(func (export \"init\") (drop (memory.grow (i32.const 63))))"));
    drop_file(&mut browser, "greedy.wasm", &greedy);
    browser.wait("playground.state.laws[0].name === 'greedy.wasm'");
    wait_for_run(&mut browser);
    let text = "duration = '1s'\n[[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '1Gbit/s'\ndelay = '1ms'\n[[flow]]\nid = 'f#'\ncount = 400\nfrom = 'a'\nto = 'b'\n\
                transport = 'anabranch'\ncc = { plugin = 'greedy.wasm' }\n";
    browser.evaluate(&format!(
        "playground.sides.forEach((side) => {{ side.answer = null; }}), document.getElementById('toml').value = {}, document.getElementById('run-toml').click(), 0",
        json!(text)
    ));
    wait_for_run(&mut browser);
    wait_for_error(&mut browser, "no room for so many flows with a law from a file");
    go(&mut browser, "time=5");
    wait_for_hashes(&mut browser, &first);
    assert_quiet(&browser);
}
