//! The work of the stored module: the instructions that it takes for mfast-2019's Table 2, which a page shall simulate and draw within a tenth of a second.
//! An interpreter counts them, so neither the machine nor its load changes them. Calls count more: a module that is compiled for size has twice as many, and a
//! browser takes twice as long for it. Without Node, which unpacks the module, the test says so and passes, unless
//! `ANABRANCH_REQUIRE_BROWSER` is 1.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

#[expect(dead_code, reason = "this test runs the module elsewhere")]
mod node;
#[expect(dead_code, reason = "this test has one scenario")]
mod scenarios;

use wasmi::{Caller, Config, Engine, Extern, ExternType, Func, Linker, Memory, Module, OperatorCost, Store, Val};

use crate::node::{REMEDY, told};
use crate::scenarios::packed;

/// Millions of instructions for the request, from its text to the last answer. A call counts as [`CALL`].
const RECORDED: f64 = 1_196.0;

/// More than this share above what is recorded fails; as much below asks for a new record.
const MARGIN: f64 = 0.05;

#[test]
fn module_takes_the_recorded_work_for_table_2() {
    let Some(bytes) = told("unpack.mjs", &[], String::new()) else { return };
    let request = scenarios::request("experiments/mfast-2019/table2.toml", &["SCTP"]);
    let (fuel, last) = worked(&bytes, &packed(&request));
    let last: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["kind"], "end", "{}: {REMEDY}", last["message"]);
    let millions = fuel as f64 / 1e6;
    let drift = millions / RECORDED - 1.0;
    assert!(
        drift.abs() < MARGIN,
        "the module takes {millions:.1} million instructions for Table 2, {:+.1} % of the {RECORDED} that are recorded; find the reason, and record it",
        100.0 * drift
    );
}

/// What the module takes to answer a request, and the text of its last answer.
fn worked(bytes: &[u8], request: &[u8]) -> (u64, String) {
    let engine = Engine::new(Config::default().consume_fuel(true).operator_cost(OperatorCost {
        call: CALL,
        call_indirect: CALL,
        ..OperatorCost::default()
    }));
    let module = Module::new(&engine, bytes).unwrap();
    let mut store = Store::new(&engine, String::new());
    store.set_fuel(FUEL).unwrap();
    let mut linker = Linker::new(&engine);
    for import in module.imports() {
        let ExternType::Func(kind) = import.ty() else { panic!("{} is no function", import.name()) };
        let is_emit = import.name() == "emit";
        // No law is a module here, so the others are never called.
        let function = Func::new(
            &mut store,
            kind.clone(),
            move |mut caller: Caller<'_, String>, values: &[Val], _: &mut [Val]| {
                assert!(is_emit, "a function for laws is called");
                let &[Val::I32(at), Val::I32(len), ..] = values else { panic!("emit takes a text") };
                let memory = caller.get_export("memory").and_then(Extern::into_memory).unwrap();
                let text = &memory.data(&caller)[at as u32 as usize..][..len as u32 as usize];
                *caller.data_mut() = String::from_utf8(text.to_vec()).unwrap();
                Ok(())
            },
        );
        linker.define(import.module(), import.name(), function).unwrap();
    }
    let instance = linker.instantiate_and_start(&mut store, &module).unwrap();
    let memory: Memory = instance.get_memory(&store, "memory").unwrap();
    let reserve = instance.get_typed_func::<i32, i32>(&store, "reserve").unwrap();
    let at = reserve.call(&mut store, request.len() as i32).unwrap();
    memory.write(&mut store, at as u32 as usize, request).unwrap();
    instance.get_typed_func::<(), ()>(&store, "answer").unwrap().call(&mut store, ()).unwrap();
    (FUEL - store.get_fuel().unwrap(), store.data().clone())
}

/// Enough for a hundred times as much.
const FUEL: u64 = 10_000_000_000;

/// A call costs a browser about as much as so many other instructions.
const CALL: u8 = 20;
