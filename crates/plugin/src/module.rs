//! Checks the file of a module: its exports, its imports and its limits.

use std::fmt;

use sha2::{Digest, Sha256};
use wasmi::ExternType;
use wasmparser::{Validator, WasmFeatures};

use crate::FILE_MAX;
use crate::instance::{HOOKS, Instance, MEMORY, MEMORY_MAX, TABLE, engine, no_table};
use crate::layout::{VERSION, at, read_u32};
use crate::limits;
use crate::refusal::ModuleError;
use crate::tables::{self, Gauge, Setting};

/// A checked module.
#[derive(Debug)]
pub struct Module {
    name: String,
    digest: String,
    bytes: Vec<u8>,
    hooks: Vec<&'static str>,
    settings: Vec<Setting>,
    gauges: Vec<Gauge>,
}

impl Module {
    /// Checks the bytes of a file, which messages and reports call `name`.
    ///
    /// # Errors
    /// If it is no module, is too large, has imports or features that are not supported, or does not follow the interface.
    pub fn new(name: &str, bytes: Vec<u8>) -> Result<Self, ModuleError> {
        let error = |fault: String| ModuleError(format!("{name} {fault}"));
        if bytes.len() as u64 > FILE_MAX {
            return Err(error(format!(
                "has more than {} MiB; build it optimised and without debugging information",
                FILE_MAX >> 20
            )));
        }
        if !bytes.starts_with(b"\0asm") {
            return Err(error(
                "is no WASM module: it does not begin with the bytes \\0asm; `anabranch cc new NAME` writes a project that makes one"
                    .to_owned(),
            ));
        }
        limits::check(&bytes).map_err(error)?;
        // The compiler validates as it goes, and may have panicked before it finds a mistake.
        let mut validator = Validator::new_with_features(FEATURES);
        validator.validate_all(&bytes).map_err(|refusal| error(not_run(&refusal)))?;
        let compiled = compile(&bytes).map_err(error)?;
        check_exports(&compiled).map_err(error)?;
        let instance = Instance::new(&compiled).map_err(error)?;
        let (memory, base) = (instance.memory(), instance.base());
        let version = read_u32(instance.table(), 0).unwrap_or(0);
        if version != VERSION {
            return Err(error(format!(
                "is written for version {version} of the interface, and this program has version {VERSION}; build it with this \
                 program's anabranch_cc.h or anabranch_cc.rs"
            )));
        }
        check_codes(instance.table()).map_err(error)?;
        let settings = tables::settings(memory, base).map_err(error)?;
        let gauges = tables::gauges(memory, base).map_err(error)?;
        let hooks = HOOKS.into_iter().filter(|hook| compiled.get_export(hook).is_some()).collect();
        let digest = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { name: name.to_owned(), digest, bytes, hooks, settings, gauges })
    }

    /// Its name in messages and reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The SHA-256 of its file in hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The bytes of its file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hooks that it exports, a subset of [`HOOKS`].
    pub fn hooks(&self) -> &[&'static str] {
        &self.hooks
    }

    /// The settings that it declares, in the order of its list.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The names of its gauges, the window's first.
    pub fn gauge_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        [tables::WINDOW].into_iter().chain(self.gauges.iter().map(|gauge| gauge.name))
    }

    pub(crate) fn gauges(&self) -> &[Gauge] {
        &self.gauges
    }

    /// Compiles the module for its own engine. Engines lend stacks to calls, so threads would wait for the stacks of a shared engine.
    pub(crate) fn compiled(&self) -> wasmi::Module {
        compile(&self.bytes).expect("it was compiled when it was checked")
    }
}

fn compile(bytes: &[u8]) -> Result<wasmi::Module, String> {
    wasmi::Module::new(&engine(), bytes).map_err(|error| not_run(&error))
}

/// The part of WASM that the compiler knows; it refuses what it has not.
const FEATURES: WasmFeatures = WasmFeatures::WASM2
    .difference(WasmFeatures::SIMD)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::TAIL_CALL);

fn not_run(error: &dyn fmt::Display) -> String {
    format!(
        "is not a module that can be run: {error}; allowed is WASM 2.0 without vector instructions, threads, 64-bit memories and a start \
         function"
    )
}

/// Checks the names and types of exports. There are no imports.
fn check_exports(module: &wasmi::Module) -> Result<(), String> {
    match module.get_export(MEMORY) {
        Some(ExternType::Memory(memory)) => {
            let least = memory.minimum().saturating_mul(PAGE);
            if least > MEMORY_MAX as u64 {
                return Err(format!(
                    "wants {least} bytes of memory at once; at most {MEMORY_MAX} are possible: make its stack or its tables smaller"
                ));
            }
        }
        _ => return Err(format!("exports no memory `{MEMORY}`; linkers export it unless they are told to import one")),
    }
    match module.get_export(TABLE) {
        Some(ExternType::Func(function))
            if function.params().is_empty() && function.results() == [wasmi::ValType::I32] => {}
        _ => return Err(no_table()),
    }
    for export in module.exports() {
        let (name, is_hook) = (export.name(), HOOKS.contains(&export.name()));
        let is_plain = matches!(export.ty(), ExternType::Func(function) if function.params().is_empty() && function.results().is_empty());
        if is_hook && !is_plain {
            return Err(format!(
                "exports `{name}` with parameters or results; a hook has none, and finds the facts in the table"
            ));
        }
        if name.starts_with("on_") && !is_hook {
            return Err(format!(
                "exports `{}`, which is no hook and would never be called; there are {}",
                limits::shown(name),
                HOOKS.join(", ")
            ));
        }
    }
    let grows = ["on_ack", "on_round", "on_group"];
    match grows.iter().any(|hook| module.get_export(hook).is_some()) {
        true => Ok(()),
        false => Err(format!("exports no hook in which a window could grow; define one of {}", grows.join(", "))),
    }
}

/// Bytes of a page of memory.
const PAGE: u64 = 1 << 16;

/// Checks the constant codes.
fn check_codes(table: &[u8]) -> Result<(), String> {
    let code = |offset| read_u32(table, offset).unwrap_or(u32::MAX);
    let (reduction, ect) = (code(at::REDUCTION), code(at::ECT));
    if reduction > 1 {
        return Err(format!("has `reduction` {reduction}; 0 is at once, 1 is in proportion"));
    }
    match ect {
        0..=2 => Ok(()),
        _ => Err(format!("has `ect` {ect}; 0 is ECT(0), 1 is ECT(1), 2 is none")),
    }
}
