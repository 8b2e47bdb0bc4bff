//! What the page looks like, and how it is read and heard.

use std::fs;

use serde_json::json;

use crate::browser::Browser;
use crate::{assert_quiet, go, open};

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

/// The picture that README shows, which `cargo xtask screenshot` takes: two laws on one path, all of it in the window.
#[test]
fn picture_of_readme_shows_two_laws() {
    let Some(mut browser) = Browser::start("readme") else { return };
    browser.resize(1280, 800, false);
    browser.prefer("light");
    open(&mut browser, "");
    go(&mut browser, "a=%5B%22anabranch%22%2C%7B%7D%5D&b=%5B%22cubic%22%2C%7B%7D%5D&loss=1");
    let titles = browser.evaluate("[...document.querySelectorAll('.side > h2')].map((title) => title.textContent)");
    assert_eq!(titles, json!(["anabranch", "cubic"]));
    // The two curves that README names are above the lower edge.
    let lower = browser.evaluate("playground.sides.flatMap((side) => side.charts.panels.slice(0, 2)).map(({ box }) => Math.round(box.getBoundingClientRect().bottom))");
    assert!(lower.as_array().unwrap().iter().all(|edge| edge.as_u64().unwrap() <= 800), "{lower}");
    let time = "getComputedStyle(document.querySelector('.side .u-legend .u-series')).visibility";
    assert_eq!(browser.evaluate(time), "hidden", "no time is under the cursor");
    browser.screenshot("playground.png");
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
