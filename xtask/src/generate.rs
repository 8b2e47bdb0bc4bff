//! `cargo xtask generate`: writes what is made from the code, documents, drawings and the compiled laws, or checks that it is up to date.

use std::fs;

use anabranch_lab::reference;

use crate::{field, module, object, run, screenshot, site};

pub(crate) fn run(check: bool) -> Result<(), String> {
    let mut stale: Vec<String> = vec![];
    for (name, text) in reference::documents() {
        let path = run::root().join("docs/reference").join(name);
        if check {
            if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
                stale.push(name.to_owned());
            }
        } else {
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    if object::run(check)? {
        stale.push("crates/bpf/object".to_owned());
    }
    if check && !module::check() {
        return Err("crates/web/object is not what its record says; run `cargo xtask playground`".to_owned());
    }
    if check && !screenshot::check()? {
        return Err(format!("{} is of another page; run `cargo xtask screenshot`", screenshot::PICTURE));
    }
    if !field::table(check)? {
        stale.push(field::DOCUMENT.to_owned());
    }
    stale.extend(site::drawings(check)?);
    if stale.is_empty() {
        Ok(())
    } else {
        Err(format!("out of date: {}; run `cargo xtask generate`", stale.join(", ")))
    }
}
