//! Modules with too many parts, and hooks without an end.

use super::*;

/// Each part has a limit: one more is refused, with a sentence, before anything is compiled; as many as allowed are taken.
#[test]
fn module_with_too_many_parts_refused() {
    let many = |count: usize, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<String>();
    let taken = |more: String| assert!(module(&text(&format!("{GROWS}{more}"))).is_ok());
    let one_more = |more: String, because: &str| refused(&text(&format!("{GROWS}{more}")), because);
    // There are three exports already, and two types.
    let exports = |count| many(count, &|n| format!("(export \"e{n}\" (memory 0))"));
    taken(exports(997));
    one_more(exports(998), "has 1001 exports; at most 1000 are possible");
    let types = |count| {
        let bits = |n: usize| (0..10).map(|bit| if n >> bit & 1 == 1 { "i32 " } else { "f64 " }).collect::<String>();
        many(count, &|n| format!("(type (func (param {})))", bits(n)))
    };
    taken(types(998));
    one_more(types(999), "has 1001 function types; at most 1000 are possible");
    let entries = |count| format!("(func $f) (elem func {})", "$f ".repeat(count));
    taken(entries(10_000));
    one_more(entries(5000) + &entries(5001).replace("(func $f) ", ""), "has 10001 entries of function tables");
    let locals = |count| format!("(func {})", "(local i64) ".repeat(count));
    taken(locals(1000));
    one_more(locals(1001), "has 1001 local variables in a function");
    taken(format!("(export \"{}\" (memory 0))", "e".repeat(256)));
    one_more(format!("(export \"{}\" (memory 0))", "e".repeat(257)), "a name of more than 256 bytes");
    let import = "(module (import \"\\1b[2J\\n\\e2\\80\\ae\" \"now\" (func)))";
    refused(import, "imports `now` of `\\u{1b}[2J\\n\\u{202e}`");
    let import = format!("(module (import \"a\" \"{}\" (func)))", "b".repeat(100_000));
    refused(&import, &format!("imports `{}…` of `a`", "b".repeat(60)));
}

/// What the fuel allows fits into the stack of the host, whatever the instruction is. In an optimised build of wasmi with its other dispatch,
/// growing in vain called itself until the process was aborted.
#[test]
fn loop_of_any_instruction_ends_for_lack_of_fuel() {
    let with = "(table $t 1 funcref) (type $v (func)) (func $n) (elem (i32.const 0) $n) (data $d \"abc\")";
    for instruction in [
        "(drop (memory.grow (i32.const 1)))",
        "(drop (memory.grow (i32.const 100000)))",
        "(drop (table.grow $t (ref.null func) (i32.const 1)))",
        "(drop (table.grow $t (ref.null func) (i32.const 100000)))",
        "(table.set $t (i32.const 0) (table.get $t (i32.const 0)))",
        "(table.fill $t (i32.const 0) (ref.func $n) (i32.const 1))",
        "(table.copy $t $t (i32.const 0) (i32.const 0) (i32.const 1))",
        "(memory.fill (i32.const 2048) (i32.const 0) (i32.const 60000))",
        "(memory.copy (i32.const 2048) (i32.const 2049) (i32.const 60000))",
        "(memory.init $d (i32.const 2048) (i32.const 0) (i32.const 3))",
        "(drop (memory.size)) (drop (table.size $t))",
        "(call $n)",
        "(call_indirect (type $v) (i32.const 0))",
    ] {
        let hook = format!("{with}(func (export \"on_ack\") (loop $again {instruction} (br $again)))");
        fails(&hook, "`on_ack` did not end within 1000000 instructions");
    }
}
