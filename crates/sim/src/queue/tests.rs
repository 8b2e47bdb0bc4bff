//! The page on adding a queue is followed.

use std::collections::BTreeMap;

use anabranch_units::settings::Value;

use super::drop_head::DropHeadParameters;
use super::*;
use crate::id::Address;
use crate::rng::Substreams;

/// The file of the page is the module that these tests compile.
#[test]
fn page_shows_the_whole_file() {
    let page = include_str!("../../../../docs/adding-a-queue.md");
    assert!(page.contains(&format!("```rust\n{}```", include_str!("drop_head.rs"))));
}

#[test]
fn queue_of_page_drops_oldest_packet() {
    let mut spec = kind::<DropHeadParameters>().default;
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
