//! The case in our simulator: an association's interfaces are links of one node.

use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::sctp::{Chunk, DestinationConfig, Endpoint};
use anabranch_sim::{
    Body, BuildError, Builder, Control, ErrorSpec, Input, LinkId, LinkSpec, NodeId, Ns2Sctp, Observer, Offer,
    PacketEvent, Port, QueueSpec, Way,
};
use anabranch_units::{SimSpan, SimTime};

use super::case::{Case, Link};
use crate::oracle::case::Clock;
use crate::oracle::trace::{self, Event, Trace};
use crate::oracle::world::{LIMIT_DEFAULT, kinds};

/// Runs the case and records what happens to chunks at links.
pub(crate) fn run(case: &Case, sabotage: bool) -> Result<Trace, BuildError> {
    let mut builder = Builder::new(1);
    builder.ns2_clock();
    builder.ns2_random(Mrg32k3a::new(Mrg32k3a::DEFAULT_SEED));
    let mut network = Network { names: case.nodes(), nodes: vec![], links: vec![], ends: vec![] };
    for name in &network.names {
        // All interfaces of an end are one node.
        let host = name.split('_').next().unwrap_or(name).to_owned();
        let known = network.nodes.iter().find(|(other, _)| *other == host).map(|&(_, node)| node);
        let node = known.unwrap_or_else(|| builder.node(&host));
        network.nodes.push((host, node));
    }
    for (index, (from, to, mut link)) in case.links().into_iter().enumerate() {
        link.limit += u32::from(sabotage && index == 0);
        let losses = case.paths.get(index).map_or([vec![], vec![]], |path| path.losses.clone());
        network.duplex(&mut builder, &from, &to, link, losses)?;
    }
    for (index, it) in case.associations.iter().enumerate() {
        let destinations: Vec<_> = (0..)
            .zip(&case.paths)
            .map(|(interface, path)| DestinationConfig { interface, loss_rate: path.loss_rate })
            .collect();
        let mut hosts = vec![];
        for (near, far, primary) in [("a", "b", it.primary), ("b", "a", destinations.len() - 1)] {
            let mut endpoint = Endpoint::new(case.config, &destinations, Mrg32k3a::new(1));
            endpoint.set_primary(primary);
            let mut host = Ns2Sctp::new(endpoint);
            if it.bytes.is_some() {
                host = host.fed();
            }
            let ways: Result<Vec<_>, BuildError> = (0..destinations.len())
                .map(|path| {
                    let link = |end: &str, direction| network.link(&format!("{end}{index}_{path}"), direction);
                    let to = builder.address_through(link(far, Direction::To))?;
                    let here = builder.address_through(link(near, Direction::To))?;
                    Ok(Way { via: link(near, Direction::From), to, here })
                })
                .collect();
            let node = network.node(&format!("{near}{index}_0"));
            hosts.push(builder.host(node, host.multihomed(ways?))?);
        }
        builder.flow(hosts[0], hosts[1])?;
        let start = SimTime::ZERO + SimSpan::from_millis(it.start_ms);
        let input = match it.bytes {
            None => Input::Start,
            Some(bytes) => Input::Offer(Offer { port: Port::FIRST, stream: 0, message: 0, bytes: Some(bytes) }),
        };
        builder.at(start, Control::Input { host: hosts[0], input })?;
    }
    let recorder = Recorder { ends: network.ends, step: Clock::Floats.step(), trace: Trace::new() };
    let recorder = builder.observe(&network.links, recorder)?;
    let mut world = builder.build()?;
    // ns-2's script schedules its end before anything else, so it ends before other events at that time.
    world.run_until(SimTime::ZERO + SimSpan::from_millis(case.end_ms) - SimSpan::from_ticks(1));
    world.assert_conserved();
    Ok(recorder.borrow().trace.clone())
}

/// ns-2's nodes, by number, and the links between them.
struct Network {
    names: Vec<String>,
    nodes: Vec<(String, NodeId)>,
    links: Vec<LinkId>,
    /// The numbers of the ends of each link.
    ends: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    From,
    To,
}

impl Network {
    fn number(&self, name: &str) -> usize {
        self.names.iter().position(|other| other == name).expect("a case names its nodes")
    }

    fn node(&self, name: &str) -> NodeId {
        self.nodes[self.number(name)].1
    }

    /// The only link from or to an interface.
    fn link(&self, name: &str, direction: Direction) -> LinkId {
        let number = self.number(name) as u32;
        let place =
            self.ends.iter().position(|&(from, to)| number == if direction == Direction::From { from } else { to });
        self.links[place.expect("an interface has a link in each direction")]
    }

    fn duplex(
        &mut self,
        builder: &mut Builder,
        from: &str,
        to: &str,
        link: Link,
        [there, back]: [Vec<u64>; 2],
    ) -> Result<(), BuildError> {
        for (from, to, limit, losses) in [(from, to, link.limit, there), (to, from, LIMIT_DEFAULT, back)] {
            let spec =
                LinkSpec::new(link.rate, link.delay).named(format!("{from}>{to}")).queue(QueueSpec::packets(limit));
            let spec = if losses.is_empty() { spec } else { spec.error(ErrorSpec::List(losses)) };
            self.links.push(builder.link(self.node(from), self.node(to), spec)?);
            self.ends.push((self.number(from) as u32, self.number(to) as u32));
        }
        Ok(())
    }
}

struct Recorder {
    ends: Vec<(u32, u32)>,
    step: SimSpan,
    trace: Trace,
}

impl Observer for Recorder {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let Body::Sctp(packet) = event.body else { return };
        let (from, to) = self.ends[event.link.index()];
        for chunk in &packet.chunks {
            let (kind, seq, stream, ssn) = match chunk {
                Chunk::Data(data) => ('D', data.tsn.into(), data.stream, data.ssn),
                Chunk::Sack(sack) => ('S', sack.cumulative.into(), u16::MAX, u16::MAX),
                Chunk::Heartbeat(_) => ('H', -1, u16::MAX, u16::MAX),
                Chunk::HeartbeatAck(_) => ('B', -1, u16::MAX, u16::MAX),
                Chunk::Init(_) | Chunk::InitAck(_) | Chunk::CookieEcho | Chunk::CookieAck => {
                    ('I', -1, u16::MAX, u16::MAX)
                }
            };
            let record = Event {
                // Rounded to the nearest, as in ns-2.
                at_steps: (event.time.ticks() + self.step.ticks() / 2) / self.step.ticks(),
                ack: false,
                flow: event.flow.index() as u32,
                seq,
                size: event.size,
                chunk: Some(trace::Chunk { kind, stream, ssn }),
            };
            for &kind in kinds(event.happening) {
                self.trace.entry((from, to, kind)).or_default().push(record);
            }
        }
    }
}
