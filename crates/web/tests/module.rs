//! The stored module gives what the sources give: the same hash for twenty scenarios, in Node, and the same laws and queues. Without Node (Debian's
//! package `nodejs`) the test says so and passes, unless `ANABRANCH_REQUIRE_BROWSER` is 1.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

mod node;
mod scenarios;

use std::fs;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use serde_json::{Value, json};

use crate::node::{REMEDY, in_node};
use crate::scenarios::answer;

#[test]
fn module_gives_the_hashes_of_the_sources() {
    let (requests, hashes): (Vec<Value>, Vec<String>) = scenarios::with_hashes().into_iter().unzip();
    let Some(answers) = in_node(&requests, &[]) else { return };
    for ((request, hash), answer) in requests.iter().zip(&hashes).zip(answers) {
        let (name, labels) = (&request["file"]["name"], &request["variant"]);
        assert_eq!(answer["kind"], "end", "{name} {labels}: {}", answer["message"]);
        assert_eq!(answer["hash"], *hash, "{name} {labels}: {REMEDY}");
    }
}

#[test]
fn module_has_the_laws_and_queues_of_the_sources() {
    let request = json!({ "ask": "about" });
    let Some(answers) = in_node(std::slice::from_ref(&request), &[]) else { return };
    answer(&request.to_string(), &mut |about| assert_eq!(*about, answers[0], "{REMEDY}"));
}

/// The file that is written of a variant has the variant's scenario, without what it extends and without its axes.
#[test]
fn a_variant_as_a_file_of_its_own_is_the_same_scenario() {
    let folders =
        ["analytic", "law", "rivals", "mfast-2019", "emfast-2019", "ctcp-2019", "multihoming-2010", "rrfast-2017"];
    for folder in folders {
        for entry in fs::read_dir(scenarios::root().join("experiments").join(folder)).unwrap() {
            let name = format!("experiments/{folder}/{}", entry.unwrap().file_name().to_string_lossy());
            if !name.ends_with(".toml") {
                continue;
            }
            let experiment = scenarios::experiment(&name);
            let variants = experiment.variants();
            // The first, the last and those between.
            for variant in variants.iter().step_by(variants.len().div_ceil(6)).chain(variants.last()) {
                let scenario = experiment.scenario(variant).unwrap();
                let text = experiment.written(variant, scenario.seed).unwrap();
                let again = Document::parse(&name, &text).and_then(Experiment::parse);
                let again = again.unwrap_or_else(|error| panic!("{name} {variant:?}: {error}\n{text}"));
                assert_eq!(again.variants().len(), 1, "{name}");
                assert_eq!(again.question(), experiment.question(), "{name}");
                let again = again.scenario(&Vec::new()).unwrap();
                assert_eq!(format!("{again:?}"), format!("{scenario:?}"), "{name} {variant:?}:\n{text}");
            }
        }
    }
}

/// What the page shows at the end is what was shown part by part, and the measures are those of `sim run`.
#[test]
fn a_run_tells_its_parts_and_its_measures() {
    let mut answers = Vec::new();
    let mut request = scenarios::request("experiments/mfast-2019/table2.toml", &["Fast TCP (8, 2)"]);
    request["packets"] = json!([10, 10.2]);
    answer(&request.to_string(), &mut |answer| answers.push(answer.clone()));
    let (begin, end) = (&answers[0], answers.last().unwrap());
    assert_eq!((&begin["kind"], &end["kind"], &begin["end"]), (&json!("begin"), &json!("end"), &json!(100.0)));
    // Table 2 of mfast-2019: 1463 kbit/s, cut off.
    let throughput = end["measures"].as_array().unwrap().iter().find(|measure| measure["name"] == "Average Throughput");
    assert_eq!(throughput.unwrap()["value"].as_f64().unwrap() as u32, 1463);
    assert!(begin["network"].as_str().unwrap().contains("data-link=\"bottleneck\""));
    // Links of 2, 1.5 and 2 Mbit/s: in 0.2 s and the time on the way some dozen packets are on each.
    let hops = end["hops"].as_array().unwrap();
    assert!((100..2000).contains(&hops.len()), "{}", hops.len());
    for hop in hops {
        let times: Vec<f64> = (3..6).filter_map(|at| hop[at].as_f64()).collect();
        assert!(times.is_sorted() && times[0] <= 10.2, "{hop}");
    }
}

/// A part has the points of its own time: the page puts them behind those that it has.
#[test]
fn parts_follow_each_other() {
    let mut answers = Vec::new();
    let request = scenarios::request("experiments/rrfast-2017/rerouting.toml", &["RRFast", "longer"]);
    answer(&request.to_string(), &mut |answer| answers.push(answer.clone()));
    let parts: Vec<&Value> = answers.iter().filter(|answer| answer["kind"] == "part").collect();
    assert!(parts.len() >= 3, "{} parts of {} events", parts.len(), answers.last().unwrap()["events"]);
    let curves = parts[0]["points"].as_array().unwrap().len();
    for curve in 0..curves {
        let mut from = 0.0;
        for part in &parts {
            let to = part["at"].as_f64().unwrap();
            for time in part["points"][curve][0].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()) {
                // A bin of goodput that ended in this part may have begun before it; the whole run has 200 bins in 90 s.
                assert!((from - 0.5..=to).contains(&time), "curve {curve}: {time} is not from {from} to {to}");
            }
            from = to;
        }
    }
}

#[test]
fn scenarios_that_are_too_large_or_wrong_are_refused() {
    let refused = |text: &str| {
        let request = json!({ "ask": "run", "file": { "name": "x.toml", "text": text } });
        let mut last = Value::Null;
        answer(&request.to_string(), &mut |answer| last = answer.clone());
        assert_eq!(last["kind"], "error", "{last}");
        last["message"].as_str().unwrap().to_owned()
    };
    let net = |duration: &str, rate: &str, count: usize| {
        format!(
            "duration = '{duration}'\n[[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '{rate}'\ndelay = '1ms'\n\
             [[flow]]\nid = 'f#'\ncount = {count}\nfrom = 'a'\nto = 'b'\ntransport = 'cbr'\nrate = '{rate}'\npacket = '1000B'\n"
        )
    };
    assert!(refused(&net("2h", "1Mbit/s", 1)).contains("at most 3600 s"));
    assert!(refused(&net("1s", "1Mbit/s", 600)).contains("at most 500"));
    assert!(refused("duration = ").contains("x.toml:1"));
    assert!(refused("extends = '../other.toml'\n").contains("it is not there"));
    assert!(refused(&"#".repeat(2 << 20)).contains("more than 1 MiB"));
    let flow = "[[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '1Mbit/s'\ndelay = '1ms'\n[[flow]]\nid = 'f'\nfrom = 'a'\nto = 'b'\n";
    assert!(
        refused(&format!("{flow}transport = 'anabranch'\ncc = {{ plugin = 'x.wasm' }}\n")).contains("no other file")
    );
    let mut last = Value::Null;
    for request in
        ["{", "\x03\0\0\0ask", "\x03\0\0\0ask\x05\0\0\0ab", "\x01\0\0\0x\0\0\0\0", "\x03\0\0\0ask\x01\0\0\0x"]
    {
        anabranch_web::answer(request.as_bytes(), &mut |_| unreachable!(), &mut |answer, _| last = answer.clone());
        assert!(last["message"].as_str().unwrap().starts_with("no request"), "{request:?}: {last}");
    }
}
