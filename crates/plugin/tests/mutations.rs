//! Modules that nobody has written: bytes of good ones changed at random, and hooks of random instructions in random loops. Whatever a module is, it
//! is refused or fails with a sentence, and the process goes on. The fuzz target `module` does the same without an end.

use std::sync::Arc;

use anabranch_cc::{Ack, Departure, PathView, Phase, Supply};
use anabranch_plugin::{Faults, Law, Module};
use anabranch_units::{Bytes, Time};

/// Random numbers (xorshift64*), the same in each run.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A module with a setting, a gauge, tables, data, functions, and this body of `on_ack`.
fn text(body: &str) -> String {
    let word = |number: u32| number.to_le_bytes().map(|byte| format!("\\{byte:02x}")).concat();
    let number = |number: f64| number.to_le_bytes().map(|byte| format!("\\{byte:02x}")).concat();
    // The version, a window of 10, and its name; the places are those of `template/c/anabranch_cc.h`.
    format!(
        "(module (memory (export \"memory\") 1 3)\n\
         (data (i32.const 1024) \"{}\") (data (i32.const 1056) \"{}\")\n\
         (data $d \"abc\") (global $g (mut i32) (i32.const 7)) (type $v (func))\n\
         (table $t 4 20 funcref) (elem (i32.const 0) $n $deep) (elem $e func $n)\n\
         (func $n) (func $deep (call $deep)) (func $locals (local i64 i64 i64 f64) (call $n))\n\
         (func (export \"anabranch\") (result i32) (i32.const 1024))\n\
         (func (export \"on_loss\") (f64.store (i32.const 1056) (f64.const 2)))\n\
         (func (export \"on_ack\") (local $a i32) (local $b i32) {body}))",
        word(1),
        number(10.0)
    )
}

/// Instructions that leave the stack as it was.
const INSTRUCTIONS: [&str; 22] = [
    "(drop (memory.grow (i32.const 0)))",
    "(drop (memory.grow (i32.const 1)))",
    "(drop (memory.grow (local.get $a)))",
    "(drop (table.grow $t (ref.null func) (i32.const 1)))",
    "(drop (table.grow $t (ref.func $n) (local.get $a)))",
    "(table.set $t (i32.const 1) (table.get $t (i32.const 0)))",
    "(table.fill $t (i32.const 0) (ref.null func) (local.get $b))",
    "(table.init $t $e (i32.const 0) (i32.const 0) (i32.const 1))",
    "(elem.drop $e)",
    "(data.drop $d)",
    "(memory.init $d (i32.const 4000) (i32.const 0) (i32.const 3))",
    "(memory.fill (i32.const 4000) (local.get $a) (i32.const 50000))",
    "(memory.copy (i32.const 4000) (i32.const 5000) (local.get $b))",
    "(local.set $a (i32.add (local.get $a) (i32.const 77)))",
    "(local.set $b (i32.mul (local.get $b) (i32.const 31)))",
    "(global.set $g (i32.rotl (global.get $g) (i32.const 3)))",
    "(drop (i32.div_s (i32.const 1000) (global.get $g)))",
    "(f64.store (i32.const 1056) (f64.div (f64.load (i32.const 1056)) (f64.convert_i32_s (local.get $a))))",
    "(f64.store (i32.const 1056) (f64.sqrt (f64.load (i32.const 1056))))",
    "(call $locals)",
    "(call $deep)",
    "(call_indirect (type $v) (i32.and (local.get $a) (i32.const 3)))",
];

/// Random instructions in random loops and blocks.
fn body(random: &mut Random, depth: usize) -> String {
    let mut body = String::new();
    for _ in 0..=random.below(4) {
        body += &match random.below(8) {
            0 if depth < 5 => format!("(loop $l{depth} {} (br $l{depth}))", self::body(random, depth + 1)),
            1 if depth < 5 => {
                format!(
                    "(loop $l{depth} {} (br_if $l{depth} (i32.and (local.get $a) (i32.const 1))))",
                    self::body(random, depth + 1)
                )
            }
            2 if depth < 5 => format!("(block $b{depth} {} (br $b{depth}))", self::body(random, depth + 1)),
            3 if depth < 5 => format!("(if (local.get $b) (then {}))", self::body(random, depth + 1)),
            _ => (*random.one_of(&INSTRUCTIONS)).to_owned(),
        };
    }
    body
}

/// Loads a module and tells it some events. Returns the error of the file, or the first failure of a hook.
fn run(bytes: Vec<u8>) -> Result<Option<String>, String> {
    let module = Module::new("random.wasm", bytes).map_err(|error| error.to_string())?;
    let faults = Faults::default();
    let settings = Law::new(Arc::new(module)).settings("", &faults);
    let mut controller = settings.row().build(&settings);
    let departure = Departure { window: 11.0, flight: 9.0, supply: Supply::Short, ..Departure::default() };
    for event in 1..20 {
        let now = Time::from_ticks(event * 10_000_000);
        let view = PathView { now, flight: 3.5, mss: Bytes::new(1448), ..PathView::default() };
        let (size, phase) = (Bytes::new(1000), Phase::Recovery);
        let ack = Ack { newly_acked: 1.0, size, arrival: now, departure, phase, ..Ack::default() };
        controller.on_ack(&view, &ack);
        let window = controller.window();
        assert!(window.is_finite() && window >= 0.0, "a window of {window}");
    }
    Ok(faults.first().map(ToOwned::to_owned))
}

#[track_caller]
fn assert_sentence(message: &str, seed: u64) {
    let is_plain = !message.chars().any(|c| c.is_control() && c != '\n');
    assert!(is_plain && (10..3000).contains(&message.len()), "seed {seed}: {message:?}");
}

/// Random hooks run, or fail with a sentence: of 400, some of each.
#[test]
fn hook_of_random_instructions_ends() {
    let (mut failed, mut ran) = (0, 0);
    for seed in 1..=400 {
        let body = body(&mut Random::new(seed), 0);
        let bytes = wat::parse_str(text(&body)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        match run(bytes) {
            Ok(Some(message)) => {
                assert_sentence(&message, seed);
                failed += 1;
            }
            Ok(None) => ran += 1,
            Err(message) => panic!("seed {seed}: a valid module was refused: {message}"),
        }
    }
    assert!(failed > 50 && ran > 50, "{failed} failed, {ran} ran");
}

/// Of 20,000 changed files, most are refused and some still run.
#[test]
fn module_with_random_changes_refused_or_run() {
    let seeds: Vec<Vec<u8>> = ["", INSTRUCTIONS[3], "(loop $l (br $l))", "(call $deep)"]
        .map(|body| wat::parse_str(text(body)).unwrap())
        .to_vec();
    let (mut refused, mut ran) = (0, 0);
    for seed in 1..=20_000_u64 {
        let mut random = Random::new(seed);
        let mut bytes = random.one_of(&seeds).clone();
        for _ in 0..=random.below(3) {
            // The first four bytes stay: without them nothing is looked at.
            let place = 4 + random.below(bytes.len() - 4);
            match random.below(5) {
                0 => bytes[place] ^= 1 << random.below(8),
                1 => bytes[place] = *random.one_of(&[0, 1, 0x7F, 0x80, 0xFF, 0x40, 0x0B]),
                2 => bytes.insert(place, random.next() as u8),
                3 => drop(bytes.splice(place..place, [0xFF, 0xFF, 0xFF, 0xFF, 0x0F])),
                _ => {
                    bytes.remove(place);
                }
            }
        }
        match run(bytes) {
            Ok(fault) => {
                fault.iter().for_each(|message| assert_sentence(message, seed));
                ran += 1;
            }
            Err(message) => {
                assert_sentence(&message, seed);
                refused += 1;
            }
        }
    }
    assert!(refused > 5000 && ran > 1000, "{refused} refused, {ran} ran");
}
