//! The SCTP header after the ports, and its chunks (RFC 4960, section 3). The sizes are ns-2's. Fields that ns-2 does not keep,
//! such as tags and cookies, are zero. User data is zero, too.

use anabranch_ns2::sctp::{Chunk, Data, Greeting, Heartbeat, Packet, Sack};

/// Appends at most `room` bytes of a packet.
pub(super) fn write(packet: &Packet, room: usize, out: &mut Vec<u8>) {
    let end = out.len() + room;
    // Verification tag and checksum.
    out.extend([0; 8]);
    for chunk in &packet.chunks {
        if out.len() >= end {
            break;
        }
        let start = out.len();
        append(chunk, out);
        out.resize(start + chunk.size() as usize, 0);
    }
    out.truncate(end);
}

fn append(chunk: &Chunk, out: &mut Vec<u8>) {
    let mut head = |kind: u8, flags: u8, length: u32| {
        out.extend([kind, flags]);
        out.extend((length as u16).to_be_bytes());
    };
    match chunk {
        Chunk::Data(data) => {
            head(0, WHOLE | if data.unordered { UNORDERED } else { 0 }, data.length);
            data_body(data, out);
        }
        Chunk::Init(greeting) => {
            head(1, 0, chunk.size());
            greeting_body(greeting, out);
        }
        Chunk::InitAck(greeting) => {
            head(2, 0, chunk.size());
            greeting_body(greeting, out);
        }
        Chunk::Sack(sack) => {
            head(3, sack.packets, chunk.size());
            sack_body(sack, out);
        }
        Chunk::Heartbeat(heartbeat) => {
            head(4, 0, chunk.size());
            heartbeat_body(heartbeat, out);
        }
        Chunk::HeartbeatAck(heartbeat) => {
            head(5, 0, chunk.size());
            heartbeat_body(heartbeat, out);
        }
        Chunk::CookieEcho => head(10, 0, chunk.size()),
        Chunk::CookieAck => head(11, 0, chunk.size()),
    }
}

fn data_body(data: &Data, out: &mut Vec<u8>) {
    out.extend(data.tsn.to_be_bytes());
    out.extend(data.stream.to_be_bytes());
    out.extend(data.ssn.to_be_bytes());
    out.extend([0; 4]);
}

/// Tag, window, outgoing and incoming streams, first TSN, and the empty parameter of unreliable streams.
fn greeting_body(greeting: &Greeting, out: &mut Vec<u8>) {
    out.extend([0; 4]);
    out.extend(greeting.window.to_be_bytes());
    out.extend(greeting.streams.to_be_bytes());
    out.extend(u16::MAX.to_be_bytes());
    out.extend(1_u32.to_be_bytes());
    out.extend([0xc0, 0, 0, 4]);
}

fn sack_body(sack: &Sack, out: &mut Vec<u8>) {
    out.extend(sack.cumulative.to_be_bytes());
    out.extend(sack.window.to_be_bytes());
    out.extend((sack.gaps.len() as u16).to_be_bytes());
    out.extend((sack.duplicates as u16).to_be_bytes());
    for &(first, last) in &sack.gaps {
        out.extend(first.to_be_bytes());
        out.extend(last.to_be_bytes());
    }
}

/// The one parameter: 20 bytes, of which 9 carry information.
fn heartbeat_body(heartbeat: &Heartbeat, out: &mut Vec<u8>) {
    out.extend([0, 1, 0, 20]);
    out.extend(heartbeat.sent_s.to_be_bytes());
    out.push(heartbeat.destination);
}

/// A chunk is a whole message: it is both its first and its last fragment.
const WHOLE: u8 = 0b011;
const UNORDERED: u8 = 0b100;

#[cfg(test)]
mod tests {
    use anabranch_units::SimTime;

    use super::*;

    /// Two chunks of 8 and 5 bytes of payload: the second starts on a multiple of four.
    #[test]
    fn bundled_chunks_are_padded() {
        let data = |tsn, length| {
            Chunk::Data(Data { tsn, stream: 3, ssn: 7, length, unordered: false, first_sent_at: SimTime::ZERO })
        };
        let packet = Packet { source: 0, chunks: vec![data(9, 21), data(10, 24)] };
        let mut out = vec![];
        write(&packet, 100, &mut out);
        assert_eq!(out.len(), 8 + 24 + 24);
        assert_eq!(out[8..16], [0, 3, 0, 21, 0, 0, 0, 9]);
        assert_eq!(out[32..40], [0, 3, 0, 24, 0, 0, 0, 10]);
    }
}
