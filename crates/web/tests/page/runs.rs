//! What runs, and what is ended.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::scenarios;
use crate::scenarios::answer;
use crate::{assert_quiet, go, hashes, open, wait_for_hashes, wait_for_run};

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
    let patience = browser.evaluate("playground.sides[0].engine.patience");
    browser.evaluate("playground.sides[0].engine.patience = 1500, 0");
    let messages =
        "transport = 'anabranch'\nworkload = { kind = 'messages', bytes = '1GB', count = 1000000, every = '1us' }";
    let said = run(&mut browser, "1Gbit/s", messages);
    assert!(said.contains("was ended after 1.5 s") && said.contains("make it shorter"), "{said}");
    // What has failed before it began shows nothing of the run before it.
    let said = run(&mut browser, "1Gbit/s", "transport = 'none'");
    assert!(said.contains("none"), "{said}");
    assert_eq!(browser.evaluate("document.querySelectorAll('.panel, svg.network, table.numbers').length"), 0);
    browser.evaluate(&format!("playground.sides[0].engine.patience = {patience}, 0"));
    browser.evaluate(
        "playground.sides.forEach((side) => { side.answer = null; }), document.getElementById('to-sliders').click(), 0",
    );
    wait_for_run(&mut browser);
    wait_for_hashes(&mut browser, &first);
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
