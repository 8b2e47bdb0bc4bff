//! The page on adding a queue is followed: its queue is one of the kinds in these tests.

use std::collections::BTreeMap;

use anabranch_units::settings::Value;

use super::*;
use crate::id::Address;
use crate::rng::Substreams;

/// The blocks of the page are the module that these tests compile, and the lines that list it.
#[test]
fn page_shows_whole_file_and_its_lines() {
    let page = include_str!("../../../../docs/adding-a-queue.md");
    let mut blocks = page.split("```rust\n").skip(1).filter_map(|rest| rest.split_inclusive("\n```\n").next());
    let mut block = || blocks.next().and_then(|block| block.strip_suffix("```\n"));
    assert!(block() == Some(include_str!("drop_head.rs")), "the page does not show drop_head.rs");
    let listed: Vec<&str> = include_str!("../queue.rs").lines().map(str::trim).collect();
    for line in block().unwrap().lines() {
        assert!(listed.windows(2).any(|pair| pair == ["#[cfg(test)]", line]), "{line}");
    }
    assert_eq!(block(), None);
}

#[test]
fn queue_of_page_drops_oldest_packet() {
    let mut spec = QueueSpec::kinds().into_iter().find(|kind| kind.word == "drop_head").unwrap().default;
    assert_eq!(spec.parameters_of(), Some(&DropHeadParameters { packets_max: 50 }));
    spec.put(BTreeMap::from([("packets".to_owned(), Value::Whole(2))])).unwrap();
    assert_eq!((spec.shown().as_str(), spec.flaw()), ("drop_head, packets 2", None));
    let stream = |name: &str| Substreams::new(1).stream(name);
    let site = Site { rate: Rate::from_bits_per_second(1000), delay: SimSpan::ZERO, stream: &stream };
    let Queue::Managed(mut queue) = spec.build(&site) else { panic!("it decides at its head") };
    let mut dropped = Vec::new();
    for size in [1, 2, 3] {
        assert_eq!(queue.enqueue(SimTime::ZERO, Flight::new(0, size, 0, Address(0))), Verdict::Take);
        queue.overflow(&mut dropped);
    }
    let mut sizes = vec![];
    while let Some((flight, _)) = queue.dequeue(SimTime::ZERO, &mut dropped) {
        sizes.push(flight.size());
    }
    assert_eq!((dropped[0].size(), sizes), (1, vec![2, 3]));
}

/// Every kind is found by its word, and its defaults are possible, but for what a scenario must set.
#[test]
fn defaults_of_kinds_are_possible() {
    for kind in QueueSpec::kinds() {
        assert_eq!(kind.default.word(), kind.word);
        let is_complete = kind.default.parameters().iter().all(|one| !one.is_required && one.value != Value::Absent);
        assert!(!is_complete || kind.default.flaw().is_none(), "{}", kind.word);
    }
}
