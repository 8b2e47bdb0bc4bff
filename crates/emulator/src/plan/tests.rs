use anabranch_sim::{LinkSpec, Topology, Wire};
use anabranch_units::{Rate, SimSpan};

use super::*;

fn wire(id: &str, from: usize, to: usize) -> Wire {
    let spec = LinkSpec::new(Rate::from_bits_per_second(1_000_000), SimSpan::from_millis(1));
    Wire { id: id.to_owned(), from, to, spec, mtu_changes: vec![] }
}

fn plan(wires: Vec<Wire>) -> Plan {
    let nodes = ["h0", "h1"].map(str::to_owned).to_vec();
    let network = Topology { seed: 1, nodes, wires, routes: vec![], hosts: vec![0, 1] };
    Plan::new(&"test".parse().unwrap(), &network, &Settings::default()).unwrap()
}

fn two_paths() -> Plan {
    plan(vec![
        wire("dsl", 0, 1),
        wire("dsl.reverse", 1, 0),
        wire("a-very-long-name", 0, 1),
        wire("a-very-long-name.reverse", 1, 0),
    ])
}

#[test]
fn one_link_is_an_address_and_a_route() {
    let plan = plan(vec![wire("a", 0, 1), wire("a.reverse", 1, 0)]);
    assert_eq!(plan.hosts[1].namespace.as_str(), "anabranch.test.h1");
    assert_eq!(
        plan.hosts[0].ipv4_commands,
        "link set dev lo up\nlink set dev a mtu 1500 txqueuelen 20000 up\naddr add 10.77.1.1/32 dev a\nroute add \
         10.77.2.1/32 dev a src 10.77.1.1\n"
    );
    assert_eq!(
        plan.hosts[1].ipv6_commands,
        "addr add fd77::2:1/128 dev a nodad\nroute add fd77::1:1/128 dev a src fd77::2:1\n"
    );
}

#[test]
fn two_links_are_two_devices_and_a_source_chooses_its_own() {
    let plan = two_paths();
    let devices: Vec<_> = plan.hosts[1].interfaces.iter().map(|interface| interface.device.as_str()).collect();
    assert_eq!(devices, ["dsl", "link1"]);
    let commands: Vec<&str> = plan.hosts[0].ipv4_commands.lines().collect();
    assert_eq!(
        commands[5..],
        [
            "route add 10.77.2.1/32 dev dsl src 10.77.1.1",
            "route add 10.77.2.2/32 dev link1 src 10.77.1.2",
            "route add default dev dsl table 1000",
            "rule add from 10.77.1.1/32 table 1000",
            "route add default dev link1 table 1001",
            "rule add from 10.77.1.2/32 table 1001",
        ]
    );
}

#[test]
fn names_have_one_address_each() {
    assert_eq!(
        two_paths().hosts_file().lines().skip(2).take(6).collect::<Vec<_>>(),
        [
            "10.77.1.1 h0 h0.dsl",
            "fd77::1:1 h0.v6 h0.dsl.v6",
            "10.77.1.2 h0.a-very-long-name",
            "fd77::1:2 h0.a-very-long-name.v6",
            "10.77.2.1 h1 h1.dsl",
            "fd77::2:1 h1.v6 h1.dsl.v6",
        ]
    );
}

#[test]
fn devices_have_names_that_the_kernel_takes() {
    let names = ["lo", "x", "x", "fifteen-letters", "sixteen--letters", "link4"];
    assert_eq!(devices(names.into_iter()), ["link0", "x", "link2", "fifteen-letters", "link4", "link5"]);
}

#[test]
fn the_default_law_is_not_the_machines() {
    let law = |settings: &Settings| Plan::sysctls(settings)[0].clone();
    assert_eq!(law(&Settings::default()), ("ipv4/tcp_congestion_control", "reno".to_owned()));
    let cubic = Settings { congestion_control: "cubic".to_owned(), ..Settings::default() };
    assert_eq!(law(&cubic).1, "cubic");
}
