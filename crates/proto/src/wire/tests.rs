//! Hand-made bytes, and round trips of all kinds of segments.

use proptest::prelude::*;

use super::*;
use crate::{
    AcknowledgementOptions, Address, EcnCounts, Features, HandshakeOptions, Multistream, Options, PathOption, Record,
    RecordList, SackBlocks, Sid, Ssn, StreamHeader, Timestamps,
};

const NO_PORTS: Ports = Ports { source: 0, target: 0 };

/// A header with these flags and options, followed by this content.
fn bytes(flags: u16, options: &[u8], content: &[u8]) -> Bytes {
    assert!(options.len().is_multiple_of(4), "a header has whole words");
    let mut bytes = vec![0; HEADER_LEN];
    let words = (HEADER_LEN + options.len()) as u16 / 4;
    bytes[12..14].copy_from_slice(&(words << 12 | flags).to_be_bytes());
    bytes.extend(options);
    bytes.extend(content);
    bytes.into()
}

#[track_caller]
fn decoded(bytes: Bytes) -> Segment<Bytes> {
    decode(bytes, Checksum::None).expect("it is a segment").1
}

#[track_caller]
fn refused(bytes: Bytes) -> (Fault, usize) {
    let error = decode(bytes, Checksum::None).expect_err("it is no segment");
    (error.fault, error.at)
}

const ACK: u16 = 0x010;
const SYN: u16 = 0x002;
const MSE: u16 = 0x200;

/// The SYN of Linux: MSS 1460, SACK permitted, timestamps, a NOP, and a window scale of 7.
#[test]
fn the_syn_of_a_common_system_is_understood() {
    let options = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 1, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7];
    let expected = HandshakeOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        multistream: None,
        timestamps: Some(Timestamps { value: 0x1_0000, echo: 0 }),
    };
    assert_eq!(decoded(bytes(SYN, &options, &[])).options, Options::Handshake(expected));
}

#[test]
fn unknown_options_and_those_of_other_experiments_are_skipped() {
    let options = [30, 4, 9, 9, 253, 8, b'X', b'Y', 1, 2, 3, 4, 253, 4, b'M', b'S', 253, 8, b'M', b'S', 3, 0, 1, 2];
    let segment = decoded(bytes(ACK, &options, &[]));
    let expected = Some(StreamHeader { sid: Sid::new(3), ssn: Ssn::of(258) });
    assert_eq!(segment.options, Options::Acknowledgement(AcknowledgementOptions::new(SackBlocks::default(), expected)));
}

#[test]
fn option_after_end_of_list_is_ignored() {
    assert_eq!(decoded(bytes(SYN, &[4, 2, 0, 2], &[])).options.handshake().mss, None);
    assert_eq!(decoded(bytes(SYN, &[1, 1, 1, 0, 99, 99, 99, 99], &[])).options, Options::Handshake(Default::default()));
}

#[test]
fn an_option_that_does_not_end_is_refused_where_it_stands() {
    assert_eq!(refused(bytes(ACK, &[1, 1, 8, 10], &[])), (Fault::OptionLength { kind: 8 }, 22));
    assert_eq!(refused(bytes(ACK, &[1, 1, 1, 8], &[])), (Fault::OptionLength { kind: 8 }, 23));
    assert_eq!(refused(bytes(ACK, &[77, 1, 1, 1], &[])), (Fault::OptionLength { kind: 77 }, 20));
    assert_eq!(refused(bytes(ACK, &[77, 0, 1, 1], &[])), (Fault::OptionLength { kind: 77 }, 20));
}

#[test]
fn an_option_of_the_wrong_size_is_refused() {
    assert_eq!(refused(bytes(SYN, &[2, 3, 5, 1], &[])), (Fault::OptionSize { kind: 2 }, 20));
    assert_eq!(refused(bytes(ACK, &[1, 5, 6, 0, 0, 0, 0, 1], &[])), (Fault::OptionSize { kind: 5 }, 21));
}

#[test]
fn a_header_must_be_whole() {
    assert_eq!(refused(Bytes::from_static(&[0; 19])), (Fault::HeaderTooShort, 19));
    assert_eq!(refused(Bytes::from_static(&[0; 20])), (Fault::DataOffset, 12));
    assert_eq!(refused(bytes(ACK, &[1; 8], &[]).slice(..24)), (Fault::DataOffset, 12));
}

#[test]
fn empty_blocks_and_a_fourth_are_not_taken() {
    let mut options = vec![1, 1, 5, 34];
    for (left, right) in [(5u32, 5u32), (9, 7), (10, 20), (30, 40)] {
        options.extend(left.to_be_bytes());
        options.extend(right.to_be_bytes());
    }
    let sack = decoded(bytes(ACK, &options, &[])).options.acknowledgement().sack();
    assert_eq!(sack.as_slice(), [(SeqNumber(10), SeqNumber(20)), (SeqNumber(30), SeqNumber(40))]);
}

#[test]
fn only_the_flag_makes_a_stream_header_of_the_first_bytes() {
    let content = [7, 0, 1, 0, b'x'];
    let plain = decoded(bytes(ACK, &[], &content));
    assert_eq!((plain.stream_header, plain.content), (None, Content::Data(Bytes::from_static(&[7, 0, 1, 0, b'x']))));
    let stream = decoded(bytes(ACK | MSE, &[], &content));
    assert_eq!(stream.stream_header, Some(StreamHeader { sid: Sid::new(7), ssn: Ssn::of(256) }));
    assert_eq!(stream.content, Content::Data(Bytes::from_static(b"x")));
    assert_eq!(decoded(bytes(SYN | MSE, &[], &content)).stream_header, None, "the flag of a SYN asks for streams only");
}

/// A stream header without anything after it would be an empty segment of its stream; an endless number of these would fit a
/// window.
#[test]
fn a_stream_header_alone_is_refused() {
    assert_eq!(refused(bytes(ACK | MSE, &[], &[7, 0, 0])), (Fault::StreamHeader, 20));
    assert_eq!(refused(bytes(ACK | MSE, &[1; 4], &[7, 0, 0, 0])), (Fault::StreamHeader, 24));
}

#[test]
fn records_have_eight_bytes_each_and_a_known_kind() {
    let segment = decoded(bytes(ACK | MSE, &[], &[0, 0, 0, 9, 2, 5, 0x12, 0x34, 0, 0, 1, 1]));
    let record = Record::Reset { sid: Sid::new(5), end: Ssn::of(257), code: 0x1234 };
    assert_eq!(segment.content, Content::Control(record.into()));
    assert_eq!(refused(bytes(ACK | MSE, &[], &[0, 0, 0, 9, 1, 5, 0, 0])), (Fault::RecordSize, 24));
    assert_eq!(refused(bytes(ACK | MSE, &[], &[0, 0, 0, 9, 1, 5, 0, 0, 0, 0, 0, 1, 0])), (Fault::RecordSize, 24));
    assert_eq!(refused(bytes(ACK | MSE, &[], &[0, 0, 0, 9, 9, 5, 0, 0, 0, 0, 0, 1])), (Fault::RecordKind(9), 24));
    let finish = |sid| [1, sid, 0, 0, 0, 0, 0, 1];
    let content = |count: u8| [&[0, 0, 0, 9][..], &(1..=count).map(finish).collect::<Vec<_>>().concat()].concat();
    let Content::Control(records) = decoded(bytes(ACK | MSE, &[], &content(4))).content else {
        panic!("four are records")
    };
    let sids: Vec<_> =
        records.iter().map(|record| matches!(record, Record::Finish { sid, .. } if sid.number() > 0)).collect();
    assert_eq!((sids, records.len()), (vec![true; 4], 4));
    assert_eq!(refused(bytes(ACK | MSE, &[], &content(5))), (Fault::RecordSize, 24));
    let mut unknown = content(3);
    unknown[12] = 9;
    assert_eq!(refused(bytes(ACK | MSE, &[], &unknown)), (Fault::RecordKind(9), 32));
}

/// [rfc-1071] sec. 3 works an example: the sum is ddf2.
#[test]
fn the_checksum_is_that_of_the_rfc() {
    let words = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(internet_checksum(&[&words]), !0xddf2);
    assert_eq!(internet_checksum(&[&words[..4], &words[4..7]]), !0xdcfb, "ddf2 less 00f7");
}

#[test]
fn a_path_tells_which_pseudo_header_it_has() {
    let end = |address| Address { address, port: 7 };
    let v4 = |last: u32| end(0xffff_c000_0200 + u128::from(last));
    let tuple = FourTuple { local: v4(1), remote: v4(2) };
    assert_eq!(Checksum::of_path(tuple), Checksum::V4([[192, 0, 2, 1], [192, 0, 2, 2]]));
    let mixed = FourTuple { local: end(1 << 100), ..tuple };
    assert!(matches!(Checksum::of_path(mixed), Checksum::V6(_)));
}

fn handshake() -> impl Strategy<Value = HandshakeOptions> {
    let multistream = any::<(u8, u8, u8, u8)>().prop_map(|(version, streams, features, credit)| Multistream {
        version,
        streams,
        features: Features(features),
        credit,
    });
    (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>(), prop::option::of(multistream), timestamps()).prop_map(
        |(mss, window_scale, sack_permitted, multistream, timestamps)| HandshakeOptions {
            mss,
            window_scale,
            sack_permitted,
            multistream,
            timestamps,
        },
    )
}

fn timestamps() -> impl Strategy<Value = Option<Timestamps>> {
    prop::option::of(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo }))
}

fn acknowledgement() -> impl Strategy<Value = AcknowledgementOptions> {
    let blocks = prop::collection::vec((any::<u32>(), 1..1u32 << 31), 0..4);
    let counts = any::<(u16, u16, u16)>().prop_map(|(ce, ect0, ect1)| EcnCounts { ce, ect0, ect1 });
    let more = (prop_oneof![Just(0), any::<u16>()], prop::option::of(counts));
    (blocks, prop::option::of(stream_header(0)), timestamps(), more).prop_map(
        |(blocks, expected, timestamps, (delay, counts))| {
            let mut sack = SackBlocks::default();
            for (left, len) in blocks {
                sack.push(SeqNumber(left), SeqNumber(left).plus(len.into()));
            }
            let options = AcknowledgementOptions::new(sack, expected)
                .with_delay(AcknowledgementOptions::DELAY_UNIT.saturating_mul(delay.into()));
            let options = counts.map_or(options, |counts| options.with_counts(counts));
            timestamps.map_or(options, |timestamps| options.with_timestamps(timestamps))
        },
    )
}

fn path() -> impl Strategy<Value = PathOption> {
    let token = any::<[u8; 8]>();
    prop_oneof![
        token.prop_map(PathOption::Challenge),
        token.prop_map(PathOption::Response),
        token.prop_map(PathOption::Leave)
    ]
}

fn stream_header(least: u8) -> impl Strategy<Value = StreamHeader> {
    (least..=255_u8, 0..Ssn::COUNT)
        .prop_map(|(sid, ssn)| StreamHeader { sid: Sid::new(sid.into()), ssn: Ssn::of(ssn.into()) })
}

fn record() -> impl Strategy<Value = Record> {
    (0..5, any::<u8>(), 0..Ssn::COUNT, any::<u16>(), any::<u32>()).prop_map(|(kind, sid, ssn, code, limit)| {
        let (every, sid, ssn) = (sid, Sid::new(sid.into()), Ssn::of(ssn.into()));
        match kind {
            4 => Record::AcknowledgeEach { every, delay: code },
            0 => Record::Finish { sid, end: ssn },
            1 => Record::Reset { sid, end: ssn, code },
            2 => Record::Stop { sid, expected: ssn, code },
            _ => Record::MaxStreamData { sid, limit, over: code as u8 },
        }
    })
}

impl Record {
    /// The same record about another stream.
    fn renamed(self, sid: Sid) -> Self {
        match self {
            Self::Finish { end, .. } => Self::Finish { sid, end },
            Self::Reset { end, code, .. } => Self::Reset { sid, end, code },
            Self::Stop { expected, code, .. } => Self::Stop { sid, expected, code },
            Self::MaxStreamData { limit, over, .. } => Self::MaxStreamData { sid, limit, over },
            Self::AcknowledgeEach { .. } => self,
        }
    }
}

fn records() -> impl Strategy<Value = RecordList> {
    prop::collection::vec(record(), 1..=RecordList::MAX).prop_map(|records| {
        let mut list = RecordList::from(records[0]);
        records[1..].iter().for_each(|record| list.push(*record).unwrap());
        list
    })
}

fn data() -> impl Strategy<Value = Content<Bytes>> {
    prop::collection::vec(any::<u8>(), 1..100).prop_map(|data| Content::Data(data.into()))
}

/// A segment as an engine may send it: a SYN has no stream header, and content has the header that it needs.
pub(crate) fn segment() -> impl Strategy<Value = Segment<Bytes>> {
    let nothing = Just((None, Content::Nothing));
    let syn = (
        handshake().prop_map(Options::Handshake),
        prop_oneof![nothing.clone(), data().prop_map(|data| (None, data))],
        Just(Flags::SYN),
    );
    let plain = (
        prop_oneof![
            acknowledgement().prop_map(Options::Acknowledgement),
            path().prop_map(Options::Path),
            Just(Options::default())
        ],
        prop_oneof![nothing.clone(), data().prop_map(|data| (None, data))],
        Just(Flags::ACK),
    );
    let control = stream_header(0).prop_map(|header| StreamHeader { sid: Sid::CONTROL, ..header });
    let streams = (
        prop_oneof![acknowledgement().prop_map(Options::Acknowledgement), Just(Options::default())],
        prop_oneof![
            nothing,
            (stream_header(1), data()).prop_map(|(header, data)| (Some(header), data)),
            (control, records()).prop_map(|(header, records)| (Some(header), Content::Control(records))),
        ],
        Just(Flags::ACK | Flags::MSE),
    );
    let numbers = any::<(u32, u32, u16, bool)>();
    (numbers, prop_oneof![syn, plain, streams]).prop_map(
        |((seq, ack, window, fin), (options, (stream_header, content), flags))| {
            let flags = if fin { flags | Flags::FIN } else { flags };
            let header = Header { seq: SeqNumber(seq), ack: SeqNumber(ack), flags, window, ..Header::default() };
            Segment { header, options, stream_header, content }
        },
    )
}

fn checksum() -> impl Strategy<Value = Checksum> {
    prop_oneof![
        Just(Checksum::None),
        any::<[[u8; 4]; 2]>().prop_map(Checksum::V4),
        any::<[[u8; 16]; 2]>().prop_map(Checksum::V6),
    ]
}

proptest! {
    #[test]
    fn a_segment_comes_back_as_it_was(
        mut segment in segment(),
        ports in any::<(u16, u16)>(),
        nonces in any::<(u16, u16)>(),
        checksum in checksum(),
    ) {
        let ports = if checksum == Checksum::None { NO_PORTS } else { Ports { source: ports.0, target: ports.1 } };
        if checksum == Checksum::None {
            (segment.header.nonce, segment.header.nonce_sum) = nonces;
        }
        let mut bytes = vec![];
        encode(&segment, ports, checksum, &mut bytes);
        prop_assert_eq!(bytes.len() as u32, segment.wire_size() - 20, "all but IP's header");
        prop_assert_eq!(decode(bytes.into(), checksum), Ok((ports, segment)));
    }

    /// The option says where the content began in the numbers of its sender, and the rest of the segment is as without it.
    #[test]
    fn an_extent_is_read_from_each_segment_with_content(
        segment in segment(),
        initial in any::<u32>(),
        addresses in any::<[[u8; 4]; 2]>(),
    ) {
        let (checksum, initial) = (Checksum::V4(addresses), SeqNumber(initial));
        prop_assume!(segment.options.len() + 12 <= 40);
        let (mut bare, mut bytes) = (vec![], vec![]);
        encode(&segment, NO_PORTS, checksum, &mut bare);
        encode_within(&segment, NO_PORTS, checksum, initial, &mut bytes);
        prop_assert_eq!(Extent::read(&bare), None);
        let len = bare.len() as u32 - 20 - segment.options.len();
        let start = segment.header.seq.0.wrapping_sub(initial.0) as u16;
        prop_assert_eq!(Extent::read(&bytes), (len > 0).then_some(Extent { start, len: len as u16 }));
        prop_assert_eq!(bytes.len() as u32 - bare.len() as u32, segment.options.space(len > 0) - segment.options.len());
        prop_assert_eq!(decode(bytes.into(), checksum), Ok((NO_PORTS, segment)));
    }

    #[test]
    fn no_bytes_make_the_extent_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        _ = Extent::read(&bytes);
    }

    /// In the sealed form, the page round-trips for the SID of data, of the acknowledged segment, and in records.
    #[test]
    fn a_name_with_a_page_comes_back(
        (name, about) in (1..=0xfff_u16, 0..=0xfff_u16),
        record in record(),
        ssn in 0..Ssn::COUNT,
        what in 0..3,
    ) {
        let header = Header { flags: Flags::ACK | Flags::MSE, ..Header::default() };
        let named = |sid| Some(StreamHeader { sid, ssn: Ssn::of(ssn.into()) });
        let (stream_header, content) = match what {
            0 if name == Sid::VOID.number() => (named(Sid::VOID), Content::Nothing),
            0 => (named(Sid::new(name)), Content::Data(Bytes::from_static(b"x"))),
            1 => (named(Sid::CONTROL), Content::Control(record.renamed(Sid::new(about)).into())),
            _ => (None, Content::Nothing),
        };
        let expected = named(Sid::new(name)).filter(|_| what == 2);
        let options = Options::Acknowledgement(AcknowledgementOptions::new(SackBlocks::default(), expected));
        let segment = Segment { header, options, stream_header, content };
        let mut bytes = vec![];
        encode(&segment, NO_PORTS, Checksum::None, &mut bytes);
        prop_assert_eq!(bytes.len() as u32, segment.wire_size() - 20);
        prop_assert_eq!(decode(bytes.into(), Checksum::None), Ok((NO_PORTS, segment)));
    }

    /// One's complement sums cannot distinguish 0000 from ffff, so the test inverts a single bit.
    #[test]
    fn no_bit_falls_unseen(segment in segment(), addresses in any::<[[u8; 4]; 2]>(), bit in any::<prop::sample::Index>()) {
        let checksum = Checksum::V4(addresses);
        let mut bytes = vec![];
        encode(&segment, NO_PORTS, checksum, &mut bytes);
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(decode(bytes.into(), checksum).is_err());
    }

    /// No bytes panic. Bytes that decode have a canonical form, which decodes to the same segment.
    #[test]
    fn any_bytes_are_a_segment_or_an_error(
        words in 5..16u8,
        flags in any::<u16>(),
        options in prop::collection::vec(prop_oneof![0..9u8, Just(253u8), Just(b'M'), Just(b'S'), any::<u8>()], 0..60),
        cut in 0..100usize,
    ) {
        let mut all = vec![0; 12];
        all.extend((u16::from(words) << 12 | flags & 0xfff).to_be_bytes());
        all.extend([0; 6]);
        all.extend(options);
        all.truncate(cut);
        if let Ok((ports, segment)) = decode(all.into(), Checksum::None) {
            let mut again = vec![];
            encode(&segment, ports, Checksum::None, &mut again);
            prop_assert_eq!(decode(again.into(), Checksum::None), Ok((ports, segment)));
        }
    }

    #[test]
    fn payload_is_shared_and_not_copied(len in 1..2000usize) {
        let whole = bytes(ACK, &[], &vec![9; len]);
        let Content::Data(data) = decoded(whole.clone()).content else { panic!("there is data") };
        prop_assert_eq!(data.as_ptr(), whole[HEADER_LEN..].as_ptr());
    }
}
