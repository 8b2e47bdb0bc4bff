//! Addresses and links.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::reproduce::{self, Options};
use anabranch_lab::{html, run};
use anabranch_web::page::page_with;
use serde_json::json;

use crate::browser::Browser;
use crate::scenarios;
use crate::{assert_quiet, go, hashes, open, wait_for_run};

/// Sliders, laws and settings change the run; the address brings the same run back.
#[test]
fn an_address_brings_a_scene_back() {
    let Some(mut browser) = Browser::start("address") else { return };
    open(&mut browser, "");
    let first = hashes(&mut browser);
    let set = |browser: &mut Browser, id: &str, value: &str, event: &str| {
        browser.evaluate(&format!(
            "(() => {{ playground.sides.forEach((side) => {{ side.answer = null; }}); const place = document.getElementById('{id}'); place.value = {}; \
             place.dispatchEvent(new Event('{event}')); return 0; }})()",
            json!(value)
        ));
        wait_for_run(browser);
    };
    set(&mut browser, "scene-loss", "2", "input");
    set(&mut browser, "scene-rival", "cubic", "input");
    set(&mut browser, "law-b", "bbr", "change");
    browser.wait("playground.sides.length === 2 && location.hash.includes('b=')");
    wait_for_run(&mut browser);
    let changed = hashes(&mut browser);
    assert_ne!(changed[0], first[0]);
    assert_ne!(changed[0], changed[1]);
    let address = browser.evaluate("location.hash.slice(1)");
    go(&mut browser, "");
    go(&mut browser, address.as_str().unwrap());
    assert_eq!(hashes(&mut browser), changed);
    // A text of one's own travels as well.
    browser.evaluate("document.getElementById('toml').value = playground.sides[0].request.file.text.replace('seed = 1', 'seed = 7'), 0");
    browser.evaluate(
        "playground.sides.forEach((side) => { side.answer = null; }), document.getElementById('run-toml').click(), 0",
    );
    browser.wait("location.hash.startsWith('#toml=')");
    wait_for_run(&mut browser);
    let (text, address) = (hashes(&mut browser), browser.evaluate("location.hash.slice(1)"));
    assert_ne!(text[0], changed[0]);
    go(&mut browser, "");
    go(&mut browser, address.as_str().unwrap());
    assert_eq!(hashes(&mut browser), text);
    assert_quiet(&browser);
}

/// An address is anybody's. What is wrong in it is said as text, what is too large is not run, and no name in it becomes a part of the page.
#[test]
fn a_hostile_address_does_no_harm() {
    let Some(mut browser) = Browser::start("hostile") else { return };
    open(&mut browser, "");
    let error = "document.getElementById('error').textContent";
    let packed = |browser: &mut Browser, text: &str| {
        let script = format!(
            "(async () => {{ const bytes = new Uint8Array(await new Response(new Blob([{}]).stream().pipeThrough(new CompressionStream('deflate-raw'))).arrayBuffer()); \
             return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''); }})()",
            json!(text)
        );
        browser.evaluate(&script).as_str().unwrap().to_owned()
    };
    for (address, said) in [
        ("a=%5B%22%3Cimg+src%3Dx+onerror%3Dalert(1)%3E%22%2C%7B%7D%5D", "there is no law <img"),
        ("file=../../etc/passwd", "there is no file"),
        ("toml=%21%21", "Copy the whole link again"),
        ("a=%7B", "Copy the whole link again"),
        ("file=eval%2Falone.toml&variant=%5B", "Copy the whole link again"),
    ] {
        go(&mut browser, address);
        browser.wait(&format!("{error}.includes({})", json!(said)));
    }
    let page = browser.evaluate("document.querySelectorAll('script, img, iframe, object').length");
    for (text, said) in [
        (
            "# <img src=x onerror=alert(1)>\nduration = '9000s'\n[[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '1Mbit/s'\ndelay = '1ms'\n[[flow]]\nid = 'f'\nfrom = 'a'\nto = 'b'\ntransport = 'cbr'\nrate = '1Mbit/s'\n",
            "at most 3600 s",
        ),
        ("[[link]]\nid = '<script>alert(1)</script>'\n", "<script>"),
        (&"#".repeat(10 << 20), "too long"),
    ] {
        let packed = packed(&mut browser, text);
        go(&mut browser, &format!("toml={packed}"));
        browser.wait(&format!("{error}.includes({})", json!(said)));
    }
    // Numbers are held within the range of their slider.
    go(&mut browser, "rate=1e99&time=1e99&flows=-5&seed=x&size=NaN");
    assert_eq!(
        browser.evaluate("[playground.state.scene.rate, playground.state.scene.time, playground.state.scene.flows]"),
        json!([1000, 120, 1])
    );
    browser.evaluate("document.getElementById('stop').click(), 0");
    assert_eq!(browser.evaluate("document.querySelectorAll('script, img, iframe, object').length"), page);
    assert_quiet(&browser);
}

/// A report and the playground beside it: a click on a link runs the experiment, whatever its folder, with what it extends.
#[test]
fn a_link_of_a_report_opens_its_scenario() {
    let Some(mut browser) = Browser::start("links") else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a report, with 100 % of its links");
    fs::create_dir_all(&folder).unwrap();
    let read = |name: &str| {
        let mut base = |base: &str| Ok(scenarios::read(&format!("experiments/{base}")));
        let text = scenarios::read(&format!("experiments/{name}"));
        let document = Document::parse_with(name, &text, &mut base).unwrap();
        Experiment::parse(document).unwrap()
    };
    // The one extends another file; neither has a name that the playground knows.
    let experiments = ["mfast-2019/fig6.toml", "analytic/one-flow.toml"].map(read);
    let outcome =
        reproduce::reproduce(&experiments, Options { jobs: NonZeroUsize::MIN, seeds: None }, |_, _| ()).unwrap();
    fs::write(folder.join("report.html"), html::page_beside(&outcome, Some("playground.html"))).unwrap();
    let sources = experiments.iter().map(Experiment::document).flat_map(|document| {
        let bases = document.bases().iter().map(|base| (base.file.to_string(), base.text.to_string()));
        bases.chain([(document.file().to_owned(), document.text().to_owned())])
    });
    fs::write(folder.join("playground.html"), page_with(sources)).unwrap();
    for experiment in &experiments {
        browser.open(&folder.join("report.html"));
        browser.wait("document.querySelectorAll('p.play a').length === 2");
        let file = json!(experiment.file());
        browser.evaluate(&format!(
            "[...document.querySelectorAll('p.play a')].find(({{ hash }}) => hash.includes({file})).click(), 0"
        ));
        browser.wait("globalThis.playground !== undefined");
        wait_for_run(&mut browser);
        assert_eq!(browser.evaluate("playground.state.file"), file);
        let first = experiment.scenario(&experiment.variants()[0]).unwrap();
        assert_eq!(hashes(&mut browser), json!([run::run(&first).unwrap().hash]));
    }
    assert_quiet(&browser);
}
