//! The workload of an application.

use anabranch_sim::Workload;

use crate::diagnostic::Fault;
use crate::document::Path;
use crate::load::Checked;
use crate::load::part::PartKeys;

/// The workload of a flow with `streams` streams, for other transports than ours: these have no requests.
pub(super) fn offered(keys: Option<&PartKeys<Workload>>, streams: u32, path: &Path) -> Checked<Workload> {
    match workload(keys, streams, path)? {
        Workload::Dialogue(_) => {
            let fault = Fault::new("only flows of `anabranch` answer requests");
            Err((path.clone(), fault.remedy("use transport = \"anabranch\", or another workload")))
        }
        workload => Ok(workload),
    }
}

/// The workload of a flow with `streams` streams.
pub(super) fn workload(keys: Option<&PartKeys<Workload>>, streams: u32, path: &Path) -> Checked<Workload> {
    let mut workload = keys.map_or(Ok(Workload::Bulk), |keys| keys.check(path))?;
    if let Workload::Messages(messages) = &mut workload {
        messages.streams = streams;
    }
    Ok(workload)
}
