//! What is taken along.

use std::fs;
use std::path::Path;

use anabranch_lab::document::Document;
use anabranch_lab::run;
use anabranch_lab::scenario::Scenario;
use serde_json::json;

use crate::browser::Browser;
use crate::{assert_quiet, go, hashes, open};

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
