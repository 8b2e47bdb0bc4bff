//! Two seals after the handshake.

use anabranch_proto::seal::{
    Answer, CipherPreference, Listener, ListenerConfig, Outgoing, Seal, SealConfig, SecretKey, Timestamp,
};
use anabranch_proto::{
    AcknowledgementOptions, Address, Content, Flags, FourTuple, HandshakeOptions, Header, Options, SackBlocks, Segment,
    Timestamps,
};
use anabranch_units::{Span, Time};
use bytes::{Bytes, BytesMut};

pub(crate) const PATH: FourTuple =
    FourTuple { local: Address { address: 1, port: 1 }, remote: Address { address: 2, port: 2 } };

pub(crate) fn outgoing() -> Outgoing {
    Outgoing { datagram_max: 1472, ..Outgoing::new(PATH) }
}

/// A segment whose datagram has `datagram` bytes of UDP payload, with timestamps and without a stream header.
pub(crate) fn segment(datagram: usize) -> Segment<Bytes> {
    let options = AcknowledgementOptions::new(SackBlocks::default(), None);
    let options = Options::Acknowledgement(options.with_timestamps(Timestamps { value: 1, echo: 2 }));
    let header = Header { flags: Flags::ACK, ..Header::default() };
    let around = 20 + 12 + Seal::OVERHEAD as usize;
    let content = match datagram - around {
        0 => Content::Nothing,
        len => Content::Data(Bytes::from(vec![7; len])),
    };
    Segment { header, options, stream_header: None, content }
}

/// Both ends of a connection with these ciphers. Each has proved that it has the keys.
pub(crate) fn pair(ciphers: CipherPreference) -> (Seal, Seal) {
    let now = Time::ZERO;
    let (ours, theirs) = (SecretKey::new([1; 32]), SecretKey::new([2; 32]));
    let config = SealConfig { ciphers, ..SealConfig::default() };
    let timestamp = Timestamp::since_1970(Span::ZERO);
    let mut client = Seal::initiator(ours, theirs.public(), 1, config, timestamp, [3; 32]);
    let mut listener =
        Listener::new(now, theirs, ListenerConfig { connection: config, ..ListenerConfig::default() }, [4; 32]);
    let syn = |flags| Segment {
        header: Header { flags, ..Header::default() },
        options: Options::Handshake(HandshakeOptions::default()),
        stream_header: None,
        content: Content::Nothing,
    };
    let mut out = vec![];
    client.seal(now, &outgoing(), &syn(Flags::SYN), &mut out).expect("it begins");
    let Ok(Answer::Accept { seal: mut server, .. }) = listener.handle(now, PATH.reversed(), &out, 2, &mut vec![])
    else {
        panic!("it is not accepted")
    };
    let back = Outgoing::new(PATH.reversed());
    out.clear();
    server.seal(now, &back, &syn(Flags::SYN | Flags::ACK), &mut out).expect("it answers");
    client.open(now, PATH, out[..].into()).expect("it is an answer");
    out.clear();
    client.seal(now, &outgoing(), &segment(64), &mut out).expect("there are keys");
    server.open(now, PATH.reversed(), out[..].into()).expect("it is sealed");
    (client, *server)
}

/// The datagrams in `out` as a driver reads them: concatenated, of one length, as parts of one buffer. The memory is reused as
/// long as no datagram is kept.
pub(crate) fn arrived(buffer: &mut BytesMut, out: &[u8]) -> BytesMut {
    buffer.clear();
    buffer.reserve(out.len());
    buffer.extend_from_slice(out);
    buffer.split()
}
