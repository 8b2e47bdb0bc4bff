//! The keys of ns-2's SCTP.

use anabranch_ns2::sctp::{Alternate, CmtOptions, Data, EndpointConfig, RetransmissionPolicy, Variant};
use anabranch_sim::{Drawn, Messages, Workload};
use anabranch_units::Bytes;

use super::workload::offered;
use super::{Drive, Pair};
use crate::diagnostic::Fault;
use crate::document::Path;
use crate::load::Checked;
use crate::load::keys::{
    AlternateKeys, CmtOptionKeys, EndpointOptions, PolicyKeys, SctpKeys, SctpOptionKeys, SctpPathKeys,
};
use crate::scenario::transport::Transport;

/// The transport of an association of plain SCTP.
pub(super) fn plain<'a>(keys: &'a SctpKeys<SctpOptionKeys>, packet: Bytes, path: &Path) -> Checked<Drive<'a>> {
    let mut config = EndpointConfig::new(Variant::Plain);
    let alternate = keys.options.as_ref().and_then(|options| options.alternate);
    config.alternate = alternate.map_or(config.alternate, |alternate| match alternate {
        AlternateKeys::Never => Alternate::Never,
        AlternateKeys::Always => Alternate::Always,
        AlternateKeys::Timeouts => Alternate::Timeouts,
    });
    drive(keys, config, packet, path)
}

/// The transport of an association of CMT.
pub(super) fn cmt<'a>(keys: &'a SctpKeys<CmtOptionKeys>, packet: Bytes, path: &Path) -> Checked<Drive<'a>> {
    let (default, options) = (CmtOptions::default(), keys.options.clone().unwrap_or_default());
    let variant = CmtOptions {
        split_fast_retransmit: options.split_fast_retransmit.unwrap_or(default.split_fast_retransmit),
        window_update: options.window_update.unwrap_or(default.window_update),
        delayed_ack: options.delayed_ack.unwrap_or(default.delayed_ack),
        policy: options.policy.map_or(default.policy, |policy| match policy {
            PolicyKeys::Asap => RetransmissionPolicy::Asap,
            PolicyKeys::Same => RetransmissionPolicy::Same,
            PolicyKeys::Ssthresh => RetransmissionPolicy::Ssthresh,
            PolicyKeys::LossRate => RetransmissionPolicy::LossRate,
            PolicyKeys::Window => RetransmissionPolicy::Window,
        }),
    };
    drive(keys, EndpointConfig::new(Variant::Cmt(variant)), packet, path)
}

/// The transport of an association of `config`, which the other keys complete.
fn drive<'a, O: EndpointOptions>(
    keys: &'a SctpKeys<O>,
    mut config: EndpointConfig,
    packet: Bytes,
    path: &Path,
) -> Checked<Drive<'a>> {
    let absent = O::default();
    let options = keys.options.as_ref().unwrap_or(&absent);
    let options_path = path.key("options");
    let mtu = u32::try_from(packet.count()).ok();
    config.mtu = mtu.filter(|mtu| (MTU_MIN..=u32::from(u16::MAX)).contains(mtu)).ok_or_else(|| {
        let fault = Fault::new(format!("a packet of {packet} is impossible"));
        (path.key("packet"), fault.remedy(format!("use {MTU_MIN}B to {}B; headers take 48", u16::MAX)))
    })?;
    config.rto_min = keys.rto_min.map_or(config.rto_min, |text| text.0);
    config.chunk = config.room() / 4 * 4;
    options.apply(&mut config);
    if options.has_idle_delay() {
        let fault = Fault::new("no SACK of this endpoint is delayed");
        return Err((options_path.key("sack_delay"), fault.remedy("remove it, or remove `delayed_sack = false`")));
    }
    let paths = keys.paths.as_ref().map_or(1, Vec::len);
    if !(1..=PATHS_MAX).contains(&paths) {
        let fault = Fault::new(format!("an association cannot have {paths} paths"));
        return Err((path.key("paths"), fault.remedy(format!("name 1 to {PATHS_MAX}"))));
    }
    if !(1..=paths).contains(&(options.primary() as usize)) {
        let fault = Fault::new(format!("`primary` cannot be `{}`", options.primary()));
        return Err((options_path.key("primary"), fault.remedy(format!("use 1 to {paths}"))));
    }
    let primary = options.primary() as usize - 1;
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

/// Checks a workload. ns-2 never sends data that is offered to an idle association, so all data must be offered at the start.
fn in_time(workload: Workload, streams: u16, path: &Path) -> Checked<Workload> {
    match workload {
        Workload::Messages(Messages { spacing, .. }) | Workload::Drawn(Drawn { spacing, .. })
            if spacing.is_series() =>
        {
            let fault = Fault::new("ns-2's SCTP does not send what is offered while it is idle");
            Err((path.key("workload"), fault.remedy("offer all messages at once: remove `every` and `every_mean`")))
        }
        Workload::Messages(messages) => Ok(Workload::Messages(Messages { streams: streams.into(), ..messages })),
        other => Ok(other),
    }
}

/// The least MTU: a SACK with a block, or a chunk of four bytes, fits.
const MTU_MIN: u32 = 64;
/// The limit of paths: more than the interfaces of any host.
const PATHS_MAX: usize = 16;
