//! What is reported of a flow and of a link, once the world has run.

use anabranch_ns2::config::Agent;
use anabranch_ns2::{Counters, Received};
use anabranch_proto::PathState;
use anabranch_sim::traffic::{self, Cbr, OnOff};
use anabranch_sim::{
    Direction, EngineSink, EngineSource, LinkId, MultihomedSink, MultihomedSource, Ns2Sctp, Ns2Sink, Ns2Source, Spans,
    sum_of_paths,
};
use anabranch_units::{SimSpan, SimTime};

use super::{Ends, Simulation};
use crate::report::{FlowReport, LinkReport, PathReport};
use crate::scenario::Flow;
use crate::trace;

impl Simulation<'_> {
    pub(super) fn flow(&self, flow: &Flow, ends: &Ends) -> FlowReport {
        let until = flow.stop.unwrap_or(SimTime::NEVER).min(self.end());
        let active = until.since(ends.start);
        let dropped = |&link: &LinkId| {
            let counts = self.world.link_leg(link, ends.flow, Direction::Forward);
            counts.errors + counts.drops
        };
        let mut report = FlowReport {
            id: flow.id.clone(),
            transport: flow.transport_name.clone(),
            cc: flow.law_name.clone(),
            goodput_bps: 0.0,
            throughput_bps: 0.0,
            sent_packets: 0,
            max_seq: None,
            acked_seq: None,
            delivered_packets: 0,
            retransmitted_packets: 0,
            held_packets_max: None,
            buffered_bytes_max: None,
            dropped_packets: self.links.iter().map(dropped).sum::<u64>()
                + self.world.flow_strays(ends.flow, Direction::Forward),
            dropped_in_row_max: {
                let in_row = |&link| self.world.link_leg(link, ends.flow, Direction::Forward).losses_in_row_max;
                self.links.iter().map(in_row).max().unwrap_or(0)
            },
            timeouts: None,
            timeouts_in_row_max: None,
            random_losses: None,
            reordered_packets: None,
            rtt_mean_s: None,
            rtt_p50_s: None,
            rtt_p95_s: None,
            rtt_p99_s: None,
            one_way_delay_mean_s: None,
            window_final: None,
            reset_count: None,
            paths: vec![],
        };
        if let (Some(source), Some(sink)) =
            (self.world.host::<Ns2Source>(ends.source), self.world.host::<Ns2Sink>(ends.sink))
        {
            let (sender, received) = (source.sender(), sink.sink().received());
            count_packets(&mut report, &sender.counters(), &received, (1, flow.transport.payload()), active);
            report.max_seq = Some(sender.max_seq().into());
            report.acked_seq = Some(sender.acked_seq().into());
            report.held_packets_max = Some(sink.held_packets_max().into());
            report.window_final = Some(sender.gauges().window);
            note_percentiles(&mut report, source.rtts());
            report.reset_count = matches!(sender.config().agent, Agent::Fast(_)).then(|| sender.reroutes());
        }
        if let (Some(source), Some(sink)) =
            (self.world.host::<MultihomedSource>(ends.source), self.world.host::<MultihomedSink>(ends.sink))
        {
            let (sender, received) = (source.sender(), sink.sink().received());
            let paths = sender.config().paths as u64;
            count_packets(&mut report, &sender.counters(), &received, (paths, flow.transport.payload()), active);
            report.max_seq = Some(sender.max_seq().into());
            report.acked_seq = Some(sender.acked_seq().into());
            report.held_packets_max = Some(sink.sink().held_packets_max().into());
            let gauges = sum_of_paths((0..sender.config().paths).map(|path| sender.gauges(path)));
            report.window_final = gauges.map(|gauges| gauges.window);
            report.reset_count = gauges.map(|gauges| gauges.reroutes);
            note_percentiles(&mut report, source.rtts());
            for path in (0..sender.config().paths).filter(|_| flow.paths.len() > 1) {
                let counters = sender.path_counters(path);
                report.paths.push(PathReport {
                    path: path + 1,
                    state: None,
                    sent_packets: counters.sent_packets,
                    retransmitted_packets: counters.retransmitted_packets,
                    delivered_bps: None,
                    rtt_mean_s: mean(counters.rtt_sum, counters.rtt_samples),
                    window_final: sender.gauges(path).window,
                });
            }
        }
        if let (Some(source), Some(sink)) =
            (self.world.host::<Ns2Sctp>(ends.source), self.world.host::<Ns2Sctp>(ends.sink))
        {
            let (sender, received) = (source.endpoint(), sink.endpoint().received());
            let counters = sender.counters();
            report.goodput_bps = bits_per_second(received.unique_bytes, active);
            report.throughput_bps = bits_per_second(received.bytes, active);
            report.sent_packets = counters.sent_packets;
            report.max_seq = Some(sender.tsn().into());
            report.acked_seq = Some(sender.acked_tsn().into());
            report.delivered_packets = received.unique_chunks;
            report.retransmitted_packets = counters.retransmitted_chunks;
            report.held_packets_max = Some(received.held_chunks_max.into());
            report.timeouts = Some(counters.timeouts);
            report.timeouts_in_row_max = Some(counters.timeouts_in_row_max.into());
            report.reordered_packets = Some(received.reordered_chunks);
            report.one_way_delay_mean_s = mean(received.delay_sum, received.unique_chunks);
            report.window_final = Some(trace::sctp_gauges(sender).window);
        }
        if let (Some(source), Some(sink)) =
            (self.world.host::<EngineSource>(ends.source), self.world.host::<EngineSink>(ends.sink))
        {
            report.goodput_bps = bits_per_second(sink.read(), active);
            report.throughput_bps = bits_per_second(sink.wire(), active);
            report.delivered_packets = sink.connection().arrived();
            report.reordered_packets = Some(sink.connection().reordered());
            report.max_seq = Some(source.departed() as i64);
            report.acked_seq = Some(source.acknowledged() as i64);
            report.held_packets_max = Some(sink.held_max());
            report.one_way_delay_mean_s = source.delay_mean(sink).map(SimSpan::as_secs_f64);
            report.buffered_bytes_max = Some(sink.buffered_max());
            // Only FAST has a baseRTT to forget.
            let gauges = source.paths().map(|(_, path)| path.gauges).filter(|it| it.value("rtt_base_s").is_some());
            report.reset_count =
                gauges.map(|it| it.value("reroutes").unwrap_or(0.0) as u64).reduce(|sum, one| sum + one);
            let (mut rtt_sum, mut rtt_samples) = (SimSpan::ZERO, 0);
            for (number, path) in source.paths() {
                let (tally, rtt) = (path.tally, path.tally.rtt_sum.rescale());
                report.sent_packets += tally.sent;
                report.retransmitted_packets += tally.sent_again;
                report.timeouts = Some(report.timeouts.unwrap_or(0) + tally.timeouts);
                report.random_losses = Some(report.random_losses.unwrap_or(0) + tally.random);
                (rtt_sum, rtt_samples) = (rtt_sum + rtt, rtt_samples + tally.rtt_samples);
                report.window_final = Some(report.window_final.unwrap_or(0.0) + path.window);
                if flow.paths.len() > 1 {
                    report.paths.push(PathReport {
                        path: number + 1,
                        state: Some(match path.state {
                            PathState::Validating => "validating",
                            PathState::Live => "live",
                            PathState::Suspect => "suspect",
                        }),
                        sent_packets: tally.sent,
                        retransmitted_packets: tally.sent_again,
                        delivered_bps: Some(bits_per_second(tally.delivered, active)),
                        rtt_mean_s: mean(rtt, tally.rtt_samples),
                        window_final: path.window,
                    });
                }
            }
            report.rtt_mean_s = mean(rtt_sum, rtt_samples);
            note_percentiles(&mut report, source.rtts());
            report.paths.sort_by_key(|path| path.path);
        }
        if let Some(sink) = self.world.host::<traffic::Sink>(ends.sink) {
            let cbr = self.world.host::<Cbr>(ends.source).map(Cbr::sent);
            let on_off = self.world.host::<OnOff>(ends.source).map(OnOff::sent);
            report.goodput_bps = bits_per_second(sink.bytes, active);
            report.throughput_bps = report.goodput_bps;
            report.sent_packets = cbr.or(on_off).unwrap_or(0);
            report.delivered_packets = sink.packets;
            report.one_way_delay_mean_s = mean(sink.delay, sink.packets);
        }
        report
    }

    pub(super) fn link(&self, id: &str, link: LinkId) -> LinkReport {
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

/// What ns-2's one-way agents and their sinks count, on one path or several. Each path begins with a SYN, a packet without payload.
fn count_packets(
    report: &mut FlowReport,
    counters: &Counters,
    received: &Received,
    (syns, payload): (u64, u32),
    active: SimSpan,
) {
    let data_packets = received.unique_packets.saturating_sub(syns);
    report.goodput_bps = bits_per_second(data_packets * u64::from(payload), active);
    report.throughput_bps = bits_per_second(received.bytes, active);
    report.sent_packets = counters.sent_packets;
    report.delivered_packets = received.unique_packets;
    report.retransmitted_packets = counters.retransmitted_packets;
    report.timeouts = Some(counters.timeouts);
    report.random_losses = Some(counters.random_losses);
    report.reordered_packets = Some(received.reordered_packets);
    report.rtt_mean_s = mean(counters.rtt_sum, counters.rtt_samples);
    report.one_way_delay_mean_s = mean(received.delay_sum, received.unique_packets);
}

fn note_percentiles(report: &mut FlowReport, rtts: &Spans) {
    let percentile = |share| rtts.quantile(share).map(SimSpan::as_secs_f64);
    (report.rtt_p50_s, report.rtt_p95_s, report.rtt_p99_s) = (percentile(0.5), percentile(0.95), percentile(0.99));
}

/// Jain's index of how equal some goodputs are; `None` where there are none.
pub(super) fn jain_index(flows: &[FlowReport]) -> Option<f64> {
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
