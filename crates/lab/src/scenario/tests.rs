use anabranch_sim::QueueSpec;

use super::*;
use crate::document::Document;

#[test]
fn a_topology_has_the_links_and_says_what_it_leaves_out() {
    let text = "duration = \"1s\"\nclock = \"ns2\"\n[[link]]\nid = \"a\"\nfrom = \"n0\"\nto = \"r\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n\
        outages = [{ from = \"1s\", until = \"2s\" }]\n[[link]]\nid = \"b\"\nfrom = \"r\"\nto = \"n1\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n\
        duplex = false\nqueue = { kind = \"drop_tail\", bytes = \"9kB\" }\n[[link]]\nid = \"c\"\nfrom = \"n1\"\nto = \"r\"\nrate = \"2Mbit/s\"\n\
        delay = \"1ms\"\nduplex = false\n[[flow]]\nid = \"f0\"\nfrom = \"n0\"\nto = \"n1\"\ntransport = \"ns2/sack\"\nwindow = 9\n[[route]]\nat = \"3s\"\n\
        node = \"r\"\nto = \"n1\"\nvia = \"b\"\n";
    let scenario = Scenario::parse(&Document::parse("test.toml", text).expect("TOML")).expect("a scenario");
    let topology = scenario.topology();
    assert_eq!(topology.nodes, ["n0", "r", "n1"]);
    let links: Vec<_> = topology.wires.iter().map(|link| (link.id.as_str(), link.from, link.to)).collect();
    assert_eq!(links, [("a", 0, 1), ("a.reverse", 1, 0), ("b", 1, 2), ("c", 2, 1)]);
    assert_eq!(topology.wires[2].spec.queue, QueueSpec::bytes(9000));
    let [from, until] = [1, 2].map(|secs| SimTime::from_ticks(secs * 1_000_000_000_000));
    assert_eq!(topology.wires[1].spec.errors, [ErrorSpec::Outage { from, until }]);
    assert_eq!(topology.hosts, [0, 2]);
    let at = SimTime::from_ticks(3_000_000_000_000);
    assert_eq!(topology.routes, [RouteChange { at, node: 1, to: 2, via: 2 }]);
    assert_eq!(
        scenario.left_out(),
        [
            "flows send nothing here and only tell which nodes are hosts: f0",
            "clock = \"ns2\" is left out: time is counted in whole picoseconds"
        ]
    );
}
