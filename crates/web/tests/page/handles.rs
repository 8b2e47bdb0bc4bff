//! The picture's handles: by mouse, by finger and by key, in step with the sliders.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::{assert_quiet, go, hashes, open, wait_for_run};

/// The middle of a handle in the window.
fn middle(browser: &mut Browser, key: &str) -> (f64, f64) {
    let place = browser.evaluate(&format!(
        "(() => {{ const box = document.querySelector('.handle[data-key={key}] .pill').getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
    ));
    (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
}

/// A control's value, what its slider says and what its handle says.
fn shown(browser: &mut Browser, key: &str) -> (f64, String, String) {
    let shown = browser.evaluate(&format!(
        "[playground.state.scene.{key}, document.getElementById('shown-{key}').textContent, document.querySelector('.handle[data-key={key}]').getAttribute('aria-valuetext')]"
    ));
    let text = |at: usize| shown[at].as_str().unwrap().to_owned();
    (shown[0].as_f64().unwrap(), text(1), text(2))
}

fn forget(browser: &mut Browser) {
    browser.evaluate("playground.sides.forEach((side) => { side.answer = null; }), 0");
}

fn press(browser: &mut Browser, key: &str) {
    for kind in ["keyDown", "keyUp"] {
        browser.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
    }
}

/// Each handle moves its quantity, its slider and the run, and keeps the focus.
#[test]
fn dragged_handle_moves_its_slider_and_the_run() {
    let Some(mut browser) = Browser::start("handles") else { return };
    browser.resize(1400, 1000, false);
    open(&mut browser, "");
    let mut before = hashes(&mut browser);
    for (key, (x, y), unit) in
        [("rate", (0.0, -60.0), "Mbit/s"), ("delay", (70.0, 0.0), "ms"), ("size", (-60.0, 0.0), "packets")]
    {
        let from = middle(&mut browser, key);
        let (value, ..) = shown(&mut browser, key);
        forget(&mut browser);
        browser.drag(from, (from.0 + x, from.1 + y));
        wait_for_run(&mut browser);
        let (now, slider, handle) = shown(&mut browser, key);
        let is_more = x - y > 0.0;
        assert!(if is_more { now > 1.5 * value } else { now < value / 1.5 }, "{key}: {value} to {now}");
        assert_eq!((&slider, &handle), (&format!("{now} {unit}"), &format!("{now} {unit}")));
        let place =
            browser.evaluate(&format!("Number(document.getElementById('scene-{key}').value)")).as_f64().unwrap();
        assert!((place - now.log10()).abs() < 0.02, "{key}: the slider is at {place} for {now}");
        assert_eq!(browser.evaluate("document.activeElement.dataset.key"), json!(key));
        let hash = hashes(&mut browser);
        assert_ne!(hash, before, "{key}");
        before = hash;
    }
    assert!(browser.evaluate("location.hash").as_str().unwrap().contains("rate="));
    browser.screenshot("handles-1400.png");
    // A slider moves its handle.
    forget(&mut browser);
    browser.evaluate(
        "(() => { const slider = document.getElementById('scene-rate'); slider.value = 2; slider.dispatchEvent(new Event('input')); return 0; })()",
    );
    wait_for_run(&mut browser);
    assert_eq!(shown(&mut browser, "rate"), (100.0, "100 Mbit/s".to_owned(), "100 Mbit/s".to_owned()));
    // Another button drags nothing, and a scene that the sliders do not describe has no handles.
    let displayed = "[...document.querySelectorAll('svg.handles')].map(({ style }) => style.display)";
    assert_eq!(browser.evaluate(displayed), json!([""]));
    go(&mut browser, "file=experiments/mfast-2019/fig6.toml");
    assert_eq!(browser.evaluate(displayed), json!(["none"]));
    go(&mut browser, "b=%5B%22cubic%22%2C%7B%7D%5D");
    assert_eq!(browser.evaluate(displayed), json!(["", ""]));
    // The handles of both sides are in step.
    let from = middle(&mut browser, "delay");
    forget(&mut browser);
    browser.drag(from, (from.0 + 40.0, from.1));
    wait_for_run(&mut browser);
    let texts = browser.evaluate(
        "[...document.querySelectorAll('.handle[data-key=delay]')].map((one) => one.getAttribute('aria-valuetext'))",
    );
    assert!(texts[0] == texts[1] && texts[0] != "20 ms", "{texts}");
    assert_quiet(&browser);
}

/// The arrow keys always change what is shown, also over the logarithm, whose steps are smaller than two digits.
#[test]
fn keys_move_handles() {
    let Some(mut browser) = Browser::start("keys") else { return };
    open(&mut browser, "time=2");
    for (key, focus) in [
        ("rate", "document.querySelector('.handle[data-key=rate]')"),
        ("size", "document.querySelector('.handle[data-key=size]')"),
    ] {
        browser.evaluate(&format!("{focus}.focus(), 0"));
        // Not at an end.
        for start in ["Home", "PageUp", "PageUp"] {
            press(&mut browser, start);
        }
        for (press_key, is_more) in [
            ("ArrowUp", true),
            ("ArrowRight", true),
            ("ArrowDown", false),
            ("ArrowLeft", false),
            ("PageUp", true),
            ("PageDown", false),
        ] {
            let (before, ..) = shown(&mut browser, key);
            press(&mut browser, press_key);
            let (after, slider, handle) = shown(&mut browser, key);
            assert!(if is_more { after > before } else { after < before }, "{focus} {press_key}: {before}, {after}");
            assert_eq!(slider, handle);
        }
        press(&mut browser, "Home");
        let (least, ..) = shown(&mut browser, key);
        assert!((least - if key == "rate" { 0.5 } else { 2.0 }).abs() < 1e-9, "{least}");
        press(&mut browser, "ArrowUp");
        assert!(shown(&mut browser, key).0 > least, "{focus}");
        press(&mut browser, "End");
        let (most, ..) = shown(&mut browser, key);
        assert!((most - if key == "rate" { 1000.0 } else { 2000.0 }).abs() < 1e-9, "{most}");
        press(&mut browser, "ArrowUp");
        assert!((shown(&mut browser, key).0 - most).abs() < 1e-9, "{focus}");
        browser.evaluate("document.getElementById('stop').click(), 0");
    }
    let roles = browser.evaluate(
        "[...document.querySelectorAll('.handle')].map((one) => ['role', 'tabindex', 'aria-label', 'aria-orientation'].map((name) => one.getAttribute(name)))",
    );
    assert_eq!(
        roles,
        json!([
            ["slider", "0", "Rate of the path", "vertical"],
            ["slider", "0", "Delay of the path", "horizontal"],
            ["slider", "0", "Size of the queue", "horizontal"]
        ])
    );
    assert_quiet(&browser);
}

/// A finger drags a handle on a phone, and does not scroll the page by it; the handles do not cover each other.
#[test]
fn finger_drags_a_handle() {
    let Some(mut browser) = Browser::start("finger") else { return };
    browser.resize(390, 844, true);
    browser.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": true, "maxTouchPoints": 1 }));
    for address in ["", "flows=8&rival=cubic"] {
        open(&mut browser, address);
        let boxes = browser.evaluate(
            "[...document.querySelectorAll('.handle .pill')].map((one) => one.getBoundingClientRect()).map(({ left, right, top, bottom }) => [left, right, top, bottom])",
        );
        let boxes: Vec<Vec<f64>> = serde_json::from_value(boxes).unwrap();
        for (index, one) in boxes.iter().enumerate() {
            assert!(one[0] >= 0.0 && one[1] <= 390.0, "{one:?}");
            for other in &boxes[index + 1..] {
                let is_apart = one[1] <= other[0] || other[1] <= one[0] || one[3] <= other[2] || other[3] <= one[2];
                assert!(is_apart, "{one:?} {other:?}");
            }
        }
        browser.screenshot(&format!("handles-390-{}.png", address.len()));
    }
    open(&mut browser, "");
    let (x, y) = middle(&mut browser, "rate");
    let (before, ..) = shown(&mut browser, "rate");
    let point = |x: f64, y: f64| json!([{ "x": x, "y": y }]);
    forget(&mut browser);
    for (kind, points) in [
        ("touchStart", point(x, y)),
        ("touchMove", point(x, y - 30.0)),
        ("touchMove", point(x, y - 60.0)),
        ("touchEnd", Value::Array(Vec::new())),
    ] {
        browser.call("Input.dispatchTouchEvent", json!({ "type": kind, "touchPoints": points }));
    }
    wait_for_run(&mut browser);
    let (after, slider, handle) = shown(&mut browser, "rate");
    assert!(after > 1.5 * before && slider == handle, "{before}, {after}");
    assert_eq!(browser.evaluate("scrollY"), 0);
    assert_quiet(&browser);
}
