//! FAST multihoming. With one path it equals the FAST agent to the packet; with several paths, each path behaves like a network
//! of its own.

use anabranch_ns2::config::{Agent, FastOptions, SenderConfig, SinkConfig};
use anabranch_ns2::multihome::{self, Config};
use anabranch_ns2::{Sender, Sink};
use anabranch_sim::traffic::{self, OnOff, OnOffParameters};
use anabranch_sim::{
    Builder, ErrorSpec, Host, LinkSpec, MultihomedSink, MultihomedSource, Ns2Sink, Ns2Source, QueueSpec, Substreams,
    Trace, TraceRecord,
};
use anabranch_units::{SimSpan, SimTime};

use super::standard::{millis, spec};

fn agent(alpha: f64, window: f64) -> SenderConfig {
    let options = FastOptions { alpha, beta: alpha, ..FastOptions::default() };
    SenderConfig { window, payload: 960, ..SenderConfig::new(Agent::Fast(options)) }
}

/// Records everything that happens on a chain with a bottleneck in the middle, which a bursty flow shares.
fn chain(source: impl Host, sink: impl Host, bottleneck: LinkSpec, seed: u64) -> Vec<TraceRecord> {
    let mut net = Builder::new(seed);
    net.ns2_clock();
    let [n0, n1, n2, n3] = ["n0", "n1", "n2", "n3"].map(|name| net.node(name));
    net.duplex(n0, n1, spec("10Mbit/s", "5ms")).unwrap();
    net.duplex(n1, n2, bottleneck).unwrap();
    net.duplex(n2, n3, spec("10Mbit/s", "5ms")).unwrap();
    let (source, sink) = (net.host(n0, source).unwrap(), net.host(n3, sink).unwrap());
    net.flow(source, sink).unwrap();
    net.start(millis(10), source).unwrap();
    let parameters = OnOffParameters {
        on: SimSpan::from_millis(400),
        off: SimSpan::from_secs(2),
        rate: "1.2Mbit/s".parse().unwrap(),
        size: 500,
    };
    let cross = net.host(n1, OnOff::new(parameters, Substreams::new(seed).stream("cross"))).unwrap();
    let cross_sink = net.host(n2, traffic::Sink::default()).unwrap();
    net.flow(cross, cross_sink).unwrap();
    net.start(millis(0), cross).unwrap();
    let links: Vec<_> = net.links().collect();
    let trace = net.observe(&links, Trace::default()).unwrap();
    let mut world = net.build().unwrap();
    world.run_until(SimTime::ZERO + SimSpan::from_secs(60));
    world.assert_conserved();
    trace.borrow().records.clone()
}

#[test]
fn one_path_is_fast_to_the_packet() {
    let losses = [
        vec![],
        vec![ErrorSpec::List(vec![300, 301, 309, 700])],
        vec![ErrorSpec::PerPacket(0.003)],
        vec![ErrorSpec::PerPacket(0.03)],
        vec![ErrorSpec::PerPacket(0.2)],
    ];
    for (seed, errors) in (1..).zip(losses) {
        for (window, queue) in [(1000.0, 10), (1000.0, 50), (12.0, 50)] {
            let config = agent(8.0, window);
            let bottleneck = LinkSpec { errors: errors.clone(), ..spec("1.5Mbit/s", "40ms") };
            let bottleneck = bottleneck.queue(QueueSpec::packets(queue));
            let sink = Ns2Sink::new(Sink::new(SinkConfig::for_agent(&config.agent)));
            let single = chain(Ns2Source::new(Sender::new(config)), sink, bottleneck.clone(), seed);
            let several = multihome::Sender::new(Config { agent: config, paths: 1, reinject: None });
            let multi = chain(MultihomedSource::new(several), MultihomedSink::new(1), bottleneck, seed);
            let difference = single.iter().zip(&multi).find(|(one, other)| one != other);
            if let Some((one, other)) = difference {
                panic!("{errors:?}, window {window}, queue {queue}: FAST {one}, over one path {other}");
            }
            assert_eq!(single.len(), multi.len(), "{errors:?}, window {window}, queue {queue}");
            assert!(single.len() > 2_000, "{} events", single.len());
        }
    }
}
