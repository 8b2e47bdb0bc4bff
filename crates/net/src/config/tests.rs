//! What the default settings suffice for, in virtual time.

use anabranch_proto::{Form, Limit, Limits};
use anabranch_sim::{
    Builder, Control, EngineSink, EngineSource, HostId, Input, LinkSpec, Offer, Port, QueueSpec, World,
};
use anabranch_units::{SimSpan, SimTime, Time};

use super::*;

/// A path of 10 Gbit/s with an RTT of 100 ms, and a queue of one bandwidth-delay product. One stream has more to send than the
/// path carries.
fn far_and_fast(config: &Config) -> (World, [HostId; 2]) {
    let engine = || anabranch_proto::Config { form: Form::Sealed, ..config.connection() };
    let link = LinkSpec::new("10Gbit/s".parse().unwrap(), SimSpan::from_millis(50));
    let mut net = Builder::new(1);
    let (here, there) = (net.node("here"), net.node("there"));
    net.duplex(here, there, link.queue(QueueSpec::packets((PRODUCT / PACKET) as u32))).unwrap();
    let source = net.host(here, EngineSource::new(engine()).unwrap().fed()).unwrap();
    let sink = net.host(there, EngineSink::new(engine()).unwrap()).unwrap();
    net.flow(source, sink).unwrap();
    let offer = Offer { port: Port::FIRST, stream: 0, message: 0, bytes: None };
    net.at(SimTime::ZERO, Control::Input { host: source, input: Input::Offer(offer) }).unwrap();
    (net.build().unwrap(), [source, sink])
}

/// The size of a packet with the default MTU, and the bytes of payload in it.
const PACKET: u64 = 1_500;
const PAYLOAD: u64 = 1_416;
/// The bandwidth-delay product of 10 Gbit/s and 100 ms.
const PRODUCT: u64 = 125_000_000;

/// The application's share of the link's rate in the best of three seconds after the start, and what limited the sender in that
/// second. In one of the seconds the law drains the queue that its start has left, which takes a seventh of the second.
fn best_second(config: &Config) -> (f64, Limits) {
    let (mut world, [source, sink]) = far_and_fast(config);
    let look = |seconds| {
        world.run_until(SimTime::ZERO + SimSpan::from_secs(seconds));
        let connection = world.host::<EngineSource>(source).unwrap().connection().unwrap();
        let limits = connection.limits().until(Time::ZERO + Span::from_secs(seconds));
        (world.host::<EngineSink>(sink).unwrap().read(), limits)
    };
    let looks: Vec<_> = (3..=6).map(look).collect();
    let part = |from, to| 8.0 * (to - from) as f64 / 10e9;
    let seconds = looks.windows(2).map(|pair| (part(pair[0].0, pair[1].0), pair[1].1.since(&pair[0].1)));
    seconds.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

#[test]
fn default_buffers_do_not_limit_10_gbit_s_at_100_ms() {
    let (part, limits) = best_second(&Config::default());
    for limit in [Limit::PeerBuffer, Limit::Memory] {
        assert!(limits.share(limit) <= 0.0, "{limit:?}: {limits:?}");
    }
    let most = PAYLOAD as f64 / PACKET as f64;
    assert!((0.98 * most..=most).contains(&part), "{part} of at most {most}");
}

/// At 20 Mbit/s a packet leaves each 0.6 ms. The law takes no part: the sender is limited by the rate alone.
#[test]
fn rate_limit_counts_whole_packets() {
    let (part, limits) = best_second(&Config { rate_max: Some("20Mbit/s".parse().unwrap()), ..Config::default() });
    let most = 20e6 / 10e9 * PAYLOAD as f64 / PACKET as f64;
    assert!((0.998 * most..=1.002 * most).contains(&part), "{part} of {most}");
    assert!(limits.share(Limit::Pacing) > 0.999, "{limits:?}");
}

#[test]
fn rate_limit_that_no_packet_can_keep_is_refused_with_the_least() {
    let of = |rate: &str| Config { rate_max: Some(rate.parse().unwrap()), ..Config::default() }.check();
    let error = of("9999bit/s").unwrap_err().to_string();
    assert!(error.contains("9.999kbit/s") && error.contains("10kbit/s"), "{error}");
    assert!(of("10kbit/s").is_ok());
}

/// Half of the bandwidth-delay product is not enough, at either end.
#[test]
fn a_smaller_limit_is_one_at_10_gbit_s_and_100_ms() {
    let half = PRODUCT / 2;
    let default = Config::default();
    let small = Config { receive_buffer: 1 << 20, receive_buffer_max: half, ..default.clone() };
    let (part, limits) = best_second(&small);
    assert!(part < 0.5 && limits.share(Limit::PeerBuffer) > 0.4, "{part}, {limits:?}");
    let (part, limits) = best_second(&Config { send_memory: half, ..default });
    assert!(part < 0.5 && limits.share(Limit::Memory) > 0.4, "{part}, {limits:?}");
}
