//! Mutated scenarios are accepted, or refused with a place, and never cause a panic. This is the fuzz target, in a second and with any
//! compiler. The mutations use TOML's tokens, so that many pass its parser.

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;

const TEXTS: [&str; 3] = [
    include_str!("../../../experiments/ctcp-2019/table2.toml"),
    include_str!("../../../experiments/ctcp-2019/table3.toml"),
    include_str!("../../../experiments/ctcp-2019/fig5.toml"),
];

/// The base of the first of them.
const BASE: &str = include_str!("../../../experiments/common/ctcp-2019.toml");

const PIECES: [&str; 28] = [
    "0",
    "-1",
    "1e999",
    "99999999999999999999",
    "nan",
    "\"\"",
    "\"",
    "'",
    "[",
    "]",
    "[]",
    "{",
    "}",
    "{}",
    "=",
    ".",
    ",",
    "\n",
    "#",
    "±",
    "kind",
    "id",
    "each",
    "$",
    "$row",
    "extends",
    "true",
    "(",
];

/// Numbers that are the same in every run (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Replaces a token by another token, by a piece of text, or by nothing.
fn spoil(text: &str, numbers: &mut Numbers) -> String {
    let mut tokens: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for _ in 0..=numbers.below(3) {
        let place = numbers.below(tokens.len());
        match numbers.below(4) {
            0 => drop(tokens.remove(place)),
            1 => tokens[place] = tokens[numbers.below(tokens.len())],
            2 => tokens.insert(place, PIECES[numbers.below(PIECES.len())]),
            _ => tokens[place] = PIECES[numbers.below(PIECES.len())],
        }
    }
    tokens.concat()
}

#[test]
fn spoiled_scenarios_never_panic() {
    let mut numbers = Numbers(1);
    let mut refused = 0;
    let mut semantic = 0;
    for round in 0..3000 {
        let text = spoil(TEXTS[round % TEXTS.len()], &mut numbers);
        // Every third time the base is mutated as well.
        let mut base = |_: &str| match round / TEXTS.len() % 3 {
            0 => Ok(spoil(BASE, &mut numbers)),
            _ => Ok(BASE.to_owned()),
        };
        let result = Document::parse_with("spoiled.toml", &text, &mut base).and_then(Experiment::parse);
        if let Err(error) = result {
            let message = error.to_string();
            let has_place = message.contains(".toml:")
                && message.split(':').nth(1).is_some_and(|line| line.parse::<usize>().is_ok());
            assert!(has_place, "round {round}: no place in {message}");
            refused += 1;
            semantic += u32::from(!message.contains("not TOML"));
        }
    }
    assert!(refused > 1000, "only {refused} of 3000 were refused: the mutations spoil nothing");
    assert!(semantic > 300, "only {semantic} got past the TOML parser: the mutations test another crate");
}
