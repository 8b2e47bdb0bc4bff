//! Laws from outside the registry: WASM modules, and laws that a program makes, such as a Python class.
//!
//! A document names such a law by the key `plugin` of `cc`. A module is a file; a program gives its laws to the document by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anabranch_cc::Settings;
use anabranch_plugin::Law;
pub use anabranch_plugin::{Faults, Module};

/// Makes the controllers of a law that is part of the calling program.
pub trait Maker: fmt::Debug + Send + Sync {
    /// What reports call the law.
    fn name(&self) -> &str;

    /// What it does, in a line; empty if nobody says.
    fn summary(&self) -> &str;

    /// Identifies its content: laws with equal digests behave alike. A sweep keeps and finds its runs by it.
    fn digest(&self) -> &str;

    /// Settings that build a controller for each path of a flow in one run. The first error goes to `faults`, with `flow` before the message; it
    /// ends the run.
    fn settings(&self, flow: &str, faults: &Faults) -> Settings;

    /// Calls `run`, which is a whole run with a flow under this law, once.
    fn around(&self, run: &mut dyn FnMut()) {
        run();
    }
}

/// A law that a document may name.
#[derive(Clone, Debug)]
pub enum Own {
    /// A module with settings.
    Module(Arc<Module>),
    /// A law of the calling program. It has no settings.
    Made(Arc<dyn Maker>),
}

impl Own {
    /// Identifies its content.
    pub fn digest(&self) -> &str {
        match self {
            Self::Module(module) => module.digest(),
            Self::Made(maker) => maker.digest(),
        }
    }
}

/// Laws by the names that a document has for them.
pub type Given = BTreeMap<String, Own>;

/// The law of a flow, with its settings.
#[derive(Clone, Debug)]
pub(crate) enum OwnLaw {
    Module(Law),
    Made(Arc<dyn Maker>),
}

impl OwnLaw {
    /// Settings that build the controllers of one flow in one run; see [`Maker::settings`].
    pub(crate) fn settings(&self, flow: &str, faults: &Faults) -> Settings {
        match self {
            Self::Module(law) => law.settings(flow, faults),
            Self::Made(maker) => maker.settings(flow, faults),
        }
    }
}
