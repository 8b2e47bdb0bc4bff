//! Subflows share alpha in C (`c/coupled.h`) as paths do in the Rust of `mpfast`, which hears of the same rates and queueing delays.
#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use anabranch_cc::controller::{Gauges, PathSummary, PathView};
use anabranch_cc::registry;
use anabranch_units::{Span, Time};

/// Nanoseconds between two ACKs of a subflow: longer than any round trip here, so each ends a round.
const STEP: u64 = 200_000_000;
const BASE: u64 = 50_000_000;
/// A share has 16 bits.
const RESOLUTION: f64 = 1.0 / 65_536.0;

/// What a subflow says with an ACK.
#[derive(Clone, Copy, Debug)]
struct Word {
    owner: u64,
    now: u64,
    queue: u64,
    window: f64,
}

impl Word {
    fn bytes(self) -> Vec<u8> {
        let window = (self.window * f64::from(1 << 24)) as u64;
        [self.owner, self.now, self.queue, BASE + self.queue, window]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    fn summary(self, own: u64) -> PathSummary {
        PathSummary {
            path: self.owner as u32,
            own: self.owner == own,
            window: self.window,
            flight: self.window,
            rtt_smoothed: Some(Span::from_ticks(BASE + self.queue)),
            rtt_min: Some(Span::from_ticks(BASE)),
            ..PathSummary::default()
        }
    }
}

/// Shares after each word, by the compiled C.
fn shares(words: &[Word]) -> Vec<f64> {
    let mut child = Command::new(program()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let input: Vec<u8> = words.iter().flat_map(|word| word.bytes()).collect();
    let writer = thread::spawn(move || stdin.write_all(&input));
    let mut output = vec![];
    stdout.read_to_end(&mut output).expect("it writes");
    writer.join().expect("no panic").expect("it reads all");
    assert!(child.wait().expect("it ends").success());
    let share = |word: &[u8]| u64::from_ne_bytes(word.try_into().expect("8 bytes")) as f64 * RESOLUTION;
    output.chunks_exact(8).map(share).collect()
}

/// The program, compiled once in a run.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("share-{}", std::process::id()));
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing"]);
        compiler.args(["-fsanitize=undefined", "-fno-sanitize-recover", "-I"]).arg(folder.join("c"));
        let status = compiler.arg("-o").arg(&program).arg(folder.join("tests/coupled/share.c")).status();
        assert!(status.expect("there is a C compiler").success(), "share.c does not compile");
        program
    })
}

/// Numbers from 0 to 1 from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as f64 / u64::MAX as f64
    }
}

/// Three subflows: the queues of the second and third are now the first one's, now others.
#[test]
fn share_in_c_is_that_of_mpfast() {
    const ALPHA: f64 = 10_000.0;
    const STEPS: usize = 20_000;
    let (mut random, mut words) = (Random(36), vec![]);
    let (mut queue, mut is_other) = (20e6, [false; 2]);
    for step in 0..STEPS {
        queue = (queue * (0.9 + 0.2 * random.next())).clamp(1e5, 1e8);
        for other in &mut is_other {
            *other ^= random.next() < 0.04;
        }
        let now = (step as u64 + 1) * STEP;
        let mut say = |owner, queue: f64| {
            let window = 1.0 + 500.0 * random.next();
            words.push(Word { owner, now, queue: queue as u64, window });
        };
        say(2, if is_other[0] { 1.7 * queue + 1e6 } else { 1.02 * queue });
        say(3, if is_other[1] { 3.1 * queue + 2e6 } else { 0.95 * queue });
        say(1, queue);
    }
    let got = shares(&words);
    assert_eq!(got.len(), words.len());
    let mut settings = registry::Settings::default_for(registry::find("mpfast").expect("a law"));
    settings.set("alpha", &ALPHA.to_string()).expect("in range");
    let mut law = settings.row().build(&settings);
    let (mut gauges, mut worst, mut kinds) = (Gauges::default(), 0.0_f64, [0; 3]);
    // The first ACK of a subflow ends no round in C.
    for (step, words) in words.chunks_exact(3).enumerate().skip(1) {
        let group: Vec<_> = words.iter().map(|word| word.summary(1)).collect();
        law.on_group(&PathView { now: Time::ZERO + Span::from_ticks(words[2].now), ..PathView::default() }, &group);
        gauges.clear();
        law.gauges(&mut gauges);
        let share = gauges.value("alpha_path").expect("mpfast shows it") / ALPHA;
        let off = (got[3 * step + 2] - share).abs();
        assert!(
            off < (2.0 * RESOLUTION).max(0.005 * share),
            "step {step}: {} in C, {share} in Rust",
            got[3 * step + 2]
        );
        worst = worst.max(off);
        // Alone, with one of the others, with both.
        let rates: Vec<f64> = words.iter().map(|word| word.window / (BASE + word.queue) as f64).collect();
        let both = rates[2] / rates.iter().sum::<f64>();
        kinds[if share > 0.9999 {
            0
        } else if (share - both).abs() < 1e-6 {
            2
        } else {
            1
        }] += 1;
    }
    println!("{STEPS} rounds, a share is off by {worst:.6} at most; alone, with one, with both: {kinds:?}");
    assert!(kinds.iter().all(|&count| count > STEPS / 20), "{kinds:?}");
}

/// Hand-worked: a subflow whose neighbour carries three times as much has a quarter after eight rounds. One that falls silent leaves it all after two
/// seconds, and its place is free for a fifth one.
#[test]
fn silent_subflow_gives_its_share_back() {
    let word = |owner, step: u64, window| Word { owner, now: step * STEP, queue: 20_000_000, window };
    let mut words = vec![];
    for step in 1..=10 {
        words.extend([word(1, step, 100.0), word(2, step, 300.0)]);
    }
    words.extend((11..=21).map(|step| word(1, step, 100.0)));
    let got = shares(&words);
    // The eighth round after the first ACK is the ninth ACK.
    assert_eq!((got[14], got[16], got[18]), (1.0, 0.25, 0.25));
    // Until two seconds after the tenth step.
    assert_eq!((got[29], got[30]), (0.25, 1.0));
}
