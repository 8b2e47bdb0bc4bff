//! Makes the class of a flow from its keys.

use anabranch_sim::{Dialogue, Drawn, Messages, Spacing, Workload};
use anabranch_units::SimSpan;

use super::Checked;
use super::keys::ClassKeys;
use super::part::refused;
use super::values::Text;
use crate::diagnostic::Fault;
use crate::document::Path;
use crate::scenario::Flow;
use crate::scenario::class::{Class, EmptyPath};
use crate::scenario::transport::Transport;

/// The class with these keys, for a flow with this transport.
pub(super) fn class(keys: &ClassKeys, transport: &Transport, empty_path: EmptyPath, path: &Path) -> Checked<Class> {
    let Transport::Engine { config, workload } = transport else {
        let fault = Fault::new("only flows of `anabranch` know when their messages have arrived");
        return Err((path.clone(), fault.remedy("remove `class`, or use transport = \"anabranch\"")));
    };
    let is_one_after_the_other = match workload {
        Workload::Bulk | Workload::Messages(Messages { count: None, .. }) => {
            let fault = Fault::new("what never ends is never complete");
            let remedy = "give the flow a workload with an end, such as { kind = \"fixed\", bytes = \"1MB\" }";
            return Err((path.clone(), fault.remedy(remedy)));
        }
        Workload::Messages(messages) => messages.streams <= 1,
        Workload::Fixed { .. } | Workload::Drawn(_) | Workload::Dialogue(_) => config.streams <= 1,
    };
    if !is_one_after_the_other {
        let fault = Fault::new("messages of several streams arrive in no order");
        return Err((path.clone(), fault.remedy("use streams = 1, or remove `class`")));
    }
    let [every, every_mean] = [keys.every, keys.every_mean].map(|span| span.map(|Text(span)| span));
    let spacing = Spacing { every, every_mean };
    if every.or(every_mean).is_some_and(SimSpan::is_zero) {
        let fault = Fault::new("flows of a class that arrive after no time arrive together");
        return Err((path.clone(), fault.remedy("leave out `every` and `every_mean`, or make them longer")));
    }
    spacing.check(true).map_err(|flaw| refused(flaw, path))?;
    Ok(Class { name: keys.name.0.clone(), spacing, empty_path })
}

/// Checks that all flows of a class have the same keys for it, and that there are not too many messages.
pub(super) fn check(flows: &[Flow], path: &Path) -> Checked<()> {
    let mut left = MESSAGES_MAX;
    for (index, flow) in flows.iter().enumerate() {
        let Some(class) = &flow.class else { continue };
        let at = path.index(index).key("class");
        let mut others = flows[..index].iter().filter_map(|flow| flow.class.as_ref());
        if others.any(|other| other.name == class.name && other.spacing != class.spacing) {
            let fault = Fault::new(format!("flows of the class `{}` arrive in two ways", class.name));
            return Err((at, fault.remedy("say the same `every` or `every_mean` for all of them")));
        }
        let count = match flow.transport.workload() {
            Workload::Bulk => 0,
            Workload::Fixed { .. } => 1,
            Workload::Messages(messages) => messages.count.unwrap_or(0),
            Workload::Drawn(Drawn { count, .. }) | Workload::Dialogue(Dialogue { count, .. }) => count.into(),
        };
        left = left.checked_sub(count).ok_or_else(|| {
            let fault = Fault::new(format!("flows with classes have more than {MESSAGES_MAX} messages"));
            (at, fault.remedy("use fewer, or remove the `class` of some"))
        })?;
    }
    Ok(())
}

/// The limit of messages: each is remembered with its size, which takes some hundred million bytes.
const MESSAGES_MAX: u64 = 2_000_000;
