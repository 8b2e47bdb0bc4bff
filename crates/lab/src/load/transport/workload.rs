//! The workload of an application.

use anabranch_sim::{Dialogue, Drawn, Messages, Sizes, Spacing, Workload};
use anabranch_units::{Bytes, SimSpan};

use crate::diagnostic::Fault;
use crate::document::Path;
use crate::load::Checked;
use crate::load::keys::{SizesKeys, WorkloadKeys};
use crate::load::values::{Count, Text};

/// The workload of a flow with `streams` streams, for other transports than ours: these have no requests.
pub(super) fn offered(keys: Option<&WorkloadKeys>, streams: u32, path: &Path) -> Checked<Workload> {
    match workload(keys, streams, path)? {
        Workload::Dialogue(_) => {
            let fault = Fault::new("only flows of `anabranch` answer requests");
            Err((path.clone(), fault.remedy("use transport = \"anabranch\", or another workload")))
        }
        workload => Ok(workload),
    }
}

/// The workload of a flow with `streams` streams.
pub(super) fn workload(keys: Option<&WorkloadKeys>, streams: u32, path: &Path) -> Checked<Workload> {
    match keys {
        None | Some(WorkloadKeys::Bulk) => Ok(Workload::Bulk),
        Some(WorkloadKeys::Fixed { bytes }) => Ok(Workload::Fixed { bytes: amount(bytes.0, path)? }),
        Some(&WorkloadKeys::Messages { bytes, count, every, every_mean }) => {
            let spacing = moving(count, every, every_mean, path)?;
            let count = count.map(|count| u64::from(count.0));
            Ok(Workload::Messages(Messages { bytes: amount(bytes.0, path)?, count, streams, spacing }))
        }
        Some(&WorkloadKeys::Drawn { sizes, count, every, every_mean }) => {
            let spacing = moving(count.or(Some(Count(1))), every, every_mean, path)?;
            let count = few(count.map_or(1, |count| count.0), path)?;
            Ok(Workload::Drawn(Drawn { sizes: drawn(sizes, path)?, count, spacing }))
        }
        Some(&WorkloadKeys::Requests { sizes, count, request, think_mean }) => {
            let request = request.map_or(REQUEST, |request| request.0.count());
            if !(1..=REQUEST_MAX).contains(&request) {
                let fault = Fault::new("a request is from 1 to 10000 bytes long");
                return Err((path.key("request"), fault.remedy("use request = \"200B\"")));
            }
            let think = think_mean.map_or(SimSpan::ZERO, |mean| mean.0);
            let (sizes, count) = (drawn(sizes, path)?, few(count.0, path)?);
            Ok(Workload::Dialogue(Dialogue { sizes, count, request: request as u32, think }))
        }
    }
}

/// The default size of a request: a GET of HTTP.
const REQUEST: u64 = 200;

/// The limit of a request: it fits into any send buffer.
const REQUEST_MAX: u64 = 10_000;

/// The limit of messages of random sizes, which are drawn before the run.
const DRAWN_MAX: u32 = 100_000;

fn few(count: u32, path: &Path) -> Checked<u32> {
    match count {
        1..=DRAWN_MAX => Ok(count),
        _ => {
            let fault = Fault::new(format!("a flow with more than {DRAWN_MAX} drawn messages"));
            Err((path.key("count"), fault.remedy("use several flows")))
        }
    }
}

fn amount(bytes: Bytes, path: &Path) -> Checked<u64> {
    match bytes.count() {
        0 => Err((path.key("bytes"), Fault::new("there is nothing to send in 0B").remedy("use 1B or more"))),
        bytes => Ok(bytes),
    }
}

fn drawn(keys: SizesKeys, path: &Path) -> Checked<Sizes> {
    let sizes = match keys {
        SizesKeys::Constant { bytes } => Sizes::Constant(bytes.0.count()),
        SizesKeys::Pareto { shape, least, most } => {
            Sizes::Pareto { shape, least: least.0.count(), most: most.0.count() }
        }
    };
    if sizes.is_valid() {
        return Ok(sizes);
    }
    let fault = Fault::new("there are no such sizes");
    Err((
        path.key("sizes"),
        fault.remedy("use 1B or more; of a Pareto distribution `most` above `least`, `shape` above 0"),
    ))
}

/// Checks that a series of messages has a time in between, or ends.
fn moving(
    count: Option<Count>,
    every: Option<Text<SimSpan>>,
    every_mean: Option<Text<SimSpan>>,
    path: &Path,
) -> Checked<Spacing> {
    let spacing = spacing(every, every_mean, path)?;
    let is_endless_at_once = match spacing {
        Spacing::Together => count.is_none(),
        Spacing::Every(span) | Spacing::Exponential(span) => span.is_zero(),
    };
    if is_endless_at_once {
        let fault = Fault::new("nothing says when these messages end or come");
        return Err((path.clone(), fault.remedy("add count = 100, or every = \"20ms\"")));
    }
    Ok(spacing)
}

/// The spacing by the keys `every` and `every_mean`.
pub(in crate::load) fn spacing(
    every: Option<Text<SimSpan>>,
    every_mean: Option<Text<SimSpan>>,
    path: &Path,
) -> Checked<Spacing> {
    match (every.map(|every| every.0), every_mean.map(|mean| mean.0)) {
        (None, None) => Ok(Spacing::Together),
        (Some(every), None) => Ok(Spacing::Every(every)),
        (None, Some(mean)) => Ok(Spacing::Exponential(mean)),
        (Some(_), Some(_)) => {
            let fault = Fault::new("`every` and `every_mean` say two things");
            Err((path.key("every_mean"), fault.remedy("keep one")))
        }
    }
}
