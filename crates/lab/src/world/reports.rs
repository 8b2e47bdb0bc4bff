//! The reports of flows and links after the run.

use anabranch_proto::PathState;
use anabranch_sim::{Direction, LinkId, SenderPath};
use anabranch_units::{SimSpan, SimTime};

use super::{FlowHosts, Simulation};
use crate::own::OwnLaw;
use crate::report::combined_hash;
use crate::report::{FlowReport, LinkReport, PathReport, Report};
use crate::scenario::Flow;

impl Simulation<'_> {
    /// The measured values; `wall_seconds` is set elsewhere.
    pub(crate) fn report(&self) -> Report {
        let flows: Vec<_> =
            self.scenario.flows.iter().zip(&self.flows).map(|(flow, ends)| self.flow(flow, ends)).collect();
        let links: Vec<_> =
            self.scenario.links.iter().zip(&self.links).map(|(link, &id)| self.link(&link.id, id)).collect();
        let notes = self.notes(&flows, &links);
        Report {
            seed: self.scenario.seed,
            hash: self.hash(),
            wall_seconds: 0.0,
            simulated_seconds: self.scenario.duration.as_secs_f64(),
            events: self.world.events(),
            jain_index: jain_index(&flows),
            flows,
            links,
            classes: self.classes(),
            measures: vec![],
            notes,
        }
    }

    /// The hash of what happened, and of the controllers that came from files.
    pub(crate) fn hash(&self) -> String {
        let world = self.world.hash().to_string();
        let laws = self.scenario.flows.iter().filter_map(|flow| flow.own.as_ref());
        let modules: Vec<&str> = laws
            .filter_map(|law| match law {
                OwnLaw::Module(law) => Some(law.module().digest()),
                OwnLaw::Made(_) => None,
            })
            .collect();
        match modules.is_empty() {
            true => world,
            false => combined_hash([world.as_str()].into_iter().chain(modules)),
        }
    }

    fn flow(&self, flow: &Flow, ends: &FlowHosts) -> FlowReport {
        let until = flow.stop.unwrap_or(SimTime::NEVER).min(self.end());
        let active = until.since(ends.start);
        let dropped = |&link: &LinkId| {
            let counts = self.world.link_leg(link, ends.flow, Direction::Forward);
            counts.errors + counts.drops
        };
        let in_row = |&link| self.world.link_leg(link, ends.flow, Direction::Forward).losses_in_row_max;
        let (source, sink) = (self.world.account(ends.source), self.world.account(ends.sink));
        let (sent, received) = (source.report().sent, sink.report().received);
        let percentile = |share| sent.rtts.and_then(|rtts| rtts.quantile(share)).map(SimSpan::as_secs_f64);
        // With one path, the path is the flow itself.
        let paths = sent.paths.iter().filter(|_| flow.paths.len() > 1);
        FlowReport {
            id: flow.id.clone(),
            transport: flow.transport_name.clone(),
            cc: flow.law_name.clone(),
            goodput_bps: bits_per_second(received.payload, active),
            throughput_bps: bits_per_second(received.wire, active),
            sent_packets: sent.packets,
            max_seq: sent.seq_max,
            acked_seq: sent.acked_seq,
            delivered_packets: received.packets,
            retransmitted_packets: sent.retransmitted,
            held_packets_max: received.held_max,
            buffered_bytes_max: received.buffered_max,
            dropped_packets: self.links.iter().map(dropped).sum::<u64>()
                + self.world.flow_strays(ends.flow, Direction::Forward),
            dropped_in_row_max: self.links.iter().map(in_row).max().unwrap_or(0),
            timeouts: sent.timeouts,
            timeouts_in_row_max: sent.timeouts_in_row_max,
            random_losses: sent.random_losses,
            reordered_packets: received.reordered,
            rtt_mean_s: mean(sent.rtt_sum, sent.rtt_samples),
            rtt_p50_s: percentile(0.5),
            rtt_p95_s: percentile(0.95),
            rtt_p99_s: percentile(0.99),
            one_way_delay_mean_s: source.delay_mean_s(sink),
            window_final: sent.window,
            reset_count: sent.reroutes,
            paths: paths.map(|path| path_report(path, active)).collect(),
        }
    }

    fn link(&self, id: &str, link: LinkId) -> LinkReport {
        let (report, lengths) = (self.world.link(link), self.world.queue_lengths(link));
        LinkReport {
            id: id.to_owned(),
            forwarded_packets: report.delivered,
            dropped_packets: report.counts.errors + report.counts.drops,
            error_packets: report.counts.errors,
            too_long_packets: report.counts.too_long,
            marked_packets: report.counts.marks,
            utilisation: lengths.busy_share(),
            queue_packets_mean: lengths.mean(),
            queue_packets_p50: lengths.quantile(0.5) as u64,
            queue_packets_p95: lengths.quantile(0.95) as u64,
            queue_packets_p99: lengths.quantile(0.99) as u64,
            queue_packets_max: lengths.max() as u64,
        }
    }
}

fn path_report(path: &SenderPath, active: SimSpan) -> PathReport {
    PathReport {
        path: path.index + 1,
        state: path.state.map(|state| {
            let name = match state {
                PathState::Validating => "validating",
                PathState::Live => "live",
                PathState::Suspect => "suspect",
            };
            name.to_owned()
        }),
        sent_packets: path.packets,
        retransmitted_packets: path.retransmitted,
        delivered_bps: path.delivered.map(|bytes| bits_per_second(bytes, active)),
        rtt_mean_s: mean(path.rtt_sum, path.rtt_samples),
        window_final: path.window,
    }
}

/// Jain's fairness index of the goodputs; `None` without goodput.
fn jain_index(flows: &[FlowReport]) -> Option<f64> {
    let sum = |of: fn(f64) -> f64| flows.iter().map(|flow| of(flow.goodput_bps)).sum::<f64>();
    let (sum, squares) = (sum(|x| x), sum(|x| x * x));
    (squares > 0.0).then(|| sum * sum / (flows.len() as f64 * squares))
}

fn bits_per_second(bytes: u64, span: SimSpan) -> f64 {
    match span.is_zero() {
        true => 0.0,
        false => bytes as f64 * 8.0 / span.as_secs_f64(),
    }
}

fn mean(sum: SimSpan, count: u64) -> Option<f64> {
    (count > 0).then(|| sum.as_secs_f64() / count as f64)
}
