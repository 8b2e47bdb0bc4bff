//! A path dies, or only seems to, while another path works.

use anabranch_proto::{Config, PathState, Scheduling};
use anabranch_units::Span;

use crate::path::{Path, World, config};
use crate::{at, ms};

/// Two paths of 20 Mbit/s with RTTs of 40 and 60 ms and queues for `packets` packets.
fn paths(packets: u64) -> [Path; 2] {
    [40, 60].map(|rtt| Path { queue: Span::from_micros(600 * packets), ..Path::new("20Mbit/s", ms(rtt)) })
}

fn several(law: &str, scheduling: Scheduling) -> Config {
    Config { paths_max: 2, scheduling, ..config(law, &[]) }
}

/// Either of two paths is cut, at ten different times. ACKs in flight arrive for half an RTT more. Then nothing arrives for one
/// and a half probe timeouts. Lost data is sent on the other path, through its queue. With a queue of 200 packets, a law that
/// fills it has an RTT of up to 180 ms. Measured: 286 ms with CUBIC and 200 packets, 251 with Reno, 172 with other laws; with two
/// probe timeouts 352, 305, 203.
#[test]
fn a_path_that_dies_costs_300_ms() {
    for law in ["fast", "anabranch", "reno", "cubic", "vegas"] {
        for (packets, scheduling) in [(20, Scheduling::MinRtt), (60, Scheduling::Window), (200, Scheduling::MinRtt)] {
            for (dead, cut) in (0..20).map(|count| (count % 2, 8000 + 137 * (count / 2))) {
                let mut paths = paths(packets);
                paths[dead as usize].outages = vec![(at(cut), at(1_000_000))];
                let mut world = World::over(&paths, &several(law, scheduling), 1 << 40);
                world.run_until(|world| world.now >= at(cut - 1));
                let mut longest = Span::ZERO;
                while world.now < at(cut + 3000) {
                    let (read, since) = (world.read, world.now);
                    world.run_until(|world| world.read > read);
                    longest = longest.max(world.now - since);
                }
                let what = format!("{law}, {packets} packets, path {dead} cut at {cut} ms");
                assert!(longest <= ms(300), "{what}: nothing for {longest}");
            }
        }
    }
}

/// A path that pauses for an RTT, as a radio link may, is not suspected. A path that pauses for longer is suspected for that
/// long, and used again when it is back. It is as fast as before within three seconds.
#[test]
fn a_path_that_pauses_is_not_dead() {
    for (law, pause) in ["anabranch", "reno"].into_iter().flat_map(|law| [60, 200, 1000].map(|pause| (law, pause))) {
        let mut paths = paths(60);
        paths[1].pause = Some((at(8000), ms(pause)));
        let mut world = World::over(&paths, &several(law, Scheduling::MinRtt), 1 << 40);
        let mut sent = |from, until| {
            world.run_until(|world| world.now >= at(from));
            let before = world.client.path_reports().nth(1).expect("it is there").1.tally.delivered;
            world.run_until(|world| world.now >= at(until));
            let (_, report) = world.client.path_reports().nth(1).expect("it is there");
            (report.tally.delivered - before, report.state, world.failures)
        };
        let what = format!("{law}, {pause} ms");
        let (before, ..) = sent(6000, 8000);
        let (_, _, failures) = sent(8000, 8000 + pause + 200);
        assert_eq!(failures, u32::from(pause > 60), "{what}");
        let (after, state, failures) = sent(11_000 + pause, 13_000 + pause);
        assert_eq!((state, failures), (PathState::Live, u32::from(pause > 60)), "{what}");
        assert!(after as f64 >= 0.95 * before as f64, "{what}: {after} B in 2 s, {before} before");
    }
}
