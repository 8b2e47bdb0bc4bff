//! Laws from files: under the playground's module, which lets Node run them as a browser would, they do what they do under the command, which interprets
//! them. Without Node the tests say so and pass.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

mod guest;
mod node;
#[expect(dead_code, reason = "these tests have scenarios of their own")]
mod scenarios;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_lab::own::Module;
use serde_json::{Value, json};

use crate::guest::{GROWS, module};
use crate::node::{REMEDY, in_node};

/// Files of laws in a folder of their own.
struct Laws(PathBuf);

impl Laws {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("laws-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn add(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// The last answer of the sources, with the interpreter.
    fn interpreted(&self, request: &Value) -> Value {
        let mut last = Value::Null;
        let mut modules = |name: &str| {
            let bytes = fs::read(self.0.join(name)).map_err(|error| error.to_string())?;
            Module::new(name, bytes).map_err(|error| error.to_string())
        };
        scenarios::asked(request, &mut modules, &mut |answer| last = answer.clone());
        last
    }
}

/// A run of two flows with a law, on a link that loses some packets, with a rival.
fn run(law: &str, settings: &str, seconds: f64) -> Value {
    let text = format!(
        "duration = '{seconds}s'\n[[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '10Mbit/s'\ndelay = '10ms'\nqueue = {{ kind = 'drop_tail', packets = 20 }}\n\
         error = {{ kind = 'uniform', rate = 0.002 }}\n[[flow]]\nid = 'f#'\ncount = 2\nfrom = 'a'\nto = 'b'\ntransport = 'anabranch'\npacket = '1500B'\n\
         cc = {{ plugin = '{law}'{settings} }}\n[[flow]]\nid = 'r'\nstart = '1s'\nfrom = 'a'\nto = 'b'\ntransport = 'anabranch'\npacket = '1500B'\ncc = {{ name = 'cubic' }}\n"
    );
    json!({ "ask": "run", "file": { "name": "net.toml", "text": text, "laws": [law] } })
}

#[track_caller]
fn assert_same(laws: &Laws, requests: &[Value]) {
    let Some(answers) = in_node(requests, &laws.files()) else { return };
    for (request, answer) in requests.iter().zip(answers) {
        let text = request["file"]["text"].as_str().unwrap_or_default();
        let own = text.lines().find(|line| line.starts_with("cc")).unwrap_or_default();
        assert_eq!(answer, laws.interpreted(request), "{own}: {REMEDY}");
    }
}

/// Runs of modules have the same hash, events, points and report as under the interpreter, to the bit.
#[test]
fn law_from_file_gives_what_the_interpreter_gives() {
    let laws = Laws::new("same");
    laws.add("grows.wasm", &module(GROWS));
    // A window that depends on the bits of each NaN that arithmetic makes, of both sizes.
    let zero = "(f64.load (i32.const 4000))";
    let small = "(f32.load (i32.const 4000))";
    let odd = "(f64.reinterpret_i64 (i64.const 0xfff8000000001234))";
    let odd_small = "(f32.reinterpret_i32 (i32.const 0xffc01234))";
    let made = [
        format!("(f64.div {zero} {zero})"),
        format!("(f64.sqrt (f64.sub {zero} (f64.const 1)))"),
        format!("(f64.sub (f64.const inf) (f64.add {zero} (f64.const inf)))"),
        format!("(f64.mul {zero} (f64.const inf))"),
        format!("(f64.add {odd} {zero})"),
        format!("(f64.min {odd} {zero})"),
        format!("(f64.max {zero} {odd})"),
        format!("(f64.ceil {odd})"),
        format!("(f64.floor {odd})"),
        format!("(f64.trunc {odd})"),
        format!("(f64.nearest {odd})"),
        format!("(f64.promote_f32 {odd_small})"),
        format!("(f64.promote_f32 (f32.div {small} {small}))"),
        format!("(f64.promote_f32 (f32.demote_f64 {odd}))"),
        // Only the sign changes: these keep their bits.
        format!("(f64.neg {odd})"),
        format!("(f64.abs {odd})"),
        format!("(f64.copysign {odd} (f64.const 1))"),
        format!("(f64.copysign (f64.const 1) (f64.div {zero} {zero}))"),
    ];
    // The hash of all bits, folded to a number from 0 to 1 that is added to the window.
    let fold = made.iter().fold("(i64.const 0)".to_owned(), |sum, value| {
        format!("(i64.add (i64.mul {sum} (i64.const 31)) (i64.reinterpret_f64 {value}))")
    });
    let fold_small = ["ceil", "floor", "trunc", "nearest", "sqrt"].iter().fold(fold, |sum, kind| {
        format!(
            "(i64.add (i64.mul {sum} (i64.const 31)) (i64.extend_i32_u (i32.reinterpret_f32 (f32.{kind} {odd_small}))))"
        )
    });
    let small_pairs = ["add", "sub", "mul", "div", "min", "max"].iter().fold(fold_small, |sum, kind| {
        format!("(i64.add (i64.mul {sum} (i64.const 31)) (i64.extend_i32_u (i32.reinterpret_f32 (f32.{kind} {odd_small} {small}))))")
    });
    laws.add(
        "nan.wasm",
        &module(&format!(
            "(func (export \"on_ack\") (f64.store (i32.const 1056) (f64.add (f64.load (i32.const 1056))\n\
             (f64.div (f64.convert_i64_u (i64.and {small_pairs} (i64.const 0xffff))) (f64.const 65536)))))"
        )),
    );
    // It keeps its state in the table itself, grows its memory, and calls through a table.
    laws.add(
        "state.wasm",
        &module(
            "(type $v (func)) (table 2 funcref) (elem (i32.const 0) $up $down)\n\
             (func $up (f64.store (i32.const 1424) (f64.add (f64.load (i32.const 1424)) (f64.const 0.5))))\n\
             (func $down (f64.store (i32.const 1424) (f64.mul (f64.load (i32.const 1424)) (f64.const 0.75))))\n\
             (func (export \"on_ack\") (call_indirect (type $v) (i32.and (i32.const 1) (i32.trunc_f64_u (f64.load (i32.const 1424)))))\n\
             (drop (memory.grow (i32.const 1)))\n\
             (f64.store (i32.const 1056) (f64.add (f64.const 4) (f64.add (f64.load (i32.const 1424)) (f64.convert_i32_u (memory.size))))))\n\
             (func (export \"on_loss\") (f64.store (i32.const 1056) (f64.const 2)) (f64.store (i32.const 1064) (f64.const 3e6)))\n\
             (func (export \"on_undo\") (f64.store (i32.const 1064) (f64.const 0)))\n\
             (func (export \"on_restart\") (f64.store (i32.const 1424) (f64.const 1)))",
        ),
    );
    let mut requests: Vec<Value> = ["grows.wasm", "nan.wasm", "state.wasm"].map(|law| run(law, "", 3.0)).into();
    requests.push(run("grows.wasm", ", n = 7", 1.0));
    requests.extend(["grows.wasm", "state.wasm"].map(|name| json!({ "ask": "law", "name": name })));
    if compile_template(&laws) {
        requests.extend(["", ", initial_window = 4, increase = 3"].map(|settings| run("mine.wasm", settings, 20.0)));
        requests.push(json!({ "ask": "law", "name": "mine.wasm" }));
    }
    for request in &requests {
        let last = laws.interpreted(request);
        assert_ne!(last["kind"], "error", "{last}");
    }
    assert_same(&laws, &requests);
}

/// The template in C as it is written for users; `false` without a compiler.
#[expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]
fn compile_template(laws: &Laws) -> bool {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("law-in-c");
    fs::create_dir_all(&folder).unwrap();
    let template = scenarios::root().join("crates/plugin/template/c");
    fs::copy(template.join("anabranch_cc.h"), folder.join("anabranch_cc.h")).unwrap();
    fs::write(folder.join("mine.c"), fs::read_to_string(template.join("law.c")).unwrap().replace("@NAME@", "mine"))
        .unwrap();
    let options = ["--target=wasm32", "-O2", "-mbulk-memory", "-nostdlib", "-Wl,--no-entry", "-Wl,-z,stack-size=16384"];
    let made = Command::new("clang")
        .args(options)
        .arg("-o")
        .arg(laws.0.join("mine.wasm"))
        .arg("mine.c")
        .current_dir(folder)
        .status();
    let is_made = made.is_ok_and(|status| status.success());
    if !is_made {
        println!("skipped the template in C: apt-get install clang lld");
    }
    is_made
}

/// Hooks whose work grows with the setting `n`, whatever the instructions are.
const WORK: [(&str, &str); 15] = [
    ("loop", ""),
    (
        "condition",
        "(if (i32.and (local.get $i) (i32.const 1)) (then (drop (local.get $i)) (nop)) (else (local.set $x (i32.const 3))))",
    ),
    (
        "half a condition",
        "(if (i32.rem_u (local.get $i) (i32.const 3)) (then (local.set $x (i32.add (local.get $x) (local.get $i)))))",
    ),
    (
        "a condition with a result",
        "(local.set $x (i32.const 4) (if (param i32) (result i32) (i32.and (local.get $i) (i32.const 1)) (then (i32.const 1) (i32.add))))",
    ),
    (
        "blocks",
        "(block (block (br_if 1 (i32.and (local.get $i) (i32.const 2))) (local.set $x (i32.const 1))) (local.set $x (i32.const 2)))",
    ),
    (
        "switch",
        "(block (block (block (br_table 0 1 2 (i32.and (local.get $i) (i32.const 3)))) (local.set $x (i32.const 1))) (br 0) (local.set $x (i32.const 7)))",
    ),
    ("call", "(call $leaf) (call $leaf)"),
    ("tail", "(call $tail)"),
    ("indirect", "(call_indirect (type $v) (i32.const 0))"),
    (
        "inner loop",
        "(local.set $x (i32.const 5)) (loop $b (br_if $b (local.tee $x (i32.sub (local.get $x) (i32.const 1)))))",
    ),
    ("fill", "(memory.fill (i32.const 8192) (i32.const 0) (i32.const 1000))"),
    ("copy", "(memory.copy (i32.const 8192) (i32.const 8193) (i32.const 777))"),
    (
        "table",
        "(table.fill $t (i32.const 0) (ref.func $leaf) (i32.const 16)) (table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 15))",
    ),
    ("grow in vain", "(drop (memory.grow (i32.const 100)))"),
    (
        "floats",
        "(local.set $f (f64.sqrt (f64.add (local.get $f) (f64.promote_f32 (f32.div (f32.const 0) (f32.const 0))))))",
    ),
];

/// A browser counts no instructions, so the page writes the counting into the code. It ends a call where the interpreter does: a call that just fits fits
/// in both, and one step more fits in neither.
#[test]
fn call_that_just_fits_fits_everywhere() {
    let laws = Laws::new("fuel");
    let mut requests = Vec::new();
    for (index, (what, work)) in WORK.iter().enumerate() {
        let name = format!("work{index}.wasm");
        laws.add(
            &name,
            &module(&format!(
                "(type $v (func)) (table $t 16 funcref) (elem (table $t) (i32.const 0) func $leaf) (func $leaf (nop)) (func $tail (return_call $leaf))\n\
                 (func (export \"on_ack\") (local $i i32) (local $x i32) (local $f f64)\n\
                 (local.set $i (i32.trunc_f64_u (f64.load (i32.const 2064))))\n\
                 (loop $a (if (local.get $i) (then (local.set $i (i32.sub (local.get $i) (i32.const 1))) {work} (br $a)))))"
            )),
        );
        let fits = |n: u32| {
            let last = laws.interpreted(&run(&name, &format!(", n = {n}"), 0.05));
            if last["kind"] == "error" {
                assert!(last["message"].as_str().unwrap().contains("did not end within 1000000"), "{what}: {last}");
            }
            last["kind"] == "end"
        };
        let (mut least, mut most) = (1, 1_000_000);
        assert!(fits(least) && !fits(most), "{what}");
        while most - least > 1 {
            let middle = (least + most) / 2;
            if fits(middle) { least = middle } else { most = middle }
        }
        requests.extend([least, most].map(|n| run(&name, &format!(", n = {n}"), 0.05)));
    }
    assert_same(&laws, &requests);
}

/// The depth of calls that just fits is the same.
#[test]
fn depth_that_just_fits_fits_everywhere() {
    let laws = Laws::new("depth");
    laws.add(
        "deep.wasm",
        &module(
            "(func $down (param i32) (if (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1))))))\n\
             (func (export \"on_ack\") (call $down (i32.trunc_f64_u (f64.load (i32.const 2064)))))",
        ),
    );
    let requests = [400, 498, 499, 500, 20_000].map(|n| run("deep.wasm", &format!(", n = {n}"), 0.05));
    let kinds: Vec<bool> = requests.iter().map(|request| laws.interpreted(request)["kind"] == "end").collect();
    assert_eq!(kinds, [true, true, false, false, false]);
    assert_same(&laws, &requests);
}

/// A run with this law, and what its error says.
#[track_caller]
fn assert_fails(laws: &Laws, wrong: &[(&str, String, &str)]) {
    let requests: Vec<Value> = wrong.iter().map(|(name, ..)| run(name, "", 0.2)).collect();
    for (name, more, _) in wrong {
        laws.add(name, &module(more));
    }
    let Some(answers) = in_node(&requests, &laws.files()) else { return };
    for (((name, _, because), request), answer) in wrong.iter().zip(&requests).zip(answers) {
        let (said, native) = (answer["message"].as_str().unwrap_or_default(), laws.interpreted(request));
        assert!(said.contains(because), "{name}: {answer}");
        // Where it failed is the same; the reason of a trap is in the words of who ran it.
        let before = |message: &str| message.split(" trapped: ").next().unwrap().to_owned();
        assert_eq!(before(said), before(native["message"].as_str().unwrap_or_default()), "{name}");
    }
}

/// Whatever a hook does, the run ends with a message.
#[test]
fn hook_that_misbehaves_ends_the_run() {
    let acks = |what: &str| format!("(func (export \"on_ack\") {what})");
    let wrong = [
        ("endless.wasm", acks("(loop br 0)"), "`on_ack` did not end within 1000000 instructions"),
        ("deep.wasm", "(func $f (export \"on_ack\") (call $f))".to_owned(), "calls itself more than 500 deep"),
        (
            "wide.wasm",
            format!("(func $f (export \"on_ack\") {} (call $f))", "(local i64)".repeat(900)),
            "calls itself more than 500 deep",
        ),
        ("trap.wasm", acks("unreachable"), "`on_ack` trapped: "),
        ("divide.wasm", acks("(drop (i32.div_s (i32.const 1) (i32.const 0)))"), "`on_ack` trapped: "),
        ("outside.wasm", acks("(i32.store (i32.const 65533) (i32.const 1))"), "`on_ack` trapped: "),
        ("nan.wasm", acks("(f64.store (i32.const 1056) (f64.const nan))"), "left a window of NaN"),
        ("inf.wasm", acks("(f64.store (i32.const 1056) (f64.const inf))"), "left a window of inf"),
        ("rate.wasm", acks("(f64.store (i32.const 1064) (f64.const -1))"), "left a pacing rate of -1"),
        ("init.wasm", format!("{GROWS}(func (export \"init\") (loop br 0))"), "`init` did not end within"),
        ("grow.wasm", acks("(loop (drop (memory.grow (i32.const 1))) (br 0))"), "`on_ack` did not end within"),
        (
            "fill.wasm",
            acks("(loop (memory.fill (i32.const 4096) (i32.const 0) (i32.const 60000)) (br 0))"),
            "`on_ack` did not end within",
        ),
    ];
    assert_fails(&Laws::new("wrong"), &wrong);
}

/// Files that are no laws are refused before anything of them is run, in the words of the command.
#[test]
fn file_that_is_no_law_is_refused() {
    let laws = Laws::new("refused");
    let text = |text: &str| wat::parse_str(text).unwrap();
    let with = |more: &str| module(&format!("{GROWS}{more}"));
    let replaced = |from: &str, to: &str| {
        let text = format!(
            "(module (memory (export \"memory\") 1) (data (i32.const 1024) \"\\01\") (data (i32.const 1056) \"\\00\\00\\00\\00\\00\\00\\24\\40\") (func (export \"anabranch\") (result i32) (i32.const 1024)){GROWS})"
        );
        wat::parse_str(text.replace(from, to)).unwrap()
    };
    let memory = "(memory (export \"memory\") 1)";
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"\x7fELF".to_vec(), "does not begin with the bytes"),
        (vec![0; (4 << 20) + 1], "more than 4 MiB"),
        (Vec::new(), "does not begin with the bytes"),
        (b"\0asm\x01\0\0\0\x07".to_vec(), "is not a module that can be run"),
        (b"\0asm\x01\0\0\0\x03\xff\xff\xff\xff\x0f".to_vec(), "is not a module that can be run"),
        (b"\0asm\x01\0\0\0".to_vec(), "exports no memory"),
        (text("(module (import \"env\" \"now\" (func)))"), "imports `now` of `env`, and there is nothing to import"),
        (text("(module (import \"env\" \"memory\" (memory 1)))"), "imports `memory` of `env`"),
        (text(&format!("(module {memory})")), "exports no function `anabranch`"),
        (module(""), "exports no hook in which a window could grow"),
        (with("(func (export \"on_acks\"))"), "exports `on_acks`, which is no hook"),
        (module("(func (export \"on_ack\") (param i32))"), "exports `on_ack` with parameters or results"),
        (with("(func $s) (start $s)"), "is not a module that can be run"),
        (with("(func (result v128) (v128.const i32x4 0 0 0 0))"), "is not a module that can be run"),
        (with("(func (result i32) (i32.atomic.load (i32.const 0)))"), "is not a module that can be run"),
        (replaced("(export \"memory\") 1)", "(export \"memory\") 1 1 shared)"), "is not a module that can be run"),
        (replaced("(export \"memory\") 1)", "(export \"memory\") i64 1)"), "is not a module that can be run"),
        (
            replaced("(export \"memory\") 1)", "(export \"memory\") 65)"),
            "wants 4259840 bytes of memory at once; at most 4194304",
        ),
        (
            replaced("(result i32) (i32.const 1024)", "(result i32) (i32.const 65000)"),
            "its memory ends before the table does",
        ),
        (
            replaced("(result i32) (i32.const 1024)", "(result i32) (i32.const -4)"),
            "its memory ends before the table does",
        ),
        (
            replaced("(result i32) (i32.const 1024)", "(result i32) (loop (br 0)) (i32.const 1024)"),
            "`anabranch` did not end within",
        ),
        (replaced("\"\\01\"", "\"\\07\""), "version 7 of the interface"),
        (
            with(&(0..1000).map(|n| format!("(export \"e{n}\" (memory 0))")).collect::<String>()),
            "exports; at most 1000 are possible",
        ),
        (with(&format!("(func {})", "(local i64)".repeat(1001))), "has 1001 local variables in a function"),
        (
            with(&format!("(table 1 funcref) (func $g) (elem func {})", "$g ".repeat(10_001))),
            "entries of function tables",
        ),
        (with(&format!("(export \"{}\" (memory 0))", "e".repeat(257))), "a name of more than 256 bytes"),
    ];
    let requests: Vec<Value> = cases
        .iter()
        .enumerate()
        .map(|(index, (bytes, _))| {
            let name = format!("no{index}.wasm");
            laws.add(&name, bytes);
            json!({ "ask": "law", "name": name })
        })
        .chain([json!({ "ask": "law", "name": "absent.wasm" })])
        .collect();
    let Some(answers) = in_node(&requests, &laws.files()) else { return };
    for ((index, answer), (_, because)) in answers.iter().enumerate().zip(&cases) {
        let (said, native) = (answer["message"].as_str().unwrap_or_default(), laws.interpreted(&requests[index]));
        assert!(said.contains(because), "{index}: {because}: {answer}");
        if !because.contains("can be run") {
            assert_eq!(native["message"], said, "{index}");
        } else {
            assert!(native["message"].as_str().unwrap().contains(because), "{index}: {native}");
        }
    }
    assert!(answers.last().unwrap()["message"].as_str().unwrap().contains("drop the file onto the page"));
}
