//! Checks the file of a module: its exports, its imports and its limits.

use crate::FILE_MAX;
#[cfg(not(feature = "interpreter"))]
use crate::engine::Machine;
use crate::engine::{self, Compiled, Instance};
use crate::exports;
use crate::hook::HOOKS;
use crate::layout::{VERSION, at, read_u32};
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
    #[cfg(not(feature = "interpreter"))]
    compiled: Compiled,
}

impl Module {
    /// Checks the bytes of a file, which messages and reports call `name`.
    ///
    /// # Errors
    /// If it is no module, is too large, has imports or features that are not supported, or does not follow the interface.
    #[cfg(feature = "interpreter")]
    pub fn new(name: &str, bytes: Vec<u8>) -> Result<Self, ModuleError> {
        Self::checked(name, bytes, engine::compile_checked)
    }

    /// Refuses every file: there is no interpreter, and nobody said which [`Machine`] is to run it.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "interpreter"))]
    pub fn new(name: &str, _bytes: Vec<u8>) -> Result<Self, ModuleError> {
        Err(ModuleError(format!(
            "{name} cannot be run here: this program was built without the interpreter of modules"
        )))
    }

    /// Checks the bytes of a file, which messages and reports call `name`, and lets `machine` run it.
    ///
    /// # Errors
    /// If it is no module, is too large, the machine refuses it, or it does not follow the interface.
    #[cfg(not(feature = "interpreter"))]
    pub fn on(machine: &'static dyn Machine, name: &str, bytes: Vec<u8>) -> Result<Self, ModuleError> {
        Self::checked(name, bytes, |bytes| Compiled::new(machine, bytes))
    }

    fn checked(
        name: &str,
        bytes: Vec<u8>,
        compile: impl FnOnce(&[u8]) -> Result<Compiled, String>,
    ) -> Result<Self, ModuleError> {
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
        let compiled = compile(&bytes).map_err(error)?;
        let exports = engine::exports(&compiled);
        exports::check(&exports).map_err(error)?;
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
        let settings = tables::settings(&memory, base).map_err(error)?;
        let gauges = tables::gauges(&memory, base).map_err(error)?;
        let is_exported = |hook: &&str| exports.iter().any(|export| export.name == *hook);
        let hooks = HOOKS.into_iter().filter(is_exported).collect();
        let digest = engine::digest(&compiled, &bytes);
        Ok(Self {
            name: name.to_owned(),
            digest,
            bytes,
            hooks,
            settings,
            gauges,
            #[cfg(not(feature = "interpreter"))]
            compiled,
        })
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

    /// The module as instances are made of it.
    #[cfg(feature = "interpreter")]
    pub(crate) fn compiled(&self) -> Compiled {
        engine::compile(&self.bytes).expect("it was compiled when it was checked")
    }

    /// The module as instances are made of it.
    #[cfg(not(feature = "interpreter"))]
    pub(crate) fn compiled(&self) -> Compiled {
        self.compiled.clone()
    }
}

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
