//! Modules in WASM's text form, each with one error or one behaviour to test.

use std::sync::Arc;

use anabranch_cc::conformance;
use anabranch_cc::registry::{LossContract, LossResponse};
use anabranch_cc::{
    Ack, Cause, Controller, Departure, Ect, Gauges, Limit, Loss, PathSummary, PathView, Phase, Progress, Reduction,
    Restart, Round, Sent, Signal, Supply, Transmission,
};
use anabranch_units::{Bytes, Rate, Span, Time};

use super::*;

mod limits;

/// The address of the table in these modules.
const BASE: usize = 1024;
const SCRATCH: usize = 2048;

/// A module with a table of version 1, a window of 10, and `more`.
fn text(more: &str) -> String {
    text_of(1, more)
}

fn text_of(version: u32, more: &str) -> String {
    let word = |number: u32| number.to_le_bytes().map(|byte| format!("\\{byte:02x}")).concat();
    let ten = 10_f64.to_le_bytes().map(|byte| format!("\\{byte:02x}")).concat();
    let window = BASE + layout::at::WINDOW;
    format!(
        "(module (memory (export \"memory\") 1)\n\
         (data (i32.const {BASE}) \"{}\") (data (i32.const {window}) \"{ten}\")\n\
         (func (export \"anabranch\") (result i32) (i32.const {BASE}))\n{more})",
        word(version)
    )
}

/// A hook that adds one segment for each ACK.
const GROWS: &str =
    "(func (export \"on_ack\") (f64.store (i32.const 1056) (f64.add (f64.load (i32.const 1056)) (f64.const 1))))";

fn module(text: &str) -> Result<Module, String> {
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
    Module::new("mine.wasm", bytes).map_err(|error| error.to_string())
}

fn law(more: &str) -> Law {
    Law::new(Arc::new(module(&text(more)).unwrap()))
}

/// A controller, and the record of its errors.
fn controller(more: &str) -> (Box<dyn Controller>, Faults) {
    let faults = Faults::default();
    let settings = law(more).settings("", &faults);
    (settings.row().build(&settings), faults)
}

#[track_caller]
fn refused(text: &str, because: &str) {
    let error = module(text).unwrap_err();
    assert!(error.starts_with("mine.wasm ") && error.contains(because), "{error}");
}

fn view() -> PathView {
    PathView {
        now: Time::from_ticks(1_500_000_000),
        flight: 3.5,
        mss: Bytes::new(1448),
        rtt_smoothed: Some(Span::from_millis(20)),
        progress: Progress {
            delivered: 7.0,
            lost: 2.0,
            delivered_at: Time::from_ticks(1_250_000_000),
            departed: Time::from_ticks(1_125_000_000),
        },
        ..PathView::default()
    }
}

fn departure() -> Departure {
    Departure {
        time: Time::from_ticks(1_000_000_000),
        window: 11.0,
        flight: 9.0,
        progress: Progress { delivered: 5.0, lost: 1.0, ..Progress::default() },
        supply: Supply::Short,
    }
}

fn ack() -> Ack {
    let ack = Ack { newly_acked: 2.0, newly_lost: 0.25, newly_marked: 0.5, ..Ack::default() };
    Ack {
        rtt: Some(Span::from_millis(30)),
        size: Bytes::new(1000),
        arrival: Time::from_ticks(1_375_000_000),
        departure: departure(),
        limit: Limit::Application,
        phase: Phase::Recovery,
        ..ack
    }
}

fn loss(signal: Signal) -> Loss {
    Loss { signal, cause: Cause::Unknown, lost: 4.0, departure: departure() }
}

fn round() -> Round {
    let rtt_mean = Some(Span::from_millis(50));
    Round { count: 6, elapsed: Span::from_millis(40), acked: 12.0, rtt_min: None, rtt_mean }
}

fn summary(path: u32) -> PathSummary {
    PathSummary {
        path,
        own: path == 1,
        window: 20.0,
        flight: 15.0,
        rtt_smoothed: None,
        rtt_min: Some(Span::from_millis(10)),
        delivered: 100.0,
        lost: 3.0,
    }
}

/// A hook that sets the window to the number at an offset of the table, or to the code at an offset plus one.
fn copies(hook: &str, number: Option<usize>, code: Option<usize>) -> String {
    let value = match (number, code) {
        (Some(at), _) => format!("(f64.load (i32.const {}))", BASE + at),
        (_, Some(at)) => format!("(f64.add (f64.const 1) (f64.convert_i32_u (i32.load (i32.const {}))))", BASE + at),
        _ => panic!("one of them"),
    };
    let grows = if hook == "on_ack" { "" } else { GROWS };
    format!("{grows}(func (export \"{hook}\") (f64.store (i32.const 1056) {value}))")
}

/// The facts of each hook, at the offsets of the header; worked by hand from the events above.
#[test]
fn facts_are_where_the_header_says() {
    let told = |controller: &mut dyn Controller, hook: &str| match hook {
        "on_ack" => controller.on_ack(&view(), &ack()),
        "on_round" => controller.on_round(&view(), &round()),
        "on_loss" => controller.on_loss(&view(), &loss(Signal::Timeout)),
        "on_sent" => controller.on_sent(&view(), &Sent { segments: 1.5, transmission: Transmission::Again }),
        "on_restart" => controller.on_restart(&view(), Restart::PathChanged),
        "on_group" => controller.on_group(&view(), &[summary(0), summary(1)]),
        other => panic!("{other}"),
    };
    let numbers = [
        ("on_ack", "path", "now", 1.5),
        ("on_ack", "path", "flight", 3.5),
        ("on_ack", "path", "mss", 1448.0),
        ("on_ack", "path", "delivered", 7.0),
        ("on_ack", "path", "lost", 2.0),
        ("on_ack", "path", "delivered_at", 1.25),
        ("on_ack", "path", "departed", 1.125),
        ("on_ack", "ack", "newly_acked", 2.0),
        ("on_ack", "ack", "size", 1000.0),
        ("on_ack", "ack", "arrival", 1.375),
        ("on_ack", "ack.departure", "window", 11.0),
        ("on_ack", "ack.departure", "flight", 9.0),
        ("on_ack", "ack.departure", "delivered", 5.0),
        ("on_ack", "ack.departure", "lost", 1.0),
        ("on_round", "round", "count", 6.0),
        ("on_round", "round", "acked", 12.0),
        ("on_round", "path", "now", 1.5),
        ("on_loss", "loss", "lost", 4.0),
        ("on_loss", "loss.departure", "window", 11.0),
        ("on_sent", "sent", "segments", 1.5),
        ("on_group", "group", "window", 20.0),
        ("on_group", "group", "lost", 3.0),
    ];
    let header = Header::read();
    for (hook, part, field, expected) in numbers {
        let (mut controller, faults) = controller(&copies(hook, Some(header.offset(part, field)), None));
        told(&mut *controller, hook);
        assert_eq!((faults.first(), controller.window()), (None, expected), "{hook} {part}.{field}");
    }
    let codes = [
        ("on_ack", "ack.departure", "supply", 1),
        ("on_ack", "ack", "limit", 1),
        ("on_ack", "ack", "phase", 1),
        ("on_loss", "loss", "signal", 1),
        ("on_loss", "loss", "cause", 2),
        ("on_sent", "sent", "transmission", 1),
        ("on_restart", "", "restart", 3),
        ("on_group", "", "group_count", 2),
        ("on_group", "group", "own", 0),
    ];
    for (hook, part, field, expected) in codes {
        let (mut controller, faults) = controller(&copies(hook, None, Some(header.offset(part, field))));
        told(&mut *controller, hook);
        assert_eq!((faults.first(), controller.window()), (None, f64::from(expected) + 1.0), "{hook} {part}.{field}");
    }
}

#[track_caller]
#[expect(clippy::float_cmp, reason = "what the module stored has the same bits")]
fn assert_window(controller: &dyn Controller, expected: f64) {
    assert!(controller.window() == expected, "{} instead of {expected}", controller.window());
}

/// The structs of the C header, as a compiler for wasm32 lays them out: fields at multiples of their size.
struct Header(Vec<Struct>);

/// One struct: each field with its offset in bytes, and the end of the struct.
struct Struct {
    name: String,
    fields: Vec<(String, usize)>,
    end: usize,
}

impl Header {
    fn read() -> Self {
        let mut structs: Vec<Struct> = Vec::new();
        let mut open: Option<Struct> = None;
        for line in template::HEADER.lines() {
            let line = line.split("/*").next().unwrap().trim();
            if let Some(name) = line.strip_prefix("struct anabranch_").and_then(|rest| rest.strip_suffix(" {")) {
                open = Some(Struct { name: name.to_owned(), fields: Vec::new(), end: 0 });
            } else if line == "};" {
                structs.extend(open.take());
            } else if let (Some(Struct { fields, end, .. }), Some(line)) = (&mut open, line.strip_suffix(';')) {
                let (kind, names) = match line.strip_prefix("struct ").or(line.strip_prefix("const ")) {
                    Some(rest) => rest.split_once(' ').unwrap(),
                    None => line.split_once(' ').unwrap(),
                };
                for name in names.split(", ") {
                    let plain = name.trim_start_matches('*').split('[').next().unwrap().to_owned();
                    let nested =
                        kind.strip_prefix("anabranch_").and_then(|kind| structs.iter().find(|it| it.name == kind));
                    let (size, step) = match (name.starts_with('*'), kind, nested) {
                        (true, _, _) | (_, "uint32_t", _) => (4, 4),
                        (_, "double", _) => (8, 8),
                        (_, _, Some(nested)) if name.contains('[') => (8 * nested.end, 8),
                        (_, _, Some(nested)) => (nested.end, 8),
                        _ => panic!("{line}"),
                    };
                    *end = end.next_multiple_of(step);
                    fields.push((plain, *end));
                    *end += size;
                }
            }
        }
        assert_eq!(structs.last().unwrap().end, layout::at::END);
        Self(structs)
    }

    fn field(&self, name: &str, field: &str) -> usize {
        let found = self.0.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("no struct {name}"));
        found.fields.iter().find(|it| it.0 == field).unwrap_or_else(|| panic!("no {name}.{field}")).1
    }

    /// The offset of `cc.part.field`.
    fn offset(&self, part: &str, field: &str) -> usize {
        match part.split_once('.') {
            None if part.is_empty() => self.field("cc", field),
            None => self.field("cc", part) + self.field(if part == "group" { "summary" } else { part }, field),
            Some((part, inner)) => self.field("cc", part) + self.field(part, inner) + self.field(inner, field),
        }
    }
}

#[test]
fn unknown_fact_is_nan() {
    let at = Header::read().offset("path", "rtt_min");
    let place = BASE + at;
    let (mut controller, _) = controller(&format!(
        "(func (export \"on_ack\") (f64.store (i32.const 1056) (select (f64.const 2) (f64.const 3)\n\
         (i64.eq (i64.load (i32.const {place})) (i64.const 0x7ff8000000000000)))))"
    ));
    controller.on_ack(&view(), &ack());
    assert_window(&*controller, 2.0);
}

#[test]
fn the_first_window_is_the_tables_and_a_hook_moves_it() {
    let (mut controller, faults) = controller(GROWS);
    assert_eq!((controller.window(), controller.pacing_rate()), (10.0, None));
    assert_eq!(
        (controller.reduction(), controller.ect(), controller.hears_first()),
        (Reduction::AtOnce, Some(Ect::Zero), false)
    );
    controller.on_ack(&view(), &ack());
    assert_eq!((controller.window(), faults.first()), (11.0, None));
}

/// Without hooks a loss halves the window, a timeout leaves one segment, an undo restores the window, and an idle period or a new path leads to the
/// first window.
#[test]
fn hooks_that_are_not_there_have_the_least_effect() {
    let (mut controller, _) = controller(GROWS);
    for _ in 0..30 {
        controller.on_ack(&view(), &ack());
    }
    controller.on_loss(&view(), &loss(Signal::DupAcks));
    assert_window(&*controller, 20.0);
    controller.on_undo(&view());
    assert_window(&*controller, 40.0);
    controller.on_loss(&view(), &loss(Signal::Timeout));
    assert_window(&*controller, 1.0);
    // After the undo the module goes on from that window.
    controller.on_ack(&view(), &ack());
    assert_window(&*controller, 2.0);
    controller.on_restart(&view(), Restart::Idle);
    assert_window(&*controller, 2.0);
    controller.on_restart(&view(), Restart::PathChanged);
    assert_window(&*controller, 10.0);
}

#[test]
fn a_rate_is_read_too() {
    let (mut controller, faults) =
        controller("(func (export \"on_ack\") (f64.store (i32.const 1064) (f64.const 1e6)))");
    controller.on_ack(&view(), &ack());
    assert_eq!((controller.pacing_rate(), faults.first()), (Some(Rate::from_bits_per_second(1_000_000)), None));
}

/// A table of settings and gauges: `alpha`, default 4, 1 to 8 segments; `wait`, default 0.5, 0 to 1 s; a gauge `level`. `init` sets the window to
/// alpha.
fn with_tables() -> String {
    let bytes = |number: f64| number.to_le_bytes().map(|byte| format!("\\{byte:02x}")).concat();
    let word = |number: usize| (number as u32).to_le_bytes().map(|byte| format!("\\{byte:02x}")).concat();
    let at = |offset: usize, data: &str| format!("(data (i32.const {offset}) \"{data}\")\n");
    let names = 3000;
    let setting = |name, unit, value, least, most| {
        [word(name), word(unit), word(0), word(0), bytes(value), bytes(least), bytes(most)].concat()
    };
    [
        GROWS.to_owned(),
        at(names, "alpha\\00wait\\00level\\00segments\\00s\\00"),
        at(BASE + layout::at::SETTINGS, &[word(2), word(SCRATCH), word(1), word(SCRATCH + 80)].concat()),
        at(SCRATCH, &setting(names, names + 17, 4.0, 1.0, 8.0)),
        at(SCRATCH + 40, &setting(names + 6, names + 26, 0.5, 0.0, 1.0)),
        at(SCRATCH + 80, &[word(names + 11), word(0), bytes(42.0)].concat()),
        format!("(func (export \"init\") (f64.store (i32.const 1056) (f64.load (i32.const {}))))", SCRATCH + 16),
    ]
    .concat()
}

#[test]
fn settings_are_set_by_name_within_their_range() {
    let mut law = law(&with_tables());
    let names: Vec<_> =
        law.module().settings().iter().map(|it| (it.name.clone(), it.unit.clone(), it.default)).collect();
    assert_eq!(names, [("alpha".into(), "segments".into(), 4.0), ("wait".into(), "s".into(), 0.5)]);
    law.set("alpha", "6").unwrap();
    law.set("wait", "10ms").unwrap();
    let faults = Faults::default();
    let settings = law.settings("", &faults);
    let controller = settings.row().build(&settings);
    assert_eq!((controller.window(), faults.first()), (6.0, None));
    let mut gauges = Gauges::default();
    controller.gauges(&mut gauges);
    assert_eq!(gauges.iter().collect::<Vec<_>>(), [("window", 6.0), ("level", 42.0)]);
    for (key, value, message) in [
        ("beta", "1", "mine.wasm has no setting `beta`: it declares alpha, wait"),
        ("alpha", "9", "`alpha` cannot be `9`: use 1 to 8 segments"),
        ("alpha", "10ms", "`alpha` cannot be `10ms`"),
        ("alpha", "nan", "`alpha` cannot be `nan`"),
        ("wait", "2s", "`wait` cannot be `2s`: use 0 to 1 s"),
    ] {
        let error = law.set(key, value).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn a_file_that_is_no_controller_is_refused() {
    let no_module = Module::new("mine.wasm", b"\x7fELF".to_vec()).unwrap_err().to_string();
    assert!(no_module.contains("does not begin with the bytes \\0asm"), "{no_module}");
    let huge = Module::new("mine.wasm", vec![0; FILE_MAX as usize + 1]).unwrap_err().to_string();
    assert!(huge.contains("more than 4 MiB"), "{huge}");
    let broken = Module::new("mine.wasm", b"\0asm\x01\0\0\0\x07".to_vec()).unwrap_err().to_string();
    assert!(broken.contains("is not a module that can be run"), "{broken}");
    refused("(module)", "exports no memory");
    refused("(module (memory (export \"memory\") 1))", "exports no function `anabranch`");
    refused(
        "(module (memory (export \"memory\") 1) (func (export \"anabranch\") (result f64) (f64.const 0)))",
        "exports no function `anabranch`",
    );
    refused(&text(""), "exports no hook in which a window could grow; define one of on_ack, on_round, on_group");
    refused(&text(&format!("{GROWS}(func (export \"on_acks\"))")), "exports `on_acks`, which is no hook");
    refused(&text("(func (export \"on_ack\") (param i32))"), "exports `on_ack` with parameters or results");
    refused(&text_of(7, GROWS), "version 7 of the interface, and this program has version 1");
}

#[test]
fn module_with_import_is_refused() {
    let imports =
        "(module (import \"wasi_snapshot_preview1\" \"clock_time_get\" (func)) (memory (export \"memory\") 1))";
    refused(imports, "imports `clock_time_get` of `wasi_snapshot_preview1`, and there is nothing to import: no clock");
}

#[test]
fn start_function_and_nondeterminism_are_refused() {
    let whole = |more: &str| text(&format!("{GROWS}{more}"));
    refused(&whole("(func $s) (start $s)"), "is not a module that can be run");
    refused(&whole("(func (result v128) (v128.const i32x4 0 0 0 0))"), "is not a module that can be run");
    refused(&whole("(func (result i32) (i32.atomic.load (i32.const 0)))"), "is not a module that can be run");
    let shared = text(GROWS).replace("(export \"memory\") 1)", "(export \"memory\") 1 1 shared)");
    refused(&shared, "is not a module that can be run");
    refused(
        &text(GROWS).replace("(export \"memory\") 1)", "(export \"memory\") i64 1)"),
        "is not a module that can be run",
    );
}

#[test]
fn a_module_cannot_have_much_memory() {
    refused(
        &text(GROWS).replace("(export \"memory\") 1)", "(export \"memory\") 65)"),
        "wants 4259840 bytes of memory at once; at most 4194304",
    );
    // Growing beyond the limit fails with -1, as WASM allows: the window is 10 plus the result, -1.
    let (mut controller, faults) = controller(
        "(func (export \"on_ack\") (f64.store (i32.const 1056)\n\
         (f64.add (f64.const 10) (f64.convert_i32_s (memory.grow (i32.const 64))))))",
    );
    controller.on_ack(&view(), &ack());
    assert_eq!((controller.window(), faults.first()), (9.0, None));
}

#[test]
fn a_table_outside_of_the_memory_is_refused() {
    refused(
        &text(GROWS).replace("(result i32) (i32.const 1024)", "(result i32) (i32.const 65000)"),
        "its memory ends before the table does",
    );
    refused(
        &text(GROWS).replace("(result i32) (i32.const 1024)", "(result i32) (i32.const -4)"),
        "its memory ends before the table does",
    );
    let outside = with_tables().replacen("\\00\\08\\00\\00", "\\00\\ff\\ff\\00", 1);
    assert_ne!(outside, with_tables());
    refused(&text(&outside), "has its settings outside of its memory");
}

/// The first ACK fails. No hook is called after it, and the window stays.
#[track_caller]
fn fails(more: &str, because: &str) {
    let (mut controller, faults) = controller(more);
    controller.on_ack(&view(), &ack());
    let fault = faults.first().expect("it fails").to_owned();
    assert!(fault.starts_with("mine.wasm at 1.5 s: `on_ack` ") && fault.contains(because), "{fault}");
    assert_window(&*controller, 10.0);
    controller.on_ack(&view(), &ack());
    controller.on_round(&view(), &round());
    assert_eq!((controller.window(), faults.first()), (10.0, Some(fault.as_str())));
}

#[test]
fn a_hook_that_fails_says_how_and_is_not_called_again() {
    let stores = |value: &str| format!("(func (export \"on_ack\") (f64.store (i32.const 1056) {value}))");
    fails(
        "(func (export \"on_ack\") (loop br 0))",
        "did not end within 1000000 instructions; look for a loop without an end",
    );
    fails("(func $f (export \"on_ack\") (call $f))", "calls itself more than 500 deep");
    fails("(func (export \"on_ack\") unreachable)", "trapped");
    fails("(func (export \"on_ack\") (drop (i32.div_s (i32.const 1) (i32.const 0))))", "trapped");
    fails("(func (export \"on_ack\") (i32.store (i32.const 65533) (i32.const 1)))", "trapped");
    fails(&stores("(f64.const nan)"), "left a window of NaN, which is to be a finite number of segments, at least 1");
    fails(&stores("(f64.const inf)"), "left a window of inf");
    fails(&stores("(f64.const 0.5)"), "left a window of 0.5");
    fails("(func (export \"on_ack\") (f64.store (i32.const 1064) (f64.const -1)))", "left a pacing rate of -1");
}

#[test]
fn a_beginning_that_fails_is_a_fault_of_the_run() {
    let (controller, faults) = controller(&format!("{GROWS}(func (export \"init\") (loop br 0))"));
    assert!(faults.first().unwrap().starts_with("mine.wasm: `init` did not end within"), "{faults:?}");
    assert_window(&*controller, 1.0);
}

#[test]
fn a_gauge_that_is_nan_is_a_fault() {
    let more = with_tables().replace(
        GROWS,
        &format!("(func (export \"on_ack\") (f64.store (i32.const {}) (f64.const nan)))", SCRATCH + 88),
    );
    let (mut controller, faults) = controller(&more);
    controller.on_ack(&view(), &ack());
    let mut gauges = Gauges::default();
    controller.gauges(&mut gauges);
    assert_eq!(faults.first(), Some("mine.wasm: the gauge `level` is NaN"));
}

/// The sign bit of the NaN of 0/0 differs between processors, and a module can read it.
#[test]
fn every_nan_has_the_same_bits() {
    for made in [
        "(f64.div (f64.const 0) (f64.load (i32.const 3000)))",
        "(f64.sqrt (f64.sub (f64.load (i32.const 3000)) (f64.const 1)))",
        "(f64.add (f64.const -nan:0x1234) (f64.load (i32.const 3000)))",
        "(f64.promote_f32 (f32.div (f32.const 0) (f32.load (i32.const 3000))))",
        "(f64.min (f64.const -nan) (f64.load (i32.const 3000)))",
    ] {
        let (mut controller, faults) = controller(&format!(
            "(func (export \"on_ack\") (f64.store (i32.const 1056) (f64.convert_i32_u\n\
             (i32.add (i32.const 1) (i64.eq (i64.reinterpret_f64 {made}) (i64.const 0x7ff8000000000000))))))"
        ));
        controller.on_ack(&view(), &ack());
        assert_eq!((controller.window(), faults.first()), (2.0, None), "{made}");
    }
}

#[test]
fn each_path_has_a_memory_of_its_own() {
    let faults = Faults::default();
    let settings = law(GROWS).settings("", &faults);
    let (mut one, two) = (settings.row().build(&settings), settings.row().build(&settings));
    one.on_ack(&view(), &ack());
    assert_eq!((one.window(), two.window()), (11.0, 10.0));
}

#[test]
fn the_conformance_model_runs_on_a_module() {
    let contract = LossContract { shrinks_above: 2.0, timeout_window_max: 1.0, loss: LossResponse::Shrinks };
    let faults = Faults::default();
    let good = law(GROWS).settings("", &faults);
    conformance::check(&|| good.row().build(&good), &contract, 50).unwrap();
    let greedy = law(&format!("{GROWS}(func (export \"on_loss\"))")).settings("", &faults);
    let violation = conformance::check(&|| greedy.row().build(&greedy), &contract, 50).unwrap_err();
    assert_eq!(violation.message, "a timeout leads from 10 to 10, more than 1");
    assert_eq!(faults.first(), None);
}

#[test]
fn a_project_has_a_name_that_files_and_packages_can_have() {
    use template::{Language, project};
    let names =
        |language| project("mine", language).unwrap().files.into_iter().map(|file| file.name).collect::<Vec<_>>();
    assert_eq!(names(Language::C), ["Makefile", "mine.c", "anabranch_cc.h", "scenario.toml"]);
    for language in [Language::Rust, Language::C, Language::Python] {
        let project = project("mine", language).unwrap();
        assert!(project.files.iter().all(|file| !file.text.contains("@NAME@") && !file.text.contains("@CC@")));
    }
    for name in ["", "Mine", "../mine", "1st", "fn", "a b", &"a".repeat(41)] {
        assert!(project(name, Language::C).is_err(), "{name}");
    }
}
