//! What is up and what has happened, for people.

use std::fmt::Write as _;

use anabranch_emulator::{LinkStatus, Plan, Status};

use crate::terminal::{Align, BAD, NOTABLE, PLAIN, Table, paragraph};

/// Who is where.
pub(super) fn up(plan: &Plan, notes: &[String]) -> String {
    let left = ["host", "device", "IPv4", "IPv6", "namespace"].map(|head| (head, Align::Left));
    let mut table = Table::new(&left);
    for host in &plan.hosts {
        for interface in &host.interfaces {
            let cells = [
                host.name.clone(),
                interface.device.clone(),
                interface.ipv4.to_string(),
                interface.ipv6.to_string(),
                host.namespace.clone(),
            ];
            table.row(cells.map(|cell| (cell, PLAIN)).to_vec());
        }
    }
    let mut text = format!("{} is up.\n\n{}", plan.name, table.render(""));
    for note in notes {
        text.push_str(&paragraph("* ", note));
    }
    if let [first, .., last] = &plan.hosts[..] {
        let (name, first, last) = (&plan.name, &first.name, &last.name);
        // Writing to a string does not fail.
        _ = write!(
            text,
            "\nTry:  anabranch link exec --name {name} {first} -- ping {last}\nThen: anabranch link down {name}\n"
        );
    }
    text
}

/// What has happened on the links.
pub(super) fn status(name: &str, status: &Status, unread: u64) -> String {
    let columns = [
        ("link", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("sent", Align::Right),
        ("lost", Align::Right),
        ("dropped", Align::Right),
        ("delivered", Align::Right),
        ("queue", Align::Right),
        ("late p50", Align::Right),
        ("p99", Align::Right),
        ("max ms", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for link in &status.links {
        table.row(row(link).into_iter().map(|cell| (cell, PLAIN)).collect());
    }
    let (clock, cpu) = (status.clock_seconds, status.cpu_seconds);
    let mut text = format!("{name}, {clock:.1} s, {cpu:.1} s of processor time\n\n{}", table.render(""));
    if !status.is_real_time {
        _ = writeln!(text, "{NOTABLE}not in the real-time class: packets are late by whole milliseconds{NOTABLE:#}");
    }
    for (count, what) in [
        (unread, "packets were thrown away by devices before they were read: the machine is too slow for this"),
        (status.overflowed_packets, "packets were thrown away as too many were under way: limit the queues"),
    ] {
        if count > 0 {
            _ = writeln!(text, "{BAD}{count} {what}{BAD:#}");
        }
    }
    if status.stray_packets > 0 {
        _ = writeln!(text, "{} packets were for nobody here", status.stray_packets);
    }
    text
}

fn row(link: &LinkStatus) -> [String; 11] {
    let late = |of: fn(&anabranch_emulator::Lateness) -> f64| {
        link.late.as_ref().map_or_else(|| "-".to_owned(), |late| format!("{:.3}", of(late)))
    };
    [
        link.id.clone(),
        link.from.clone(),
        link.to.clone(),
        link.sent_packets.to_string(),
        link.lost_packets.to_string(),
        link.dropped_packets.to_string(),
        link.delivered_packets.to_string(),
        link.waiting_packets.to_string(),
        late(|late| late.p50_ms),
        late(|late| late.p99_ms),
        late(|late| late.max_ms),
    ]
}
