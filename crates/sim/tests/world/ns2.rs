//! Comparison with ns-2.35: two constant-rate flows that together exceed what a drop-tail bottleneck carries.
//!
//! ns-2: nodes a, b, c, d; `duplex-link` a-c 10Mb 2ms, b-c 10Mb 3ms, c-d 1.5Mb 100ms, all DropTail; `queue-limit` 10 on c-d, 100
//! else; `Application/Traffic/CBR` over `Agent/UDP` from a, 1000 B at 1.1003Mb from 0.0, and from b, 700 B at 0.9013Mb from
//! 0.0137, both to d; 20 s. The numbers are counted in its trace file.
//!
//! The rates are odd on purpose. At 1.1 and 0.9 Mbit/s, packets arrive at the very time at which another packet's transmission
//! ends. Here the transmission has then ended. In ns-2 the last bit of a double decides, and after the first such packet the runs
//! differ.

use anabranch_sim::traffic::{Cbr, Sink};
use anabranch_sim::{Builder, Drops, QueueSpec};
use anabranch_units::SimTime;

use super::standard::{millis, spec};

#[test]
fn the_same_packets_are_lost_as_in_ns_2() {
    let mut net = Builder::new(1);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| net.node(name));
    let access = |delay| spec("10Mbit/s", delay).queue(QueueSpec::packets(100));
    net.duplex(a, c, access("2ms")).unwrap();
    net.duplex(b, c, access("3ms")).unwrap();
    let (core, _) = net.duplex(c, d, spec("1.5Mbit/s", "100ms").queue(QueueSpec::packets(10))).unwrap();
    let flows =
        [(a, "1.1003Mbit/s", 1000, "0s"), (b, "0.9013Mbit/s", 700, "13.7ms")].map(|(node, rate, size, start)| {
            let source = net.host(node, Cbr::new(rate.parse().unwrap(), size)).unwrap();
            let sink = net.host(d, Sink::default()).unwrap();
            let flow = net.flow(source, sink).unwrap();
            net.start(start.parse::<SimTime>().unwrap(), source).unwrap();
            (flow, sink)
        });
    let drops = net.observe(&[core], Drops::default()).unwrap();
    let mut world = net.build().unwrap();
    world.run_until(millis(20_000));
    world.assert_conserved();

    let of_flows = |count: &dyn Fn(_, _) -> u64| flows.map(|(flow, sink)| count(flow, sink));
    assert_eq!(of_flows(&|flow, _| world.link_flow(core, flow).drops), [722, 749]);
    assert_eq!(of_flows(&|_, sink| world.host::<Sink>(sink).unwrap().packets), [2015, 2449]);
    // Which packets are lost: a polynomial over their sequence numbers, in the order of the losses.
    let which = drops.borrow().records.iter().fold(0, |sum, drop| (sum * 31 + drop.seq) % 1_000_000_007);
    assert_eq!(which, 980_804_257);
    let rounded = |time: SimTime| (time.ticks() + 500_000) / 1_000_000;
    let first: Vec<_> = drops.borrow().records.iter().take(4).map(|drop| rounded(drop.time)).collect();
    assert_eq!(first, [129_098, 141_525, 160_165, 172_591]);
}
