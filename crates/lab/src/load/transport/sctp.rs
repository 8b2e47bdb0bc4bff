//! The keys of ns-2's SCTP.

use anabranch_ns2::sctp::{Alternate, CmtOptions, Data, Dormant, EndpointConfig, RetransmissionPolicy, Variant};
use anabranch_sim::{Drawn, Messages, Spacing, Workload};
use anabranch_units::Bytes;

use super::settings::Settings;
use super::workload::offered;
use super::{Drive, Pair};
use crate::diagnostic::Fault;
use crate::document::Path;
use crate::load::Checked;
use crate::load::keys::{SctpKeys, SctpPathKeys};
use crate::scenario::transport::Transport;

/// Takes the options of a variant, and says which it is.
type Take = fn(&mut Settings) -> Checked<Variant>;

/// What drives an association of the variant that `take` knows.
pub(super) fn drive<'a>(keys: &'a SctpKeys, packet: Bytes, path: &Path, take: Take) -> Checked<Drive<'a>> {
    let options_path = path.key("options");
    let mut options =
        Settings::new(keys.options.clone().unwrap_or_default(), options_path.clone(), "an option of this agent");
    let variant = take(&mut options)?;
    let mut config = EndpointConfig::new(variant);
    let mtu = u32::try_from(packet.count()).ok();
    config.mtu = mtu.filter(|mtu| (MTU_MIN..=u32::from(u16::MAX)).contains(mtu)).ok_or_else(|| {
        let fault = Fault::new(format!("a packet of {packet} is impossible"));
        (path.key("packet"), fault.remedy(format!("use {MTU_MIN}B to {}B; headers take 48", u16::MAX)))
    })?;
    config.rto_min = keys.rto_min.map_or(config.rto_min, |text| text.0);
    config.chunk = options.take("chunk", config.room() / 4 * 4)?;
    config.streams = small(&mut options, "streams", config.streams.into(), 1..=u32::from(u16::MAX))? as u16;
    config.receive_buffer = options.take("receive_buffer", config.receive_buffer)?;
    config.ssthresh = options.take("ssthresh", config.ssthresh)?;
    config.window_floor = small(&mut options, "window_floor", config.window_floor, 1..=1000)?;
    let delay = options.take("sack_delay", config.sack_delay.unwrap_or_default())?;
    config.sack_delay = options.take("delayed_sack", true)?.then_some(delay);
    config.limits_bursts = options.take("burst_limit", config.limits_bursts)?;
    config.missing_reports = small(&mut options, "missing_reports", config.missing_reports, 1..=1000)?;
    config.unordered = options.take("unordered", config.unordered)?;
    if variant == Variant::Plain {
        config.alternate = options.choose(
            "alternate",
            config.alternate,
            &[("never", Alternate::Never), ("always", Alternate::Always), ("timeouts", Alternate::Timeouts)],
        )?;
    }
    config.dormant = options.choose(
        "dormant",
        config.dormant,
        &[("hop", Dormant::Hop), ("primary", Dormant::Primary), ("last", Dormant::Last)],
    )?;
    config.path_errors_max = options.take("path_errors_max", config.path_errors_max)?;
    config.association_errors_max = options.take("association_errors_max", config.association_errors_max)?;
    config.heartbeat_s =
        Some(options.take("heartbeat", config.heartbeat_s.unwrap_or(0))?).filter(|&seconds| seconds > 0);
    let paths = keys.paths.as_ref().map_or(1, Vec::len);
    if !(1..=PATHS_MAX).contains(&paths) {
        let fault = Fault::new(format!("an association cannot have {paths} paths"));
        return Err((path.key("paths"), fault.remedy(format!("name 1 to {PATHS_MAX}"))));
    }
    let primary = small(&mut options, "primary", 1, 1..=paths as u32)? as usize - 1;
    options.finish("")?;
    if !config.is_possible() {
        let fault = Fault::new(format!("a chunk of {} does not fit a packet of {}", config.chunk, config.mtu));
        let most = config.room() / 4 * 4;
        return Err((options_path.key("chunk"), fault.remedy(format!("use {} to {most}", Data::HEADER + 1))));
    }
    let workload = in_time(offered(keys.workload.as_ref(), 1, &path.key("workload"))?, config.streams, path)?;
    let pair = |it: &'a SctpPathKeys| {
        let loss_rate = it.loss_rate.map_or(0.0, |loss_rate| loss_rate.0 as f32);
        Pair { first: &it.first, last: &it.last, loss_rate, weight: 1 }
    };
    let paths = keys.paths.iter().flatten().map(pair).collect();
    Ok(Drive { paths, ..Drive::new(Transport::Sctp { config: Box::new(config), primary, workload }) })
}

pub(super) fn cmt(options: &mut Settings) -> Checked<Variant> {
    let default = CmtOptions::default();
    Ok(Variant::Cmt(CmtOptions {
        split_fast_retransmit: options.take("split_fast_retransmit", default.split_fast_retransmit)?,
        window_update: options.take("window_update", default.window_update)?,
        delayed_ack: options.take("delayed_ack", default.delayed_ack)?,
        policy: options.choose(
            "policy",
            default.policy,
            &[
                ("asap", RetransmissionPolicy::Asap),
                ("same", RetransmissionPolicy::Same),
                ("ssthresh", RetransmissionPolicy::Ssthresh),
                ("loss_rate", RetransmissionPolicy::LossRate),
                ("window", RetransmissionPolicy::Window),
            ],
        )?,
    }))
}

/// ns-2 sends what is offered to an idle association never: a workload must be there from the start.
fn in_time(workload: Workload, streams: u16, path: &Path) -> Checked<Workload> {
    match workload {
        Workload::Messages(Messages { spacing: Spacing::Every(_) | Spacing::Exponential(_), .. })
        | Workload::Drawn(Drawn { spacing: Spacing::Every(_) | Spacing::Exponential(_), .. }) => {
            let fault = Fault::new("ns-2's SCTP does not send what is offered while it is idle");
            Err((path.key("workload"), fault.remedy("offer all messages at once: remove `every` and `every_mean`")))
        }
        Workload::Messages(messages) => Ok(Workload::Messages(Messages { streams: streams.into(), ..messages })),
        other => Ok(other),
    }
}

fn small(
    options: &mut Settings,
    key: &'static str,
    default: u32,
    range: std::ops::RangeInclusive<u32>,
) -> Checked<u32> {
    let number = options.take(key, default)?;
    if range.contains(&number) {
        return Ok(number);
    }
    let fault = Fault::new(format!("`{key}` cannot be `{number}`"));
    Err((options.path.key(key), fault.remedy(format!("use {} to {}", range.start(), range.end()))))
}

/// A SACK with a block, and a chunk of four bytes, fit.
const MTU_MIN: u32 = 64;
/// More interfaces than a host has.
const PATHS_MAX: usize = 16;
