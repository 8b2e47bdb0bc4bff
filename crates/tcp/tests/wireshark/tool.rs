//! Captures as files, and what `tshark` says of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A packet of a capture.
#[derive(Clone)]
pub(crate) struct Frame {
    /// From the IP header on.
    pub(crate) bytes: Vec<u8>,
    /// Its length on the wire, of which a capture may have less.
    pub(crate) len: usize,
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len(), bytes }
    }
}

pub(crate) fn doc(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

pub(crate) fn text(name: &str) -> String {
    std::fs::read_to_string(doc(name)).unwrap()
}

/// Whether `tshark` is there; says so if it is not.
pub(crate) fn is_there() -> bool {
    let status = Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = status.is_ok_and(|status| status.success());
    if !is_there {
        println!("skipped: tshark is missing (Debian's package `tshark`)");
    }
    is_there
}

/// The output of `tshark` with our script, without settings of the user's. A message of Lua is a failure.
#[track_caller]
pub(crate) fn tshark(frames: &[Frame], arguments: &[&str]) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("anabranch-tshark-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("capture.pcap");
    std::fs::write(&file, capture(frames)).unwrap();
    let mut command = Command::new("tshark");
    command.env("WIRESHARK_CONFIG_DIR", &folder).env("HOME", &folder).arg("-n");
    command.arg("-X").arg(format!("lua_script:{}", doc("wireshark/anabranch.lua").display()));
    let output = command.arg("-r").arg(&file).args(arguments).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    // As root it warns; it says nothing else.
    let wrong: Vec<_> = errors.lines().filter(|line| !line.is_empty() && !line.contains("as user \"root\"")).collect();
    assert!(wrong.is_empty(), "{errors}");
    let place = said.find("Lua Error");
    assert!(place.is_none(), "{}", &said[place.unwrap()..].lines().take(3).collect::<Vec<_>>().join("\n"));
    said.into_owned()
}

/// The fields of ours that a frame has, in the order of [`FIELDS`], as `name=value` without `anabranch.`; several values have commas between them.
#[track_caller]
pub(crate) fn fields(frames: &[Frame], names: &[&str]) -> Vec<String> {
    let names: Vec<_> = names.iter().map(|name| format!("anabranch.{name}")).collect();
    let mut arguments = vec!["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"];
    names.iter().for_each(|name| arguments.extend(["-e", name.as_str()]));
    let said = tshark(frames, &arguments);
    let rows: Vec<_> = said
        .lines()
        .map(|line| {
            let values = names.iter().zip(line.split('\t')).filter(|(_, value)| !value.is_empty());
            // Later versions write truth and bytes in other ways.
            let plain = |value: &str| value.replace("True", "1").replace("False", "0").replace(':', "");
            let words: Vec<_> = values.map(|(name, value)| format!("{}={}", &name[10..], plain(value))).collect();
            words.join(" ")
        })
        .collect();
    assert_eq!(rows.len(), frames.len());
    rows
}

/// The names of the script's items that are made by this call, without `anabranch.`.
pub(crate) fn named(call: &str) -> Vec<String> {
    let script = text("wireshark/anabranch.lua");
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(call)?;
        rest.split_once("\"anabranch.")?.1.split_once('"').map(|(name, _)| name.to_owned())
    };
    script.lines().filter_map(of_line).collect()
}

/// A file of packets that begin with the IP header (`LINKTYPE_RAW`), a second apart.
fn capture(frames: &[Frame]) -> Vec<u8> {
    let mut file = vec![];
    for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101] {
        file.extend(u32::to_le_bytes(word));
    }
    for (at, frame) in frames.iter().enumerate() {
        for number in [at, 0, frame.bytes.len(), frame.len] {
            file.extend((number as u32).to_le_bytes());
        }
        file.extend(&frame.bytes);
    }
    file
}

/// The way of a packet: from the client, or back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    There,
    Back,
}

/// The IPv4 packet of a TCP segment between the addresses of wire.md's vectors.
pub(crate) fn v4(way: Way, segment: &[u8]) -> Vec<u8> {
    ipv4(way, 6, segment)
}

/// The same over IPv6.
pub(crate) fn v6(way: Way, segment: &[u8]) -> Vec<u8> {
    let mut ends = [0x2001_0db8 << 96 | 1u128, 0x2001_0db8 << 96 | 2];
    if way == Way::Back {
        ends.reverse();
    }
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((segment.len() as u16).to_be_bytes());
    packet.extend([6, 64]);
    ends.iter().for_each(|end| packet.extend(end.to_be_bytes()));
    packet.extend(segment);
    packet
}

/// The packet of a datagram between these ports of the client and of the server.
pub(crate) fn udp(way: Way, ports: [u16; 2], datagram: &[u8]) -> Vec<u8> {
    let [from, to] = if way == Way::There { ports } else { [ports[1], ports[0]] };
    let words = [from, to, 8 + datagram.len() as u16, 0];
    let header: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    ipv4(way, 17, &[&header, datagram].concat())
}

fn ipv4(way: Way, protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut ends = [[192, 0, 2, 1], [198, 51, 100, 2]];
    if way == Way::Back {
        ends.reverse();
    }
    let [high, low] = (20 + content.len() as u16).to_be_bytes();
    [&[0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0], ends.as_flattened(), content].concat()
}
