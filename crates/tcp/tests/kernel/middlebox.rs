//! A middlebox between the kernel's TCP and ours: a device that gets the packets of both, and gives them back to the kernel with other addresses.
//!
//! ```text
//! the kernel 10.96.0.1 <-> 10.96.0.2 the box 10.96.0.3 <-> 10.99.0.2 ours        and fd00:96::1, ::2, ::3, fd00:99::2
//! ```
//!
//! What it does with a packet depends on the port of the connection's server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::timeout;
use tun_rs::{AsyncDevice, DeviceBuilder};

use self::segment::Segment;
use super::{V4, V6, forward, ip};

pub(crate) mod acts;
mod segment;

/// Addresses of a family.
pub(crate) struct Family {
    pub(crate) kernel: &'static str,
    /// That by which the kernel knows ours, and that by which ours knows the kernel.
    pub(crate) ours: &'static str,
    pub(crate) kernel_for_ours: &'static str,
    /// That of our host.
    pub(crate) host: &'static str,
}

pub(crate) const FAMILIES: [Family; 2] = [
    Family { kernel: "10.96.0.1", ours: "10.96.0.2", kernel_for_ours: "10.96.0.3", host: V4[1] },
    Family { kernel: "fd00:96::1", ours: "fd00:96::2", kernel_for_ours: "fd00:96::3", host: V6[1] },
];

/// What a box does with a segment of a connection.
pub(crate) type Act = fn(&mut Memory, Segment) -> Vec<Segment>;

/// What it remembers of one direction of a connection.
#[derive(Default)]
pub(crate) struct Memory {
    random: u64,
    /// A segment that waits for so many others.
    held: Option<(Segment, u32)>,
    /// SYNs of our client that it got, and those of them that ask for streams.
    pub(crate) syns: u32,
    pub(crate) offers: u32,
    /// SYNs that ask for ECN, and packets that may be marked.
    pub(crate) ecn_syns: u32,
    pub(crate) ecn_packets: u32,
    /// Segments that it did something to.
    pub(crate) changed: u32,
}

/// By the ports of a direction's sender and receiver.
pub(crate) type Memories = Arc<Mutex<BTreeMap<(u16, u16), Memory>>>;

/// Sets a box between the kernel and the host behind the other device; which must be up. It acts on connections by the ports of their servers.
pub(crate) fn set_up(acts: BTreeMap<u16, Act>) -> Memories {
    let device = DeviceBuilder::new().name("box0").inherit_enable_state().build_async().unwrap();
    let [v4, v6] = FAMILIES;
    ip(&format!("address add {}/24 dev box0", v4.kernel));
    ip(&format!("address add {}/64 dev box0 nodad", v6.kernel));
    ip("link set box0 up txqueuelen 5000");
    forward();
    let memories = Memories::default();
    tokio::spawn(run(device, acts, Arc::clone(&memories)));
    memories
}

async fn run(device: AsyncDevice, acts: BTreeMap<u16, Act>, memories: Memories) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let out = match timeout(HELD_LIFE, device.recv(&mut buffer)).await {
            Ok(len) => Segment::read(&buffer[..len.unwrap()]).map_or(vec![], |segment| {
                let mut memories = memories.lock().unwrap();
                let memory = memories.entry(segment.ports()).or_default();
                let is_ours = segment.is_from(segment.family().host);
                memory.syns += u32::from(is_ours && segment.is_syn() && !segment.is_ack());
                memory.offers += u32::from(is_ours && segment.is_syn() && segment.asks_for_streams());
                memory.ecn_syns += u32::from(segment.is_syn() && segment.asks_for_ecn());
                memory.ecn_packets += u32::from(segment.may_be_marked());
                let act = acts.get(&segment.ports().0.min(segment.ports().1));
                act.expect("each server's port has an act")(memory, segment)
            }),
            // Nothing has come for a while.
            Err(_) => memories
                .lock()
                .unwrap()
                .values_mut()
                .filter_map(|memory| memory.held.take())
                .map(|held| held.0)
                .collect(),
        };
        for segment in out {
            let family = segment.family();
            let ends = if segment.is_from(family.host) {
                [family.ours, family.kernel]
            } else {
                [family.kernel_for_ours, family.host]
            };
            device.send(&segment.between(ends)).await.unwrap();
        }
    }
}

impl Segment {
    fn family(&self) -> Family {
        let [v4, v6] = FAMILIES;
        if self.is_v6() { v6 } else { v4 }
    }
}

/// A segment is held back so long at most.
const HELD_LIFE: Duration = Duration::from_millis(2);
