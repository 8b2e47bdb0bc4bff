//! Tests of the report in a real browser. Without one (Debian's package `chromium`) the tests say so and pass, unless
//! `ANABRANCH_REQUIRE_BROWSER` is 1. `ANABRANCH_SCREENSHOTS=FOLDER` keeps screenshots.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

mod browser;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anabranch_lab::document::Document;
use anabranch_lab::evaluation::Contender;
use anabranch_lab::experiment::{Experiment, is_group};
use anabranch_lab::field::{self, Family, Request};
use anabranch_lab::html;
use anabranch_lab::parallel::jobs_default;
use anabranch_lab::reproduce::{Options, reproduce};
use serde_json::json;

use crate::browser::Browser;

/// Writes the report of some experiments, with few seeds.
fn report(name: &str, experiments: &[Experiment], seeds: u32) -> PathBuf {
    let outcome = reproduce(experiments, Options { jobs: jobs_default(), seeds: Some(seeds) }, |_, _| ()).unwrap();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
    fs::write(&file, html::page(&outcome)).unwrap();
    file
}

/// The report of an experiment with tables, statements, figures, deviations, and text that tries to break out of its place.
static FIXTURE: LazyLock<PathBuf> = LazyLock::new(|| {
    let document = Document::parse("experiments/test-2000/table1.toml", include_str!("fixture.toml")).unwrap();
    report("fixture", &[Experiment::parse(document).unwrap()], 4)
});

/// Every experiment of this repository.
fn committed() -> Vec<Experiment> {
    let sorted = |folder: &Path| {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let files = sorted(&folder).into_iter().filter(|path| is_group(path)).flat_map(|paper| sorted(&paper));
    let parse = |file: PathBuf| {
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        let mut base = |name: &str| Ok(fs::read_to_string(folder.join("..").join(name)).unwrap());
        let text = fs::read_to_string(&file).unwrap();
        Experiment::parse(Document::parse_with(&format!("experiments/{name}"), &text, &mut base).unwrap()).unwrap()
    };
    let experiments = files.filter(|file| file.extension().is_some_and(|extension| extension == "toml")).map(parse);
    experiments.filter(|experiment| !experiment.paper.is_empty()).collect()
}

/// Brings every figure into view, so that it is drawn.
#[track_caller]
fn draw_all(browser: &mut Browser) {
    browser.wait("globalThis.anabranchCharts !== undefined");
    let figures = browser.evaluate("anabranchCharts.length").as_u64().unwrap();
    for figure in 0..figures {
        browser.evaluate(&format!("anabranchCharts[{figure}].element.scrollIntoView(), 0"));
        browser.wait(&format!("anabranchCharts[{figure}].isDrawn"));
        browser.wait(&format!("anabranchCharts[{figure}].plots.every((plot) => plot.status === 1)"));
    }
}

/// The number of colours in each chart, the empty canvas included.
const COLOURS: &str = "new Promise((done) => requestAnimationFrame(() => done(anabranchCharts.flatMap((chart) => chart.plots.map((plot) => {
    const { width, height } = plot.ctx.canvas;
    const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(plot.ctx.canvas, 0, 0);
    return new Set(new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer)).size;
})))))";

#[track_caller]
fn assert_drawn(browser: &mut Browser) {
    let colours = browser.evaluate(COLOURS);
    for colours in colours.as_array().unwrap() {
        assert!(colours.as_u64().unwrap() > 8, "axes, labels and curves have more colours than {colours}");
    }
}

#[track_caller]
fn assert_quiet(browser: &Browser) {
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let foreign: Vec<&str> = browser
        .requests()
        .into_iter()
        .filter(|url| !["file://", "data:", "about:"].iter().any(|scheme| url.starts_with(scheme)))
        .collect();
    assert!(foreign.is_empty(), "the page asked for {foreign:?}");
    assert_eq!(
        browser.requests().iter().filter(|url| url.starts_with("file://")).count(),
        1,
        "itself and nothing else"
    );
}

#[track_caller]
fn assert_fits(browser: &mut Browser, width: u32) {
    let widest = browser.evaluate("document.documentElement.scrollWidth");
    assert!(widest.as_u64().unwrap() <= u64::from(width), "a page of {width} pixels is {widest} wide");
}

/// Tables that are wider than their place, and by how much: on the right side the verdict would be cut off.
const CUT: &str = "[...document.querySelectorAll('.scroll')].filter((place) => place.querySelector('table.claims, table.checklist'))
    .map((place) => [place.scrollWidth - place.clientWidth, place.getAttribute('aria-label')]).filter(([cut]) => cut > 0)";

/// A4 less its margins, in pixels.
const PAPER: u32 = 688;

/// The range of time of each panel of the first figure.
const TIMES: &str = "anabranchCharts[0].plots.map((plot) => [plot.scales.x.min, plot.scales.x.max])";

/// A point of a panel of the first figure, in parts of its width and height.
fn point(browser: &mut Browser, panel: usize, x: f64, y: f64) -> (f64, f64) {
    let place = browser.evaluate(&format!(
        "(() => {{ const box = anabranchCharts[0].plots[{panel}].over.getBoundingClientRect();
         return [box.left + box.width * {x}, box.top + box.height * {y}]; }})()"
    ));
    (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
}

#[test]
fn charts_draw_zoom_together_and_reset() {
    let Some(mut browser) = Browser::start("charts") else { return };
    browser.resize(1280, 1000, false);
    browser.open(&FIXTURE);
    draw_all(&mut browser);
    assert_drawn(&mut browser);
    let whole = json!([[0.0, 20.0], [0.0, 20.0], [0.0, 20.0]]);
    browser.evaluate("anabranchCharts[0].element.scrollIntoView({ block: 'center' }), 0");
    assert_eq!(browser.evaluate(TIMES), json!([[0, 20], [0, 20], [0, 20]]));
    assert_eq!(browser.evaluate("anabranchCharts[0].reset.hidden"), true);

    let (from, to) = (point(&mut browser, 0, 0.25, 0.5), point(&mut browser, 0, 0.5, 0.5));
    browser.drag(from, to);
    browser.wait(&format!("{TIMES}.every(([min, max]) => Math.abs(min - 5) < 0.1 && Math.abs(max - 10) < 0.1)"));
    let times = browser.evaluate(TIMES);
    assert!(times[0] == times[1] && times[0] == times[2], "all panels show one time: {times}");
    assert_eq!(browser.evaluate("anabranchCharts[0].reset.hidden"), false);
    assert_drawn(&mut browser);

    let place = point(&mut browser, 2, 0.5, 0.5);
    browser.hover(place);
    let legend = "[...anabranchCharts[0].element.querySelectorAll('.u-series:first-child .u-value')].map((value) => value.textContent)";
    browser.wait(&format!("{legend}.length === 3 && {legend}.every((time) => Math.abs(parseFloat(time) - 7.5) < 0.1)"));
    browser.screenshot("zoomed.png");

    browser.double_click(place);
    browser.wait(&format!("JSON.stringify({TIMES}) === JSON.stringify({whole})").replace(".0", ""));
    browser.evaluate("anabranchCharts[0].element.querySelector('.panel').focus(), 0");
    browser.call("Input.dispatchKeyEvent", json!({ "type": "keyDown", "key": "+", "text": "+" }));
    browser.wait(&format!("{TIMES}.every(([min, max]) => min > 3 && max < 17)"));
    browser.evaluate("anabranchCharts[0].reset.click(), 0");
    browser.wait(&format!("JSON.stringify({TIMES}) === JSON.stringify({whole})").replace(".0", ""));
    assert_quiet(&browser);
}

/// A thousand squares must not be a thousand stops of the tab key.
#[test]
fn squares_are_one_stop_of_the_tab_key() {
    let Some(mut browser) = Browser::start("squares") else { return };
    // So narrow that the squares need several lines.
    browser.resize(200, 780, false);
    browser.open(&FIXTURE);
    let stops = "[...document.querySelectorAll('.matrix a.cell')].filter((cell) => cell.tabIndex === 0).length";
    assert_eq!(browser.evaluate(stops), 1);
    let squares = browser.evaluate("document.querySelectorAll('.matrix a.cell').length").as_u64().unwrap();
    assert!(squares > 5, "{squares} squares go nowhere");
    browser.evaluate("document.querySelector('.matrix a.cell[tabindex=\"0\"]').focus(), 0");
    let at = "[...document.querySelectorAll('.matrix a.cell')].indexOf(document.activeElement)";
    let mut press = |key: &str| {
        browser.call("Input.dispatchKeyEvent", json!({ "type": "keyDown", "key": key }));
        (browser.evaluate(at).as_u64().unwrap(), browser.evaluate(stops).as_u64().unwrap())
    };
    let last = squares - 1;
    for (key, place) in [
        ("ArrowLeft", 0),
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", last),
        ("ArrowRight", last),
        ("Home", 0),
    ] {
        assert_eq!(press(key), (place, 1), "{key}");
    }
    let down = press("ArrowDown").0;
    assert!(down > 0, "another line is below");
    assert_eq!(press("ArrowUp").0, 0);
    assert_quiet(&browser);
}

/// A series of thousands of points keeps its extremes when it is thinned out, and steps hold their value.
#[test]
fn legends_tell_what_the_series_were() {
    let Some(mut browser) = Browser::start("legends") else { return };
    browser.resize(1280, 1000, false);
    browser.open(&FIXTURE);
    draw_all(&mut browser);
    // The queue of ten packets was full, never fuller, and empty in the end or the beginning.
    let extremes = "(() => { const values = anabranchCharts[0].plots[2].data[1].filter((value) => value != null);
        return [Math.min(...values), Math.max(...values)]; })()";
    assert_eq!(browser.evaluate(extremes), json!([0, 10]));
    let events = "anabranchCharts[0].plots[2].data[2].filter((value) => value !== undefined).length";
    assert!(browser.evaluate(events).as_u64().unwrap() > 0, "the link behind the bottleneck loses packets");
    assert_quiet(&browser);
}

#[test]
fn hostile_text_is_text() {
    let Some(mut browser) = Browser::start("hostile") else { return };
    browser.open(&FIXTURE);
    draw_all(&mut browser);
    assert_eq!(browser.evaluate("globalThis.isHostile === undefined"), true);
    assert_eq!(browser.evaluate("document.querySelectorAll('img, b:not(.panel b), body style, iframe').length"), 0);
    let question = browser.evaluate("document.querySelector('.experiment .question').textContent");
    assert!(question.as_str().unwrap().contains("</script><script>"), "{question}");
    assert_quiet(&browser);
}

#[test]
fn it_reads_on_a_phone_in_the_dark_and_on_paper() {
    let Some(mut browser) = Browser::start("media") else { return };
    browser.resize(360, 780, true);
    browser.open(&FIXTURE);
    draw_all(&mut browser);
    assert_drawn(&mut browser);
    assert_fits(&mut browser, 360);

    let background = "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3";
    assert!(browser.evaluate(background).as_f64().unwrap() > 200.0);
    browser.prefer("dark");
    browser.wait(&format!("{background} < 60"));
    assert_drawn(&mut browser);
    browser.evaluate("document.getElementById('theme').click(), 0");
    browser.wait(&format!("{background} > 200"));

    let pages = browser.print();
    assert!(pages.starts_with(b"%PDF-") && pages.len() > 50_000, "{} bytes", pages.len());
    if let Ok(folder) = std::env::var("ANABRANCH_SCREENSHOTS") {
        fs::create_dir_all(&folder).unwrap();
        fs::write(Path::new(&folder).join("printed.pdf"), pages).unwrap();
    }
    assert_quiet(&browser);
}

/// The report of a field: a curve for each law in each distribution, and the worst draws with their scenarios.
#[test]
fn field_report_draws_curve_of_each_law() {
    let Some(mut browser) = Browser::start("field") else { return };
    let law = |name: &str| Contender::parse(name).unwrap();
    let request = Request {
        law: law("reno"),
        against: vec![law("cubic,slow_start=hystart")],
        families: vec![Family::Policer, Family::Short],
        draws: 4,
        seed: 2,
        jobs: jobs_default(),
    };
    let field = field::run(&request, |_, _| ()).unwrap();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("field.html");
    fs::write(&file, html::field_page(&field)).unwrap();
    browser.resize(1280, 1000, false);
    browser.open(&file);
    browser.screenshot("field.png");
    // The policer has two figures, the transfer one.
    let lines =
        "[...document.querySelectorAll('svg.curve')].map((curve) => curve.querySelectorAll('path.line').length)";
    assert_eq!(browser.evaluate(lines), json!([2, 2, 2]));
    let is_within = "[...document.querySelectorAll('svg.curve')].every((curve) => [...curve.querySelectorAll('path.line')].every((line) => {
        const [box, whole] = [line.getBBox(), curve.viewBox.baseVal];
        return box.x >= 0 && box.y >= 0 && box.x + box.width <= whole.width && box.y + box.height <= whole.height; }))";
    assert_eq!(browser.evaluate(is_within), true);
    let worst = "[...document.querySelectorAll('details.source')].map((law) => [law.open, law.querySelectorAll('details.draw').length])";
    assert_eq!(browser.evaluate(worst), json!([[true, 4], [false, 4], [true, 4], [false, 4]]));
    browser.evaluate("document.querySelector('details.draw summary').click(), 0");
    let shown = browser.evaluate("document.querySelector('details.draw[open]').innerText");
    let worst = &field.families[0].laws[0].worst[0];
    let shown = shown.as_str().unwrap();
    assert!(
        shown.contains(&format!("anabranch sim run worst/{}", worst.file)) && shown.contains("[[flow]]"),
        "{shown}"
    );
    browser.screenshot("field-draw.png");
    browser.prefer("dark");
    browser.resize(360, 780, true);
    browser.wait("innerWidth === 360");
    assert_fits(&mut browser, 360);
    browser.screenshot("field-phone.png");
    assert_quiet(&browser);
}

/// Pictures of intervals whose marks lie outside of them, or have not the size that style.css gives them: a band of 10 pixels, a dot of 6.8.
const BAD_INTERVALS: &str = "[...document.querySelectorAll('svg.interval')].filter((picture) => {
    const whole = picture.viewBox.baseVal;
    return [...picture.querySelectorAll('rect, line, circle')].some((mark) => {
        const box = mark.getBBox();
        const size = { rect: 10, circle: 6.8 }[mark.tagName] ?? box.height;
        return Math.abs(box.height - size) > 0.1 || box.x < 0 || box.x + box.width > whole.width + 0.1
            || box.y < whole.y || box.y + box.height > whole.y + whole.height;
    });
}).map((picture) => picture.outerHTML)";

/// The report of `reproduce`. The test command has just written it and names the folder; else it is one with few seeds.
#[test]
fn all_experiments_make_a_report() {
    let Some(mut browser) = Browser::start("all") else { return };
    let file = match std::env::var_os("ANABRANCH_REPRODUCTION") {
        Some(folder) => PathBuf::from(folder).join("report.html"),
        None => report("all", &committed(), 3),
    };
    let size = fs::metadata(&file).unwrap().len();
    // 2200 claims at a kilobyte each, a megabyte of curves, and 86 files of experiments.
    assert!(size < 5_000_000, "{size} bytes");
    browser.resize(1280, 1000, false);
    browser.open(&file);
    draw_all(&mut browser);
    assert_drawn(&mut browser);
    assert!(browser.evaluate("document.querySelectorAll('svg.interval').length").as_u64().unwrap() > 100);
    assert_eq!(browser.evaluate(BAD_INTERVALS), json!([]));
    browser.evaluate("scrollTo(0, 0)");
    browser.screenshot("light.png");
    let sections = browser.evaluate("document.querySelectorAll('section').length").as_u64().unwrap();
    for section in 0..sections {
        browser.evaluate(&format!("document.querySelectorAll('section')[{section}].scrollIntoView()"));
        browser.screenshot(&format!("section-{section}.png"));
    }
    browser.prefer("dark");
    browser.evaluate("scrollTo(0, 0)");
    browser.screenshot("dark.png");
    browser.prefer("light");
    browser.resize(1400, 1000, false);
    assert_eq!(browser.evaluate(CUT), json!([]), "at 1400 pixels");
    browser.resize(PAPER, 1000, false);
    browser.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    assert_eq!(browser.evaluate(CUT), json!([]), "on paper");
    browser.call("Emulation.setEmulatedMedia", json!({ "media": "" }));
    browser.resize(360, 780, true);
    browser.wait("innerWidth === 360");
    assert_fits(&mut browser, 360);
    browser.screenshot("phone.png");
    assert_quiet(&browser);
}
