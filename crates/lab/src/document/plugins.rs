//! `cc = { plugin = "mine.wasm" }`: the controller of a flow, from a file.
//!
//! Modules are read and checked together with the document, and when `--set` names one. So all runs of a document use the same modules, even if their files
//! change later. In the document the name of a module is the path of its opened file; a run depends only on the module's content.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anabranch_plugin::{FILE_MAX, Module};

use super::extends::{MODULE, resolve};
use super::{Node, Value};
use crate::diagnostic::{Fault, Place};
use crate::files;
use crate::own::{Given, Own};

/// The key of a law that names a module.
pub(crate) const PLUGIN: &str = "plugin";

/// The table with this key.
const LAW: &str = "cc";

/// The largest number of modules of a document.
const MODULES_MAX: usize = 100;

/// The laws that a document names.
#[derive(Clone, Debug)]
pub(crate) struct Plugins {
    /// The name of the document; names of modules are relative to it.
    own: Arc<str>,
    files: Files,
    /// Laws of the calling program. They are found before files.
    given: Given,
    /// The laws by their names: of a module, that of its file.
    laws: BTreeMap<String, Own>,
}

/// Whether the files that a document names may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// They are read from the disk.
    Disk,
    /// They are not read: the document is only a text.
    Nowhere,
}

impl Plugins {
    pub(super) fn new(own: &str, files: Files, given: Given) -> Self {
        Self { own: own.into(), files, given, laws: BTreeMap::new() }
    }

    /// A law by its name in the document.
    pub(crate) fn law(&self, name: &str) -> Option<&Own> {
        self.laws.get(name)
    }

    pub(super) fn laws(&self) -> &Given {
        &self.laws
    }

    /// Reads the modules that a value at `key` names, and replaces the written names by those of the files.
    pub(super) fn read(&mut self, key: &str, node: &mut Node) -> Result<(), Fault> {
        let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
        self.look(table.rsplit('.').next() == Some(LAW), name, node)
    }

    fn look(&mut self, is_in_law: bool, name: &str, node: &mut Node) -> Result<(), Fault> {
        let place = node.place.clone();
        match &mut node.value {
            Value::String(file) if is_in_law && name == PLUGIN => {
                *file = self.load(file, &place).map_err(|fault| fault.at(&place))?;
                Ok(())
            }
            Value::Array(elements) => elements.iter_mut().try_for_each(|node| self.look(false, name, node)),
            Value::Table(entries) => entries.iter_mut().try_for_each(|(key, node)| match key.name.contains('.') {
                // A key that an axis sets.
                true => self.read(&key.name, node),
                false => self.look(name == LAW, &key.name, node),
            }),
            _ => Ok(()),
        }
    }

    /// Finds the law that is called `name` at some place, or loads its module. Returns its name in the document.
    fn load(&mut self, name: &str, place: &Place) -> Result<String, Fault> {
        let beside = match place {
            Place::Base { file, .. } => file,
            _ => &self.own,
        };
        if let Some(own) = self.given.get(name) {
            self.laws.insert(name.to_owned(), own.clone());
            return Ok(name.to_owned());
        }
        if !name.ends_with(MODULE) {
            let fault = Fault::new(format!("`{name}` is not the name of a controller"));
            return Err(fault.remedy(format!(
                "name a WASM module, {MODULE}; `anabranch cc new NAME` writes a project that makes one"
            )));
        }
        let file = resolve(beside, name)?;
        if self.laws.contains_key(&file) {
            return Ok(file);
        }
        if let Some(own) = self.given.get(&file) {
            self.laws.insert(file.clone(), own.clone());
            return Ok(file);
        }
        if self.laws.len() == MODULES_MAX {
            let fault =
                Fault::new(format!("a scenario with more than {MODULES_MAX} controllers of its own is too large"));
            return Err(fault.remedy("name fewer; one can have settings"));
        }
        let read = match self.files {
            Files::Nowhere => Err("no other file is read here".to_owned()),
            Files::Disk => module_bytes(&file),
        };
        let bytes = read.map_err(|reason| {
            let fault = Fault::new(format!("the controller `{file}` cannot be read: {reason}"));
            fault.remedy("name a file relative to this one")
        })?;
        let module = Module::new(name, bytes).map_err(|error| Fault::new(format!("the controller {error}")))?;
        self.laws.insert(file.clone(), Own::Module(Arc::new(module)));
        Ok(file)
    }
}

/// The content of a module's file. A file that is too large is not read to its end.
pub(crate) fn module_bytes(name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = files::open(Path::new(name)).and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::Document;

    /// A document from an artifact or from a program's text does not read modules from the reader's disk.
    #[test]
    fn a_text_alone_reads_no_module() {
        let refused = |text: &str| Document::parse("net.toml", text).unwrap_err().to_string();
        let flow = "[[flow]]\nid = 'f'\ncc = { plugin = 'mine.wasm' }\n";
        assert!(refused(flow).starts_with("net.toml:3:17: the controller `mine.wasm` cannot be read: no other file"));
        let axis = "[[axis]]\nname = 'law'\n[axis.values]\none = { 'flow.f.cc.plugin' = 'one.wasm' }\n";
        assert!(refused(axis).contains("the controller `one.wasm` cannot be read"), "{}", refused(axis));
        let mut document = Document::parse("net.toml", "[[flow]]\nid = 'f'\n").unwrap();
        for key in ["flow.f.cc.plugin=mine.wasm", "flow.f.cc={ plugin = \"mine.wasm\" }"] {
            let refused = document.set(key).unwrap_err().to_string();
            assert!(
                refused.contains("--set") && refused.contains("the controller `mine.wasm` cannot be read"),
                "{refused}"
            );
        }
        // Outside of `cc` the key has no meaning.
        document.set("flow.f.plugin=mine.wasm").unwrap();
    }
}
