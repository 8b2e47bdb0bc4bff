//! The kernel's TCP and ours with a middlebox between them, each as client and as server.

use std::collections::BTreeMap;
use std::time::Instant;

use anabranch_tcp::Host;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::ends::{all, ask, host_serves, kernel_serves};
use super::middlebox::{Act, FAMILIES, Family, Memories, acts, set_up};
use super::{host, inside, remote, set_features};

/// The port of our server for a box, and that of the kernel's.
fn ports(number: usize) -> [u16; 2] {
    [100, 200].map(|first| first + number as u16)
}

/// A host, and a box that does this for connections to the ports of each number.
fn stage(all: &[(&str, Act)]) -> (Host, Memories) {
    let host = host(|config| config.timestamps = true);
    let of_ports = |(number, &(_, act)): (usize, &(&str, Act))| ports(number).map(|port| (port, act));
    let boxed: BTreeMap<_, _> = all.iter().enumerate().flat_map(of_ports).collect();
    (host, set_up(boxed))
}

/// Through each box a connection of the kernel's client and one of ours, at once; `len` bytes each way.
async fn exchange(host: &Host, family: &'static Family, boxes: usize, len: usize) {
    let mut clients = JoinSet::new();
    let mut servers = vec![];
    for number in 0..boxes {
        let [ours, kernel] = ports(number);
        servers.push(host_serves(host, ours, 1, len));
        servers.push(kernel_serves(remote(family.kernel, kernel), 1, len));
        clients
            .spawn(async move { ask(TcpStream::connect(remote(family.ours, ours)).await?, number as u32, len).await });
        let host = host.clone();
        clients.spawn(async move {
            let stream = host.connect(family.host.parse().unwrap(), remote(family.kernel_for_ours, kernel)).await?;
            assert!(!stream.is_shared(), "the kernel's TCP is plain");
            ask(stream, 1000 + number as u32, len).await
        });
    }
    all(clients).await;
    for server in servers {
        server.await.unwrap();
    }
}

/// All combinations of features, each with every kind of bad path, by IPv4 and IPv6, and each end as client.
#[test]
fn every_byte_arrives_with_any_features_over_bad_paths() {
    let Some(runtime) = inside("both_ways::every_byte_arrives_with_any_features_over_bad_paths") else { return };
    runtime.block_on(async {
        let boxes: [(&str, Act); 5] = [
            ("passes", acts::passes),
            ("loses 1 %", acts::loses_hundredth),
            ("loses 5 %", acts::loses_twentieth),
            ("doubles", acts::doubles_twentieth),
            ("reorders", acts::reorders_twentieth),
        ];
        let (host, memories) = stage(&boxes);
        for combination in 0..16 {
            let features = [0, 1, 2, 3].map(|bit| if combination >> bit & 1 == 1 { "1" } else { "0" });
            set_features(features);
            for family in &FAMILIES {
                let begin = Instant::now();
                exchange(&host, family, boxes.len(), 100_000).await;
                println!("{}: timestamps, SACK, scaling, ECN {features:?}: {:?}", family.kernel, begin.elapsed());
            }
        }
        let memories = memories.lock().unwrap();
        let (syns, packets) = memories.values().fold((0, 0), |sum, it| (sum.0 + it.ecn_syns, sum.1 + it.ecn_packets));
        assert!(
            syns >= 2 * 8 * 5 && packets == 0,
            "{syns} SYNs ask for ECN, which ours does not grant; {packets} packets have it"
        );
        for (number, (name, _)) in boxes.iter().enumerate().skip(1) {
            for port in ports(number) {
                let of_port = memories.iter().filter(|((from, to), _)| [*from, *to].contains(&port));
                assert!(of_port.map(|(_, memory)| memory.changed).sum::<u32>() > 20, "{name}");
            }
        }
    });
}

/// A middlebox that changes segments or drops what it does not know: the connection is plain TCP after two SYNs at most, and every byte arrives.
#[test]
fn every_byte_arrives_through_middleboxes_to_the_kernel() {
    let Some(runtime) = inside("both_ways::every_byte_arrives_through_middleboxes_to_the_kernel") else { return };
    through_middleboxes(runtime, &FAMILIES[0]);
}

#[test]
fn every_byte_arrives_through_middleboxes_by_ipv6() {
    let Some(runtime) = inside("both_ways::every_byte_arrives_through_middleboxes_by_ipv6") else { return };
    through_middleboxes(runtime, &FAMILIES[1]);
}

fn through_middleboxes(runtime: Runtime, family: &'static Family) {
    runtime.block_on(async {
        let boxes: [(&str, Act); 7] = [
            ("splits", acts::splits),
            ("joins", acts::joins),
            ("shifts", acts::shifts),
            ("shifts, but no SACK", acts::shifts_without_sack),
            ("strips options", acts::strips_option),
            ("clears bits", acts::clears_reserved),
            ("drops offers", acts::drops_offers),
        ];
        let (host, memories) = stage(&boxes);
        exchange(&host, family, boxes.len(), 1_000_000).await;
        let memories = memories.lock().unwrap();
        for (number, (name, _)) in boxes.iter().enumerate() {
            let [ours, kernel] = ports(number);
            let of = |port: u16| memories.iter().filter(move |((from, to), _)| [*from, *to].contains(&port));
            let (syns, offers) =
                of(kernel).fold((0, 0), |sum, (_, memory)| (sum.0 + memory.syns, sum.1 + memory.offers));
            println!("{name}: {syns} SYNs of ours, {offers} of them with an offer");
            assert!((1..=2).contains(&syns) && offers == 1, "{name}: {syns} SYNs, {offers} with an offer");
            let changed = |port| of(port).map(|(_, memory)| memory.changed).sum::<u32>();
            // The kernel offers nothing.
            assert!(
                changed(kernel) > 0 && (number > 3 || changed(ours) > 50),
                "{name}: {} {}",
                changed(kernel),
                changed(ours)
            );
        }
    });
}
