//! Remarks on a run that its numbers alone do not show.

use anabranch_sim::{Counts, Direction, DropReason, DropTailParameters, ErrorSpec, LinkSpec, WindowLimit, Workload};
use anabranch_units::SimTime;

use super::{FlowHosts, Simulation};
use crate::report::{FlowReport, LinkReport};
use crate::scenario::Flow;
use crate::scenario::transport::Transport;

impl Simulation<'_> {
    /// Remarks on flows without traffic, with the reason, and on windows that limit a flow.
    pub(super) fn notes(&self, flows: &[FlowReport], links: &[LinkReport]) -> Vec<String> {
        let scenario = self.scenario.flows.iter().zip(&self.flows).zip(flows);
        scenario
            .filter_map(|((flow, ends), report)| match report.goodput_bps > 0.0 {
                false => Some(format!("flow `{}` delivered nothing: {}", flow.id, self.silence(flow, ends, report))),
                true => self.window_limit(flow, ends, links),
            })
            .collect()
    }

    /// Why nothing arrived.
    fn silence(&self, flow: &Flow, ends: &FlowHosts, report: &FlowReport) -> String {
        let start = ends.start.since(SimTime::ZERO);
        if ends.start >= self.end() {
            return format!("it starts at {start}, and the run ends at {}", self.scenario.duration);
        }
        match flow.transport {
            Transport::OnOff(_) if report.sent_packets == 0 => {
                return "it sent nothing: its first silence (`off`) is longer than the run".to_owned();
            }
            Transport::Cbr(_) if report.sent_packets == 0 => {
                return "it sent nothing: at its `rate` the first packet would leave later".to_owned();
            }
            _ => {}
        }
        for (direction, what) in [(Direction::Forward, "its packets"), (Direction::Backward, "their acknowledgements")]
        {
            let of_link = |(index, link)| {
                let counts: Counts = self.world.link_leg(self.links[index], ends.flow, direction);
                (counts.errors + counts.drops, counts, link)
            };
            let worst = self.scenario.links.iter().enumerate().map(of_link).max_by_key(|&(lost, ..)| lost);
            let strays = self.world.flow_strays(ends.flow, direction);
            match worst {
                _ if strays > 0 => {
                    return format!(
                        "{strays} of {what} were lost between links: the routes lead in a loop, or to a node that has no way \
                         on; look at [[route]]"
                    );
                }
                Some((lost @ 1.., counts, link)) => {
                    let reason = match counts {
                        Counts { errors: 1.., .. } => DropReason::Error,
                        Counts { too_long: 1.., .. } => DropReason::TooLong,
                        _ => DropReason::Queue,
                    };
                    return format!(
                        "link `{}` lost {lost} of {what}: {}",
                        link.id,
                        cause(&link.spec, reason, flow.packet)
                    );
                }
                _ => {}
            }
        }
        format!("the run ends at {} before its first data arrives", self.scenario.duration)
    }

    /// The remark on a flow that ns-2's default window limits, and not the network.
    fn window_limit(&self, flow: &Flow, ends: &FlowHosts, links: &[LinkReport]) -> Option<String> {
        let Transport::Ns2 { workload: Workload::Bulk, .. } = flow.transport else { return None };
        let limit = self.world.account(ends.source).report().sent.window_limit.filter(|_| flow.is_window_default)?;
        let WindowLimit { window, limited_acks, acks } = limit;
        let share = limited_acks as f64 / acks.max(1) as f64;
        let active = flow.stop.unwrap_or(SimTime::NEVER).min(self.end()).since(ends.start).as_secs_f64();
        let on_way = |&(index, _): &(usize, &LinkReport)| {
            self.world.link_leg(self.links[index], ends.flow, Direction::Forward).offered > 0
        };
        // A link that is always busy limits the flow as well.
        let run = self.scenario.duration.as_secs_f64();
        let busiest = links.iter().enumerate().filter(on_way).map(|(_, link)| link.utilisation).fold(0.0, f64::max)
            * run
            / active;
        (share >= LIMITED_SHARE && busiest < BUSY_SHARE).then(|| {
            format!(
                "flow `{}` is limited by its window of {window} packets, ns-2's default, at {:.0} % of its acknowledgements, and not \
                 by the network, whose busiest link on its way sends {:.0} % of the time: set `window`",
                flow.id,
                100.0 * share,
                100.0 * busiest
            )
        })
    }
}

/// The share of ACKs from which on the window counts as the limit of a flow.
const LIMITED_SHARE: f64 = 0.5;
/// A link that sends for this share of the time is busy: a larger window would only make a longer queue.
const BUSY_SHARE: f64 = 0.95;

/// Why a link loses everything of a flow.
fn cause(link: &LinkSpec, reason: DropReason, packet: u64) -> String {
    let polices = link.errors.iter().find_map(|error| match error {
        ErrorSpec::Policer { burst, .. } if burst.count() < packet => Some(burst),
        _ => None,
    });
    let is_certain = |error: &ErrorSpec| matches!(error, ErrorSpec::PerPacket(p) | ErrorSpec::PerByte(p) if *p >= 1.0);
    match (reason, polices, link.queue.parameters_of()) {
        (DropReason::Error, Some(burst), _) => {
            format!(
                "its policer lets nothing pass that is larger than its `burst` of {burst}, and a packet has {packet} B"
            )
        }
        (DropReason::Error, None, _) if link.errors.iter().any(is_certain) => "its errors take every packet".to_owned(),
        (DropReason::Error, None, _) => "its errors and outages took them".to_owned(),
        (DropReason::TooLong, ..) => format!("its `mtu` is less than {packet} B, which a packet has"),
        (_, _, Some(&DropTailParameters { bytes: Some(bytes), .. })) if bytes < packet => {
            format!("its queue holds {bytes} B, and a packet has {packet} B")
        }
        _ => "its queue was full".to_owned(),
    }
}

#[cfg(test)]
mod tests;
