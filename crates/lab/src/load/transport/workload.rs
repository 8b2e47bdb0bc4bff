//! What an application wants to have sent.

use anabranch_sim::{Messages, Spacing, Workload};
use anabranch_units::Bytes;

use crate::diagnostic::Fault;
use crate::document::Path;
use crate::load::Checked;
use crate::load::keys::WorkloadKeys;

/// What the application of a flow with so many streams wants to have sent.
pub(super) fn workload(keys: Option<&WorkloadKeys>, streams: u32, path: &Path) -> Checked<Workload> {
    let amount = |bytes: Bytes| match bytes.count() {
        0 => Err((path.key("bytes"), Fault::new("there is nothing to send in 0B").remedy("use 1B or more"))),
        bytes => Ok(bytes),
    };
    let (bytes, count, every, every_mean) = match keys {
        None | Some(WorkloadKeys::Bulk) => return Ok(Workload::Bulk),
        Some(WorkloadKeys::Fixed { bytes }) => return Ok(Workload::Fixed { bytes: amount(bytes.0)? }),
        Some(&WorkloadKeys::Messages { bytes, count, every, every_mean }) => (bytes, count, every, every_mean),
    };
    let spacing = match (every.map(|every| every.0), every_mean.map(|mean| mean.0)) {
        (None, None) => Spacing::Together,
        (Some(every), None) => Spacing::Every(every),
        (None, Some(mean)) => Spacing::Exponential(mean),
        (Some(_), Some(_)) => {
            let fault = Fault::new("`every` and `every_mean` say two things");
            return Err((path.key("every_mean"), fault.remedy("keep one")));
        }
    };
    let is_endless_at_once = match spacing {
        Spacing::Together => count.is_none(),
        Spacing::Every(span) | Spacing::Exponential(span) => span.is_zero(),
    };
    if is_endless_at_once {
        let fault = Fault::new("nothing says when these messages end or come");
        return Err((path.clone(), fault.remedy("add count = 100, or every = \"20ms\"")));
    }
    let count = count.map(|count| u64::from(count.0));
    Ok(Workload::Messages(Messages { bytes: amount(bytes.0)?, count, streams, spacing }))
}
