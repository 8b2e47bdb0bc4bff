//! The conformance of every registered law: [`anabranch_cc::conformance`] with random stories under random settings.
//!
//! The draws are the same on every run. `PROPTEST_CASES=100000` tests more of them.

use anabranch_cc::conformance::{self, MSS, Operation};
use anabranch_cc::registry::{Kind, Row, Settings, Value, rows};
use anabranch_cc::{Cause, Limit};
use anabranch_units::Span;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

fn operation() -> impl Strategy<Value = Operation> {
    // A coarse clock gives samples of zero.
    let rtt_micros = prop_oneof![2 => Just(None), 1 => Just(Some(0)), 17 => (1_u64..5_000_000).prop_map(Some)];
    let limit = prop_oneof![4 => Just(Limit::Window), 1 => Just(Limit::Application)];
    let cause = prop_oneof![Just(Cause::Congestion), Just(Cause::Random), Just(Cause::Unknown)];
    let segments = prop_oneof![4 => Just(1.0), 2 => 0.001..3.0_f64, 1 => 3.0..500.0_f64];
    prop_oneof![
        6 => (0_u64..1_000_000).prop_map(|micros| Operation::Wait { micros }),
        20 => (segments, rtt_micros, prop_oneof![3 => Just(MSS), 1 => 1..MSS], limit)
            .prop_map(|(segments, rtt_micros, size, limit)| Operation::Ack { segments, rtt_micros, size, limit }),
        6 => Just(Operation::EndRound),
        3 => cause.prop_map(|cause| Operation::Lose { cause }),
        1 => Just(Operation::Mark),
        1 => Just(Operation::TimeOut),
        3 => Just(Operation::Recover),
        2 => Just(Operation::Undo),
        1 => (0_u64..100_000_000).prop_map(|micros| Operation::Idle { micros }),
        1 => Just(Operation::ChangePath),
        1 => prop::collection::vec(1.0..1000.0_f64, 1..4).prop_map(|windows| Operation::Group { windows }),
    ]
}

/// One value for each parameter: `None` for the default, else the position in its range, from 0 to 1.
type Draws = Vec<Option<f64>>;

fn settings(row: &'static Row, draws: &Draws) -> Settings {
    let mut settings = Settings::default_for(row);
    for (parameter, draw) in row.parameters().into_iter().zip(draws) {
        let Some(draw) = *draw else { continue };
        // A part comes before what its kinds can be set to.
        let is_of = |kind| parameter.name.split_once('.').map(|(part, _)| settings.value(part)) == Some(Some(kind));
        if parameter.only.is_some_and(|kind| !is_of(Value::Choice(kind))) {
            continue;
        }
        let text = match parameter.kind {
            Kind::Number { least, most } => (least + draw * (most - least)).min(most).to_string(),
            Kind::Span { least, most } => {
                let above = (draw * (most - least).ticks() as f64) as u64;
                (least + Span::from_ticks(above)).min(most).to_string()
            }
            Kind::Switch => (draw < 0.5).to_string(),
            Kind::Choice { options } => options[(draw * options.len() as f64) as usize % options.len()].to_owned(),
            other => unreachable!("no law has a setting that is {other}"),
        };
        settings.set(&parameter.name, &text).expect("a draw lies within its parameter's range");
    }
    settings
}

#[test]
fn every_law_conforms() {
    for row in rows() {
        let config = Config { failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let draws = prop::collection::vec(prop::option::of(0.0..=1.0_f64), row.parameters().len());
        let operations = prop::collection::vec(operation(), 0..300);
        let outcome = runner.run(&(draws, operations), |(draws, operations)| {
            let settings = settings(row, &draws);
            conformance::play_twice(&|| row.build(&settings), &row.loss_contract, &operations)
                .map_err(|violation| TestCaseError::fail(violation.message))
        });
        if let Err(error) = outcome {
            panic!("{}: {error}", row.name);
        }
    }
}

#[test]
fn every_law_grows_on_an_empty_path() {
    for row in rows() {
        let settings = Settings::default_for(row);
        conformance::grows(&|| row.build(&settings)).unwrap_or_else(|message| panic!("{}: {message}", row.name));
    }
}

/// [`conformance::play_twice`] tests what copies do.
#[test]
fn every_law_can_be_copied() {
    for row in rows() {
        assert!(row.build(&Settings::default_for(row)).copy().is_some(), "{}", row.name);
    }
}

/// Every citation has an entry in the bibliography.
#[test]
fn every_citation_is_in_the_bibliography() {
    let bibliography = include_str!("../../../docs/bibliography.md");
    for row in rows() {
        for key in row.citation.split(", ") {
            assert!(bibliography.contains(&format!("**{key}**")), "{} cites {key}", row.name);
        }
    }
}
