//! The laws of the flows, loaded into the kernel while a variant is measured.

use std::collections::BTreeMap;
use std::fs::File;

use rustix::fs::{FlockOperation, flock};

use super::flow::Flow;
use crate::links::output;

/// Our laws, which `anabranch kernel load` knows.
const OURS: [&str; 5] = ["anabranch", "fast", "emfast", "rrfast", "composite"];
/// Names in the simulator and in the kernel, for laws that the kernel has.
const THE_KERNELS: [(&str, &str); 3] = [("reno", "reno"), ("cubic", "cubic"), ("bbr1", "bbr")];

/// Whether the kernel has this law of the simulator, or can load it.
pub(super) fn is_known(law: &str) -> bool {
    OURS.contains(&law) || THE_KERNELS.iter().any(|(name, _)| *name == law)
}

/// The name of the law in the kernel.
pub(super) fn of_kernel(law: &str) -> &str {
    THE_KERNELS.iter().find(|(name, _)| *name == law).map_or(law, |(_, name)| name)
}

/// Loaded laws, which are unloaded at the end in any case.
pub(super) struct Laws<'a> {
    anabranch: &'a str,
    names: Vec<String>,
    /// A law's name is the whole machine's: the tests of `anabranch kernel` wait, and are waited for.
    _turn: File,
}

impl<'a> Laws<'a> {
    pub(super) fn load(anabranch: &'a str, flows: &[Flow]) -> Result<Self, String> {
        let path = std::env::temp_dir().join("anabranch-kernel-tests.lock");
        let turn = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        flock(&turn, FlockOperation::LockExclusive).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut laws = Self { anabranch, names: vec![], _turn: turn };
        for (name, settings) in wanted(flows)? {
            // Removes what an earlier run has left; it fails if there is nothing.
            _ = output(anabranch, &["kernel", "unload", name]);
            let words = ["kernel", "load", name].into_iter().chain(settings.iter().map(String::as_str));
            output(anabranch, &words.collect::<Vec<_>>())?;
            laws.names.push(name.to_owned());
        }
        Ok(laws)
    }
}

impl Drop for Laws<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            _ = output(self.anabranch, &["kernel", "unload", name]);
        }
    }
}

/// The laws that have to be loaded, with their settings. A law has one set of settings in the kernel.
fn wanted(flows: &[Flow]) -> Result<BTreeMap<&str, &Vec<String>>, String> {
    let mut laws = BTreeMap::new();
    for flow in flows {
        if !is_known(&flow.law) {
            return Err(format!("flow {}: the kernel has no law `{}`", flow.id, flow.law));
        }
        if OURS.contains(&flow.law.as_str())
            && laws.insert(flow.law.as_str(), &flow.settings).is_some_and(|before| *before != flow.settings)
        {
            return Err(format!("flow {}: another flow has `{}` with other settings", flow.id, flow.law));
        }
    }
    Ok(laws)
}
