//! Texts of `anabranch link` for people.

use std::fmt::Write as _;

use anabranch_emulator::linux::CheckRow;
use anabranch_emulator::{Lateness, LinkStatus, Plan, Status};
use anabranch_units::Rate;

use crate::terminal::{Align, BAD, GOOD, NOTABLE, PLAIN, Table, paragraph};

/// The hosts and their addresses.
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
                host.namespace.to_string(),
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
        // Writing to a string cannot fail.
        _ = write!(
            text,
            "\nTry:  anabranch link exec --name {name} {first} -- ping {last}\nThen: anabranch link down {name}\n"
        );
    }
    text
}

/// The counters of the links.
pub(super) fn status(name: &str, status: &Status, unread: u64) -> String {
    let columns = [
        ("link", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("sent", Align::Right),
        ("lost", Align::Right),
        ("dropped", Align::Right),
        ("marked", Align::Right),
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
        _ = writeln!(text, "{} packets were for no address of the hosts", status.stray_packets);
    }
    text
}

fn row(link: &LinkStatus) -> [String; 12] {
    let late = |of| millis(link.late, of);
    [
        link.id.clone(),
        link.from.clone(),
        link.to.clone(),
        link.sent_packets.to_string(),
        link.lost_packets.to_string(),
        link.dropped_packets.to_string(),
        link.marked_packets.to_string(),
        link.delivered_packets.to_string(),
        link.waiting_packets.to_string(),
        late(|late| late.p50_ms),
        late(|late| late.p99_ms),
        late(|late| late.max_ms),
    ]
}

fn millis(late: Option<Lateness>, of: fn(&Lateness) -> f64) -> String {
    late.as_ref().map_or_else(|| "-".to_owned(), |late| format!("{:.3}", of(late)))
}

/// The lateness of links.
pub(super) fn check(rows: &[CheckRow]) -> String {
    let right = |head| (head, Align::Right);
    let heads = ["rate", "delay ms", "sent", "delivered", "late p50", "p99", "max ms", "emulator p99", "CPU"];
    let columns: Vec<_> = heads.into_iter().map(right).chain([("carried", Align::Left)]).collect();
    let mut table = Table::new(&columns);
    for row in rows {
        let (word, style) = if row.is_carried() { ("yes", GOOD) } else { ("no", NOTABLE) };
        let cells = [
            Rate::from_bits_per_second(row.rate_bps).to_string(),
            row.delay_ms.to_string(),
            row.sent_packets.to_string(),
            row.delivered_packets.to_string(),
            millis(row.late, |late| late.p50_ms),
            millis(row.late, |late| late.p99_ms),
            millis(row.late, |late| late.max_ms),
            millis(row.late_emulator, |late| late.p99_ms),
            format!("{:.0} %", 100.0 * row.cpu_share),
        ];
        let cells = cells.into_iter().map(|cell| (cell, PLAIN)).chain([(word.to_owned(), style)]);
        table.row(cells.collect());
    }
    let mut text = table.render("");
    // At every measured delay.
    let is_carried = |rate: u64| rows.iter().filter(|row| row.rate_bps == rate).all(CheckRow::is_carried);
    let most = rows.iter().map(|row| row.rate_bps).filter(|&rate| is_carried(rate)).max();
    text.push_str(&match most {
        Some(rate) => {
            let rate = Rate::from_bits_per_second(rate);
            format!("\nThis machine carries {rate} now: 999 of 1000 packets came, 99 of 100 at most 1 ms late.\n")
        }
        None => {
            "\nThis machine carries none of these now: too many packets were lost or more than 1 ms late.\n".to_owned()
        }
    });
    if rows.iter().any(|row| !row.is_real_time) {
        _ = writeln!(text, "{NOTABLE}not in the real-time class: packets are late by whole milliseconds{NOTABLE:#}");
    }
    text
}
