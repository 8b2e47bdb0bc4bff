//! Series that ns-2 recorded, and the comparison with the simulator's.

use std::fs::File;
use std::io::Read;

use anabranch_sim::Ns2Source;

/// The rows of a file, without its header.
pub(crate) fn read(name: &str) -> Vec<Vec<f64>> {
    let path = format!("{}/tests/golden/data/{name}.csv.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect()
}

/// Time and value of each change of a source's window.
pub(crate) fn window_changes(source: &Ns2Source) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> = vec![];
    for row in source.rows().unwrap() {
        let window = row.gauges.window;
        if changes.last().is_none_or(|last| last.1.to_bits() != window.to_bits()) {
            changes.push((row.time.as_secs_f64(), window));
        }
    }
    changes
}

/// ns-2 prints every assignment, even several at one time. The last value at each time is compared. In the file, times have five
/// decimals and windows at least three.
#[track_caller]
pub(crate) fn compare_windows(name: &str, golden: &[(f64, f64)], ours: &[(f64, f64)]) {
    let mut theirs: Vec<(f64, f64)> = vec![];
    for rows in golden.chunk_by(|a, b| (a.0 - b.0).abs() < 5e-6) {
        let last = rows[rows.len() - 1];
        // Several assignments at one time may end at the value with which they began.
        let is_news = rows.len() == 1 || theirs.last().is_none_or(|before| (before.1 - last.1).abs() > 1e-9);
        theirs.extend(is_news.then_some(last));
    }
    // ns-2 sets the first value when it creates the agent; here it is set when the flow starts.
    for (index, (their, our)) in theirs.iter().zip(ours).enumerate().skip(1) {
        let equal = (their.0 - our.0).abs() <= 1.1e-5 && (their.1 - our.1).abs() <= 1e-3;
        let near = |rows: &[(f64, f64)]| rows[index.saturating_sub(3)..rows.len().min(index + 4)].to_vec();
        assert!(
            equal,
            "{name}, change {index}: ns-2 has {their:?}, we have {our:?}\nns-2 {:?}\nwe   {:?}",
            near(&theirs),
            near(ours)
        );
    }
    assert_eq!(theirs.len(), ours.len(), "{name}: changes of the window");
}
