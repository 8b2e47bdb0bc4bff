//! How long it takes until an opened file is drawn. Only what does not depend on the machine is tested; the times are printed.

use serde_json::json;

use crate::browser::Browser;
use crate::{assert_quiet, open, wait_for_run};

/// Opens Table 2 of mfast-2019 in the list of a page that shows the sliders. The answer has the milliseconds until its canvases are drawn, the number of requests to
/// the simulator, and the widths for charts before and after.
const OPENING: &str = "(async () => {
    const side = playground.sides[0];
    const { postMessage } = Worker.prototype;
    let requests = 0;
    Worker.prototype.postMessage = function (message, ...rest) {
        requests += message.request ? 1 : 0;
        return postMessage.call(this, message, ...rest);
    };
    const width = () => side.charts.width();
    const widths = [width()];
    const drawn = new Promise((resolve) => {
        const set = side.charts.set.bind(side.charts);
        side.charts.set = async (points) => {
            widths.push(width());
            set(points);
            // The charts draw when what is under way has ended.
            for (let turn = 0; turn < 12; turn += 1) await null;
            resolve(performance.now());
        };
    });
    const begun = performance.now();
    const files = document.getElementById('files');
    files.value = 'experiments/mfast-2019/table2.toml';
    files.dispatchEvent(new Event('change'));
    const ms = await drawn - begun;
    delete side.charts.set;
    Worker.prototype.postMessage = postMessage;
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
    return { ms, requests, widths: [...widths, width()] };
})()";

/// A file is opened by one request, and its charts are drawn once: the page keeps its width when it becomes longer. `ANABRANCH_OPENINGS=32` measures as often.
#[test]
fn opened_file_takes_one_request_and_one_drawing() {
    let Some(mut browser) = Browser::start("speed") else { return };
    // A window in which the page without charts needs no bar that scrolls.
    browser.resize(1400, 1000, false);
    let openings = std::env::var("ANABRANCH_OPENINGS").ok().and_then(|count| count.parse().ok()).unwrap_or(2);
    let mut times = Vec::new();
    for _ in 0..openings {
        open(&mut browser, "");
        assert_eq!(browser.evaluate("playground.warm.then(() => true)"), true);
        let opened = browser.evaluate(OPENING);
        wait_for_run(&mut browser);
        assert_eq!(opened["requests"], 1, "{opened}");
        let widths = opened["widths"].as_array().unwrap();
        assert!(widths.iter().all(|width| *width == widths[0]), "{opened}");
        times.push(opened["ms"].as_f64().unwrap());
    }
    let shown = browser.evaluate("[playground.state.variants, document.getElementById('variants').value, playground.sides[0].title, playground.sides[0].request.variant]");
    assert_eq!(shown, json!([[["SCTP"]], "0", "SCTP", ["SCTP"]]));
    browser.wait("location.hash.includes('variant=')");
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    println!(
        "Table 2 of mfast-2019 is drawn after {:.0} ms at the median of {openings}, {:.0} at the 90th percentile",
        at(0.5),
        at(0.9)
    );
    assert_quiet(&browser);
}
