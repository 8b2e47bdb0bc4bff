//! Random worlds: whatever is built, packets are conserved.

use anabranch_sim::traffic::{Cbr, Sink};
use anabranch_sim::{
    Arrival, Builder, CoDelParameters, Control, DelaySpec, DeliveryTrace, DualPi2Parameters, ErrorSpec,
    FqCoDelParameters, GilbertElliott, HoldSpec, Host, Input, LinkSpec, PieParameters, QueueSpec, RateSpec,
    RedParameters, ReorderSpec, ScatterSpec, StepParameters, Steps, Transmit,
};
use anabranch_units::{Bytes, Rate, SimSpan, SimTime};
use proptest::prelude::*;

use super::standard::{Echo, Window, millis};

/// Which property of a link changes.
#[derive(Clone, Debug)]
enum Change {
    Nothing,
    Rates(RateSpec),
    Scatter(ScatterSpec),
    Hold(HoldSpec),
}

#[derive(Clone, Debug)]
enum Op {
    /// One more node, linked in both directions to an existing one.
    Link { to: usize, rate: u64, delay: u64, queue: QueueSpec, error: Option<ErrorSpec>, change: Change },
    /// A flow between two nodes.
    Flow { from: usize, to: usize, window: Option<u64>, start: u64 },
    /// A route that changes to any link of its node, or is removed.
    Route { at: u64, node: usize, to: usize, link: usize },
}

fn queue() -> impl Strategy<Value = QueueSpec> {
    prop_oneof![
        Just(QueueSpec::unlimited()),
        (2..30_u32).prop_map(QueueSpec::packets),
        (1..30_000_u64).prop_map(QueueSpec::bytes),
        Just(QueueSpec::from(RedParameters::default())),
        (1..50_u32).prop_map(|packets_max| QueueSpec::from(CoDelParameters { packets_max, ..Default::default() })),
        (1..50_u32).prop_map(|packets_max| {
            let codel = CoDelParameters { packets_max, ..Default::default() };
            QueueSpec::from(FqCoDelParameters { codel, queues: 3, batch: 4, ..Default::default() })
        }),
        (1..50_u32).prop_map(|packets_max| QueueSpec::from(PieParameters { packets_max, ..Default::default() })),
        (1..50_u32).prop_map(|packets_max| QueueSpec::from(DualPi2Parameters { packets_max, ..Default::default() })),
        (2..30_u32).prop_map(|packets_max| {
            QueueSpec::from(StepParameters { packets_max, mark_packets: Some(packets_max / 2), ..Default::default() })
        }),
    ]
}

fn error() -> impl Strategy<Value = Option<ErrorSpec>> {
    let channel = GilbertElliott { to_bad: 0.05, to_good: 0.3, loss_good: 0.0, loss_bad: 0.5 };
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(ErrorSpec::PerPacket(0.1))),
        1 => Just(Some(ErrorSpec::PerByte(0.0001))),
        1 => Just(Some(ErrorSpec::GilbertElliott(channel))),
        1 => Just(Some(ErrorSpec::Periodic { period: 7, offset: 3, burst: 2 })),
        1 => Just(Some(ErrorSpec::Policer { rate: Rate::from_bits_per_second(1_000_000), burst: Bytes::new(3000) })),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let ms = SimSpan::from_millis;
    let steps = (1..50_u64, 0..3_u64).prop_map(move |(at, rate)| {
        let steps = vec![(ms(at), Rate::from_bits_per_second(rate * 1_000_000))];
        Change::Rates(RateSpec::Steps(Steps { steps, period: Some(ms(at + 30)) }))
    });
    let trace = prop::collection::vec(1..200_u64, 1..20).prop_map(move |mut times| {
        times.sort_unstable();
        let opportunities = times.into_iter().map(ms).collect();
        Change::Rates(RateSpec::Trace(DeliveryTrace { opportunities }))
    });
    let scatter = (1..50_u64, 0..60_u64, 0..3_u32).prop_map(move |(at, delay, tenths)| {
        let share = 0.1 * f64::from(tenths);
        Change::Scatter(ScatterSpec {
            delays: Some(Steps { steps: vec![(ms(at), ms(delay))], period: Some(ms(at + 30)) }),
            reorder: Some(ReorderSpec { share, extra: DelaySpec::Exponential(ms(5)) }),
            duplicates: share,
        })
    });
    prop_oneof![
        2 => Just(Change::Nothing),
        1 => steps,
        1 => trace,
        1 => scatter,
        1 => (1..20_u64).prop_map(move |every| Change::Hold(HoldSpec::Grid(ms(every)))),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (0..9_usize, 1..20_u64, 0..50_u64, queue(), error(), change())
            .prop_map(|(to, rate, delay, queue, error, change)| Op::Link { to, rate, delay, queue, error, change }),
        2 => (0..9_usize, 0..9_usize, prop::option::of(1..60_u64), 0..1000_u64)
            .prop_map(|(from, to, window, start)| Op::Flow { from, to, window, start }),
        1 => (0..3000_u64, 0..9_usize, 0..9_usize, 0..30_usize)
            .prop_map(|(at, node, to, link)| Op::Route { at, node, to, link }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packets_are_conserved(ops in prop::collection::vec(op(), 3..25)) {
        let mut net = Builder::new(1);
        let mut nodes = vec![net.node("n0")];
        let mut links = Vec::new();
        for op in ops {
            match op {
                Op::Link { to, rate, delay, queue, error, change } => {
                    let node = net.node(format!("n{}", nodes.len()));
                    let spec = LinkSpec::new(Rate::from_bits_per_second(rate * 500_000), SimSpan::from_millis(delay));
                    // Packets have 1000 bytes, those of a constant rate 500.
                    let mtu = (delay % 7 == 3).then_some(700);
                    let spec = LinkSpec { errors: error.into_iter().collect(), mtu, ..spec.queue(queue) };
                    let spec = match change {
                        Change::Nothing => spec,
                        Change::Rates(rates) => spec.rates(rates),
                        Change::Scatter(scatter) => spec.scatter(scatter),
                        Change::Hold(hold) => spec.hold(hold),
                    };
                    let other = nodes[to % nodes.len()];
                    let (there, back) = net.duplex(other, node, spec).unwrap();
                    links.extend([(other, there), (node, back)]);
                    nodes.push(node);
                }
                Op::Flow { from, to, window, start } => {
                    let (from, to) = (nodes[from % nodes.len()], nodes[to % nodes.len()]);
                    if from == to {
                        continue;
                    }
                    let source = match window {
                        Some(window) => {
                            let source = net.host(from, Patient(Window::new(1000, window))).unwrap();
                            let sink = net.host(to, Echo::default()).unwrap();
                            net.flow(source, sink).unwrap();
                            source
                        }
                        None => {
                            let source = net.host(from, Cbr::new(Rate::from_bits_per_second(2_000_000), 500)).unwrap();
                            let sink = net.host(to, Sink::default()).unwrap();
                            net.flow(source, sink).unwrap();
                            source
                        }
                    };
                    net.start(millis(start), source).unwrap();
                }
                Op::Route { at, node, to, link } => {
                    let node = nodes[node % nodes.len()];
                    let to = net.address(nodes[to % nodes.len()]).unwrap();
                    let via = links.iter().filter(|&&(from, _)| from == node).map(|&(_, link)| link).nth(link);
                    net.at(millis(at), Control::Route { node, to, via }).unwrap();
                }
            }
        }
        let mut world = net.build().unwrap();
        for step in 0..20 {
            world.run_until(millis(step * 201));
            world.assert_conserved();
        }
    }
}

/// A window whose timer may fire: after losses it stops.
struct Patient(Window);

impl Host for Patient {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        self.0.handle(now, arrival);
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        self.0.handle_input(now, input);
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        self.0.poll_transmit(now)
    }
}
