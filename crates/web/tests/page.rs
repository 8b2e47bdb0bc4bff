//! Tests of the page in a real browser. Without one (Debian's package `chromium`) the tests say so and pass, unless `ANABRANCH_REQUIRE_BROWSER` is 1.
//! `ANABRANCH_SCREENSHOTS=FOLDER` keeps screenshots.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

#[path = "../../lab/tests/report/browser.rs"]
#[expect(dead_code, reason = "the report's tests print, and drag")]
mod browser;
mod scenarios;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::reproduce::{self, Options};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::{html, run};
use anabranch_web::answer;
use anabranch_web::page::{page, page_with};
use serde_json::{Value, json};

use crate::browser::Browser;

/// The page on a disk.
static PAGE: LazyLock<PathBuf> = LazyLock::new(|| {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("playground.html");
    fs::write(&file, page()).unwrap();
    file
});

/// Opens the page with an address of its own, and waits for the end of its first run.
#[track_caller]
fn open(browser: &mut Browser, address: &str) {
    browser.open(&PAGE);
    wait_for_run(browser);
    if !address.is_empty() {
        go(browser, address);
    }
}

/// Goes to another address of the page.
#[track_caller]
fn go(browser: &mut Browser, address: &str) {
    browser.evaluate(&format!(
        "playground.sides.forEach((side) => {{ side.answer = null; }}), location.hash = {}, 0",
        json!(address)
    ));
    wait_for_run(browser);
}

#[track_caller]
fn wait_for_run(browser: &mut Browser) {
    let is_done = "globalThis.playground !== undefined && playground.sides.length > 0 && playground.sides.every((side) => side.answer) && document.getElementById('stop').hidden";
    browser.wait(is_done);
}

/// The hashes of the runs that are shown.
fn hashes(browser: &mut Browser) -> Value {
    browser.evaluate("playground.sides.map((side) => side.answer.hash ?? side.answer.message)")
}

#[track_caller]
fn assert_quiet(browser: &Browser) {
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let is_own = |url: &&str| !["file://", "data:", "about:", "blob:"].iter().any(|scheme| url.starts_with(scheme));
    let foreign: Vec<&str> = browser.requests().into_iter().filter(is_own).collect();
    assert!(foreign.is_empty(), "the page asked for {foreign:?}");
}

#[test]
fn page_fits_in_dark_and_light_on_desk_and_phone() {
    let Some(mut browser) = Browser::start("playground") else { return };
    for (width, height, is_phone) in [(1400, 1000, false), (390, 844, true)] {
        browser.resize(width, height, is_phone);
        for scheme in ["light", "dark"] {
            browser.prefer(scheme);
            open(&mut browser, "");
            browser.screenshot(&format!("first-{width}-{scheme}.png"));
            go(&mut browser, "a=%5B%22anabranch%22%2C%7B%7D%5D&b=%5B%22cubic%22%2C%7B%7D%5D&loss=1&rival=reno");
            browser.screenshot(&format!("beside-{width}-{scheme}.png"));
            let widest = browser.evaluate("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(widest <= u64::from(width), "a page of {width} pixels is {widest} wide");
            let drawn = browser
                .evaluate("playground.sides.map((side) => side.charts.panels.filter((panel) => panel.plot).length)");
            assert!(drawn.as_array().unwrap().iter().all(|count| count.as_u64().unwrap() >= 4), "{drawn}");
        }
    }
    assert_quiet(&browser);
}

/// Two sides are read beside each other: the same quantity has the same scale and the same height.
#[test]
fn sides_have_the_same_scales_in_the_same_rows() {
    let Some(mut browser) = Browser::start("scales") else { return };
    browser.resize(1400, 1800, false);
    open(&mut browser, "");
    // What a receiver holds differs by a factor of five, and only one side has streams.
    go(&mut browser, "tour=0.2");
    let look = "playground.sides.map((side) => Object.fromEntries(side.charts.panels.filter(({ plot }) => plot).map(({ title, plot, box }) => \
                [title, [plot.scales.y.max, Math.round(box.getBoundingClientRect().bottom)]])))";
    browser.wait(&format!("(() => {{ const [a, b] = {look}; return a.Window[0] > 40 && b.Window[0] > 40; }})()"));
    let both = browser.evaluate(look);
    let (left, right) = (both[0].as_object().unwrap(), both[1].as_object().unwrap());
    assert!(
        left.len() >= 6 && right.contains_key("Goodput of each stream") && !left.contains_key("Goodput of each stream")
    );
    for (title, panel) in left {
        assert_eq!(Some(panel), right.get(title), "{title}");
    }
    // A part of the run has a scale of its own, again the same.
    browser.evaluate("playground.sides.forEach(({ charts }) => charts.panels.forEach(({ plot }) => plot?.setScale('x', { min: 39.5, max: 39.7 }))), 0");
    browser.wait(&format!(
        "(() => {{ const [a, b] = {look}; return a.Goodput[0] < 3 && a.Goodput[0] === b.Goodput[0]; }})()"
    ));
    assert_quiet(&browser);
}

/// Sliders are there as long as they say what is shown, and on a phone the scene is above the curves and closed at first.
#[test]
fn controls_are_of_what_is_shown() {
    let Some(mut browser) = Browser::start("controls") else { return };
    browser.resize(1400, 1000, false);
    open(&mut browser, "");
    let hidden = "['sliders', 'laws', 'to-sliders'].map((id) => document.getElementById(id).hidden)";
    assert_eq!(browser.evaluate(hidden), json!([false, false, true]));
    for (address, expected) in [
        ("file=eval/alone.toml", json!([true, false, false])),
        ("file=experiments/mfast-2019/fig6.toml", json!([true, true, false])),
    ] {
        go(&mut browser, address);
        assert_eq!(browser.evaluate(hidden), expected, "{address}");
    }
    browser.evaluate("document.getElementById('to-sliders').click(), 0");
    browser.wait("!document.getElementById('sliders').hidden && location.hash === ''");
    assert_eq!(browser.evaluate("document.getElementById('scene').open"), true);
    browser.resize(390, 844, true);
    open(&mut browser, "");
    assert_eq!(browser.evaluate("document.getElementById('scene').open"), false);
    browser.evaluate("document.querySelector('#scene > summary').click(), 0");
    let place = "document.getElementById('law-a').getBoundingClientRect().bottom < document.getElementById('content').getBoundingClientRect().top";
    browser.wait(place);
    browser.screenshot("scene-390.png");
    assert_quiet(&browser);
}

/// A law with settings is in a file of the suite with them, and a second law runs the same file beside it.
#[test]
fn a_file_of_the_suite_takes_laws_with_their_settings() {
    let Some(mut browser) = Browser::start("laws") else { return };
    open(&mut browser, "");
    go(
        &mut browser,
        "file=eval/alone.toml&a=%5B%22anabranch%22%2C%7B%22alpha%22%3A7%7D%5D&b=%5B%22cubic%22%2C%7B%7D%5D",
    );
    let texts = browser.evaluate("playground.sides.map((side) => side.begin.toml)");
    assert!(texts[0].as_str().unwrap().contains("cc = { name = \"anabranch\", alpha = 7 }"), "{}", texts[0]);
    assert!(texts[1].as_str().unwrap().contains("cc = { name = \"cubic\" }"), "{}", texts[1]);
    assert_ne!(hashes(&mut browser)[0], hashes(&mut browser)[1]);
    assert_quiet(&browser);
}

/// Waits for the only file that was saved into a folder, and takes it away.
#[track_caller]
fn saved(folder: &Path) -> Vec<u8> {
    for _ in 0..200 {
        let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        if let Some(file) = files.find(|file| file.extension().is_none_or(|extension| extension != "crdownload")) {
            let bytes = fs::read(&file).unwrap();
            if !bytes.is_empty() {
                fs::remove_file(file).unwrap();
                return bytes;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("nothing was saved")
}

/// What the laboratory makes of a text.
fn hash_of(text: &[u8]) -> String {
    let text = std::str::from_utf8(text).unwrap();
    let document = Document::parse("scenario.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run::run(&Scenario::parse(&document).unwrap_or_else(|error| panic!("{error}\n{text}"))).unwrap().hash
}

/// What is exported is what is shown: `sim run` takes the scenario and gives the same hash, the rows are the points of the curves, and the pictures have them.
#[test]
fn exports_are_what_is_shown() {
    let Some(mut browser) = Browser::start("exports") else { return };
    browser.resize(1400, 1800, false);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exports");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    browser.call("Page.setDownloadBehavior", json!({ "behavior": "allow", "downloadPath": folder }));
    open(&mut browser, "");
    let export = |browser: &mut Browser, id: &str| {
        browser.evaluate(&format!("document.getElementById('{id}').click(), 0"));
        saved(&folder)
    };
    for address in [
        "loss=1&jitter=2&reroute=2&fade=50&rival=cubic&flows=2&queue=red&a=%5B%22anabranch%22%2C%7B%22alpha%22%3A9%7D%5D&b=%5B%22bbr%22%2C%7B%7D%5D",
        // A file that extends another one, with ns-2's clock.
        "tour=1.1",
        // With links that are written out by `count`, and a seed of its own.
        "tour=4.4",
        "file=eval/aqm.toml&b=%5B%22cubic%22%2C%7B%7D%5D",
        "file=scenes/paths.toml",
    ] {
        go(&mut browser, address);
        let shown = hashes(&mut browser);
        for (index, id) in ["export-toml", "export-toml-beside"].into_iter().enumerate() {
            let text = export(&mut browser, id);
            assert_eq!(json!(hash_of(&text)), shown[index], "{address}, {id}: {}", String::from_utf8_lossy(&text));
        }
    }
    let rows = String::from_utf8(export(&mut browser, "export-csv")).unwrap();
    let mut lines = rows.lines();
    assert_eq!(lines.next(), Some("law,quantity,unit,curve,time_s,value"));
    let points = browser.evaluate(
        "playground.sides.flatMap((side) => side.charts.panels.flatMap(({ points }) => points)).reduce((sum, [times]) => sum + times.length, 0)",
    );
    assert_eq!(json!(lines.clone().count()), points);
    // Two paths of 10 Mbit/s carry more than one of them.
    let best = |law: &str| {
        let start = format!("{law},Goodput,Mbit/s,f,");
        lines
            .clone()
            .filter_map(|line| line.strip_prefix(&start)?.split(',').nth(1)?.parse::<f64>().ok())
            .fold(0.0, f64::max)
    };
    assert!(best("\"two paths, one fails\"") > 15.0 && best("one path") < 10.0, "{rows:.300}");
    let svg = String::from_utf8(export(&mut browser, "export-svg")).unwrap();
    let drawn = browser.evaluate(&format!(
        "(() => {{ const parsed = new DOMParser().parseFromString({}, 'image/svg+xml'); return [parsed.querySelectorAll('parsererror').length, \
         parsed.documentElement.namespaceURI, [...parsed.querySelectorAll('path[stroke-width]')].length, \
         [...parsed.querySelectorAll('text')].filter((text) => text.textContent.includes(' (')).length]; }})()",
        json!(svg)
    ));
    let panels = browser.evaluate("playground.sides.flatMap((side) => side.charts.panels.filter(({ plot }) => plot)).map(({ drawn }) => drawn.length)");
    let panels: Vec<u64> = panels.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
    assert_eq!(drawn, json!([0, "http://www.w3.org/2000/svg", panels.iter().sum::<u64>(), panels.len()]), "{svg:.500}");
    assert!(!svg.contains("NaN") && !svg.contains("var("), "{svg:.500}");
    let png = export(&mut browser, "export-png");
    // PNG (ISO/IEC 15948): a signature, then a chunk with width and height.
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert!(
        number(16) > 800 && number(20) > 900 && png.len() > 20_000,
        "{} × {}, {} bytes",
        number(16),
        number(20),
        png.len()
    );
    if let Ok(folder) = std::env::var("ANABRANCH_SCREENSHOTS") {
        fs::write(Path::new(&folder).join("export.png"), png).unwrap();
        fs::write(Path::new(&folder).join("export.svg"), svg).unwrap();
    }
    assert_quiet(&browser);
}

/// The longest wait for the first picture in milliseconds. It takes less than a second on a machine without other work.
const PICTURE_MS_MAX: f64 = 20_000.0;

/// The page's module gives in a browser what the sources give.
#[test]
fn browser_gives_the_hashes_of_the_sources() {
    let Some(mut browser) = Browser::start("hashes") else { return };
    open(&mut browser, "");
    for (request, hash) in scenarios::with_hashes() {
        let given =
            browser.evaluate(&format!("playground.ask({request}).then(({{ hash, message }}) => hash ?? message)"));
        assert_eq!(given, json!(hash), "{} {}", request["file"]["name"], request["variant"]);
    }
    assert_quiet(&browser);
}

/// The page runs what its sliders and lists say.
#[test]
fn page_gives_the_hash_of_the_sources() {
    let Some(mut browser) = Browser::start("hash") else { return };
    open(&mut browser, "");
    let request = browser.evaluate("JSON.stringify(playground.sides[0].request)");
    let mut last = Value::Null;
    answer(request.as_str().unwrap(), &mut |answer| last = answer.clone());
    assert_eq!(hashes(&mut browser), json!([last["hash"]]));
    let first = browser.evaluate("playground.firstPicture").as_f64().unwrap();
    assert!(first < PICTURE_MS_MAX, "the first picture was there after {first} ms");
    // The law in a scenario of the suite is the page's, and a file of the repository has the hash of `sim run`, with ns-2's clock.
    go(&mut browser, "file=eval/alone.toml");
    assert_eq!(browser.evaluate("playground.sides[0].answer.kind"), "end");
    go(
        &mut browser,
        "file=experiments/mfast-2019/table2.toml&variant=%5B%22SCTP%22%5D&variant=%5B%22Fast+TCP+%288%2C+2%29%22%5D",
    );
    let measures = browser.evaluate(
        "playground.sides.map((side) => side.answer.measures.find(({ name }) => name === 'Average Throughput').value)",
    );
    // mfast-2019, Table 2, in kbit/s and cut off.
    let shown: Vec<u32> = measures.as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as u32).collect();
    assert_eq!(shown, [1096, 1463]);
    assert_quiet(&browser);
}

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

/// Every scenario that the list has can be opened, and what is not too large for a page begins to run.
#[test]
fn every_scenario_of_the_list_opens() {
    let Some(mut browser) = Browser::start("all") else { return };
    open(&mut browser, "");
    let failed = browser.evaluate(
        "(async () => { const failed = []; for (const { value } of document.querySelectorAll('#files option')) { if (value === '') continue; \
         const answer = await playground.open(value); if (answer.kind !== 'opened') failed.push([value, answer.message]); } return failed; })()",
    );
    let failed: Vec<&str> = failed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_array().unwrap())
        .map(|one| {
            assert!(one[1].as_str().unwrap().contains("the playground is for small runs"), "{one:?}");
            one[0].as_str().unwrap()
        })
        .collect();
    assert_eq!(failed, Vec::<&str>::new());
    assert_quiet(&browser);
}

/// A scenario that would take all memory, or hours, is ended and says what to do; the next run is as any other.
#[test]
fn a_run_that_takes_too_much_is_ended() {
    let Some(mut browser) = Browser::start("bombs") else { return };
    open(&mut browser, "");
    let first = hashes(&mut browser);
    let run = |browser: &mut Browser, rate: &str, flow: &str| {
        let text = format!(
            "duration = '3600s'\n[[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '{rate}'\ndelay = '1ms'\n[[flow]]\nid = 'f'\nfrom = 'a'\nto = 'b'\n{flow}\n"
        );
        browser.evaluate(&format!(
            "playground.sides.forEach((side) => {{ side.answer = null; }}), document.getElementById('toml').value = {}, document.getElementById('run-toml').click(), 0",
            json!(text)
        ));
        wait_for_run(browser);
        browser.evaluate("document.getElementById('error').textContent").as_str().unwrap().to_owned()
    };
    let said = run(&mut browser, "1Tbit/s", "transport = 'cbr'\nrate = '1Tbit/s'\npacket = '1B'");
    assert!(said.contains("more memory than a page may have") && said.contains("`anabranch sim run`"), "{said}");
    browser.evaluate("playground.sides[0].engine.patience = 1500, 0");
    let messages =
        "transport = 'anabranch'\nworkload = { kind = 'messages', bytes = '1GB', count = 1000000, every = '1us' }";
    let said = run(&mut browser, "1Gbit/s", messages);
    assert!(said.contains("was ended after 1.5 s") && said.contains("make it shorter"), "{said}");
    // What has failed before it began shows nothing of the run before it.
    let said = run(&mut browser, "1Gbit/s", "transport = 'none'");
    assert!(said.contains("none"), "{said}");
    assert_eq!(browser.evaluate("document.querySelectorAll('.panel, svg.network, table.numbers').length"), 0);
    browser.evaluate(
        "playground.sides.forEach((side) => { side.answer = null; }), document.getElementById('to-sliders').click(), 0",
    );
    wait_for_run(&mut browser);
    assert_eq!(hashes(&mut browser), first);
    assert_quiet(&browser);
}

/// A run that takes hours is ended by the button, and by the next run.
#[test]
fn a_long_run_is_ended_by_stop_and_by_the_next_one() {
    let Some(mut browser) = Browser::start("stop") else { return };
    open(&mut browser, "");
    let first = hashes(&mut browser);
    let text = "duration = '3600s'\n[[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '1Gbit/s'\ndelay = '1ms'\n[[flow]]\nid = 'f'\nfrom = 'a'\nto = 'b'\n\
                transport = 'anabranch'\nworkload = { kind = 'messages', bytes = '1GB', count = 1000000, every = '1us' }\n";
    let begin = |browser: &mut Browser| {
        browser.evaluate(&format!(
            "document.getElementById('toml').value = {}, document.getElementById('run-toml').click(), 0",
            json!(text)
        ));
        browser.wait("playground.sides[0].title === 'this text' && playground.sides[0].engine.isBusy && !document.getElementById('stop').hidden");
    };
    begin(&mut browser);
    browser.evaluate("document.getElementById('stop').click(), 0");
    browser.wait("document.getElementById('told').textContent === 'stopped' && document.getElementById('stop').hidden");
    assert_eq!(
        browser.evaluate("playground.sides.map(({ engine }) => [engine.worker, engine.isBusy])"),
        json!([[null, false]])
    );
    begin(&mut browser);
    browser.evaluate("playground.sides[0].answer = null, document.getElementById('to-sliders').click(), 0");
    wait_for_run(&mut browser);
    assert_eq!(hashes(&mut browser), first);
    assert_eq!(browser.evaluate("document.getElementById('error').hidden"), true);
    assert_quiet(&browser);
}

/// Data go from the sender, on the left, to the receiver, and acknowledgements back.
#[test]
fn packets_move_to_their_receivers() {
    let Some(mut browser) = Browser::start("ways") else { return };
    open(&mut browser, "");
    // How far a packet of each kind on the bottleneck goes while it is on the wire, in the units of the picture.
    let way = |reverse: &str| {
        format!(
            "(async () => {{ const side = playground.sides[0]; await side.watch(6, 6.5); const {{ picture }} = side; \
             const link = picture.links.indexOf('path{reverse}'); const hop = picture.hops.find((one) => one[0] === link && one[5] > one[4] && !one[6]); picture.load([hop]); \
             const at = (part) => {{ picture.draw(hop[4] + part * (hop[5] - hop[4])); return Number(document.querySelector('circle.packet').getAttribute('cx')); }}; \
             const moved = at(0.9) - at(0.1); side.loaded = null; return moved; }})()"
        )
    };
    // Columns are 146 apart.
    let data = browser.evaluate(&way("")).as_f64().unwrap();
    let answers = browser.evaluate(&way(".reverse")).as_f64().unwrap();
    assert!((100.0..146.0).contains(&data) && (-146.0..-100.0).contains(&answers), "{data}, {answers}");
    assert_quiet(&browser);
}

/// A curve of steps has a value at every time of its panel from its first point on: what it was last.
#[test]
fn steps_hold_until_the_next() {
    let Some(mut browser) = Browser::start("steps") else { return };
    open(&mut browser, "flows=2&rival=cubic");
    let curves = browser.evaluate(
        "(() => { const { plot, points } = playground.sides[0].charts.panels.find(({ title }) => title === 'Window'); const [times, ...columns] = plot.data; \
         return columns.map((column, index) => [column.slice(times.indexOf(points[index][0][0])).filter((value) => value == null).length, \
         points[index][0].filter((time, point) => points[index][0][point + 1] !== time && column[times.indexOf(time)] !== points[index][1][point]).length, \
         new Set(column).size > new Set(points[index][1]).size + 1]); })()",
    );
    assert_eq!(curves, json!([[0, 0, false], [0, 0, false], [0, 0, false]]));
    assert_quiet(&browser);
}

/// Every step of every tour runs to its end, and shows what it cites.
#[test]
fn tours_run_to_their_ends() {
    let Some(mut browser) = Browser::start("tours") else { return };
    browser.resize(1400, 1000, false);
    open(&mut browser, "");
    // A citation is one of a claim in the file that the step opens.
    let uncited = "playground.tours.flatMap(({ steps }) => steps).filter(({ file, cite }) => !playground.files.get(file).includes(cite)).map(({ cite }) => cite)";
    assert_eq!(browser.evaluate(uncited), json!([]));
    assert_eq!(browser.evaluate("playground.tours.map(({ steps }) => steps.length)"), json!([5, 5, 5, 5, 5]));
    for tour in 0..5 {
        for step in 0..5 {
            go(&mut browser, &format!("tour={tour}.{step}"));
            let kinds = browser.evaluate("playground.sides.map((side) => side.answer.kind)");
            assert!(
                kinds.as_array().unwrap().iter().all(|kind| kind == "end"),
                "tour {tour}, step {step}: {:?}",
                hashes(&mut browser)
            );
            assert_eq!(browser.evaluate("document.getElementById('tour').hidden"), false);
            assert_eq!(
                browser.evaluate("playground.state.variants.length === playground.sides.length"),
                true,
                "tour {tour}, step {step}"
            );
            browser.screenshot(&format!("tour-{tour}-{step}.png"));
        }
    }
    assert_quiet(&browser);
}

/// The packets of a part of the run are on the links of the picture, and move.
#[test]
fn packets_are_shown_and_move() {
    let Some(mut browser) = Browser::start("packets") else { return };
    browser.resize(1400, 1000, false);
    open(&mut browser, "");
    let places = "JSON.stringify([...document.querySelectorAll('circle.packet')].map((dot) => [dot.getAttribute('cx'), dot.getAttribute('cy')]))";
    browser.evaluate("document.getElementById('play').click(), 0");
    browser.wait("document.querySelectorAll('circle.packet').length > 5");
    let before = browser.evaluate(places);
    browser.wait(&format!("{places} !== {before}", before = json!(before.as_str().unwrap())));
    browser.screenshot("packets.png");
    browser.evaluate("document.getElementById('play').click(), 0");
    assert_eq!(browser.evaluate("document.getElementById('play').textContent"), "Show packets");
    assert_quiet(&browser);
}

/// Each control has a name for those who hear the page, and can be reached by the tab key.
#[test]
fn controls_have_names() {
    let Some(mut browser) = Browser::start("names") else { return };
    open(&mut browser, "");
    let nameless = "[...document.querySelectorAll('button, input, select, textarea, progress')].filter((one) => !(one.labels?.length > 0 && one.labels[0].textContent.trim()) \
                    && !one.textContent.trim() && !one.getAttribute('aria-label')).map((one) => one.id)";
    assert_eq!(browser.evaluate(nameless), json!([]));
    assert_eq!(browser.evaluate("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"]):not(main)').length"), 0);
    let names = browser.evaluate(
        "playground.sides[0].charts.panels.filter(({ box }) => box).map(({ box }) => box.getAttribute('aria-label'))",
    );
    assert!(
        names.as_array().unwrap().iter().all(|name| name.as_str().is_some_and(|name| name.contains("at the end"))),
        "{names}"
    );
    assert_quiet(&browser);
}

/// Where one packet is missing, FAST's application gets nothing, and MFast's four of five streams: the curves of the tour show it.
#[test]
fn tour_shows_the_head_of_line() {
    let Some(mut browser) = Browser::start("head") else { return };
    browser.resize(1400, 1800, false);
    open(&mut browser, "");
    go(&mut browser, "tour=0.1");
    // mfast-2019, section V.E.4: the application layer receives no data from 39.1 to 39.35 seconds.
    let least = "playground.sides.map((side) => { const { points: [[times, values]] } = side.charts.panels[0]; return Math.min(...values.filter((_, index) => times[index] > 39.12 && times[index] < 39.33)); })";
    let least = browser.evaluate(least);
    assert_eq!(least[0].as_f64(), Some(0.0), "{least}");
    assert!(least[1].as_f64().unwrap() > 0.3, "{least}");
    // What comes after the part that is drawn is in no bin: the link has 1.5 Mbit/s, and of a stream that goes on at once comes more for an instant.
    let last = browser.evaluate("playground.sides.map((side) => side.charts.panels[0].points[0][1].at(-1))");
    assert!(last.as_array().unwrap().iter().all(|last| last.as_f64().unwrap() < 2.0), "{last}");
    browser.screenshot("head-of-line.png");
    for scene in ["streams", "paths", "mfast"] {
        go(&mut browser, &format!("file=scenes/{scene}.toml"));
        assert_eq!(
            browser.evaluate("playground.sides.map((side) => side.answer.kind)"),
            json!(["end", "end"]),
            "{scene}"
        );
        browser.screenshot(&format!("scene-{scene}.png"));
    }
    assert_quiet(&browser);
}

/// `ANABRANCH_AXE` names a file of axe-core (npm), by which the page is checked for those who hear it, in both themes.
#[test]
fn axe_finds_no_violation() {
    let Ok(axe) = std::env::var("ANABRANCH_AXE") else {
        println!("skipped: ANABRANCH_AXE names no file of axe-core");
        return;
    };
    let axe = fs::read_to_string(axe).unwrap();
    let Some(mut browser) = Browser::start("axe") else { return };
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        for address in ["", "tour=0.1", "b=%5B%22cubic%22%2C%7B%7D%5D", "file=eval/alone.toml", "file=none"] {
            open(&mut browser, address);
            browser.evaluate(&format!("{axe}; 0"));
            let found = browser.evaluate("axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])]))");
            assert_eq!(found, json!([]), "{scheme}, {address}: {found:#}");
        }
    }
}
