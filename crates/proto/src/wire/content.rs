//! Encodes and decodes stream headers and records.

use bytes::{Buf, Bytes};

use super::Fault;
use crate::segment::{Content, Flags, Record, RecordList, Sid, StreamHeader};
use crate::seq::Ssn;

/// The SID without its page, then the SSN.
pub(super) fn stream_header(header: StreamHeader) -> [u8; 4] {
    let (low, _) = header.sid.parts();
    (u32::from(low) << 24 | header.ssn.bits()).to_be_bytes()
}

impl StreamHeader {
    pub(super) fn from_bytes(bytes: [u8; 4]) -> Self {
        let number = u32::from_be_bytes(bytes);
        Self { sid: Sid::new(bytes[0].into()), ssn: Ssn::of(number.into()) }
    }
}

/// Kind, SID, a code of two bytes, a number of four. The page of the SID is above the SSN or, in a record without SSN, in the
/// code below the count of streams.
pub(super) fn record(record: Record) -> [u8; Record::LEN as usize] {
    let paged = |sid: Sid, ssn: Ssn| u32::from(sid.parts().1) << 24 | ssn.bits();
    let (kind, sid, code, number) = match record {
        Record::Finish { sid, end } => (FINISH, sid.parts().0, 0, paged(sid, end)),
        Record::Reset { sid, end, code } => (RESET, sid.parts().0, code, paged(sid, end)),
        Record::Stop { sid, expected, code } => (STOP, sid.parts().0, code, paged(sid, expected)),
        Record::MaxStreamData { sid, limit, over } => {
            (CREDIT, sid.parts().0, u16::from_be_bytes([over, sid.parts().1]), limit)
        }
        Record::AcknowledgeEach { every, delay } => (ACKNOWLEDGE_EACH, every, delay, 0),
    };
    let ([c, d], [n0, n1, n2, n3]) = (code.to_be_bytes(), number.to_be_bytes());
    [kind, sid, c, d, n0, n1, n2, n3]
}

/// Decodes the content of a segment whose SID is on this page. An error states its position in the content.
pub(super) fn decode(
    mut bytes: Bytes,
    flags: Flags,
    page: u8,
) -> Result<(Option<StreamHeader>, Content<Bytes>), (Fault, usize)> {
    if bytes.is_empty() {
        return Ok((None, Content::Nothing));
    }
    if !flags.contains(Flags::MSE) || flags.contains(Flags::SYN) {
        return Ok((None, Content::Data(bytes)));
    }
    let header = match bytes.first_chunk() {
        Some(header) => {
            let StreamHeader { sid, ssn } = StreamHeader::from_bytes(*header);
            StreamHeader { sid: sid.on_page(page), ssn }
        }
        None => return Err((Fault::StreamHeader, 0)),
    };
    bytes.advance(StreamHeader::LEN as usize);
    if header.sid == Sid::VOID {
        let is_bare = bytes.is_empty();
        return if is_bare {
            Ok((Some(header), Content::Nothing))
        } else {
            Err((Fault::Void, StreamHeader::LEN as usize))
        };
    }
    if bytes.is_empty() && header.sid != Sid::DATAGRAM {
        return Err((Fault::StreamHeader, 0));
    }
    let content = if header.sid == Sid::CONTROL {
        Content::Control(read_records(&bytes).map_err(|(fault, at)| (fault, StreamHeader::LEN as usize + at))?)
    } else {
        Content::Data(bytes)
    };
    Ok((Some(header), content))
}

fn read_records(bytes: &[u8]) -> Result<RecordList, (Fault, usize)> {
    let (records, []) = bytes.as_chunks::<{ Record::LEN as usize }>() else { return Err((Fault::RecordSize, 0)) };
    let mut list: Option<RecordList> = None;
    for (index, record) in records.iter().enumerate() {
        let record = read_record(record).map_err(|fault| (fault, index * Record::LEN as usize))?;
        match &mut list {
            None => list = Some(record.into()),
            Some(list) => list.push(record).map_err(|_| (Fault::RecordSize, 0))?,
        }
    }
    list.ok_or((Fault::RecordSize, 0))
}

fn read_record(&[kind, sid, c, d, ref value @ ..]: &[u8; Record::LEN as usize]) -> Result<Record, Fault> {
    let (low, code, number) = (sid, u16::from_be_bytes([c, d]), number(value));
    // The four bits above the page are reserved.
    let (sid, ssn) = (Sid::new(low.into()).on_page((number >> 24) as u8), Ssn::of(number.into()));
    match kind {
        FINISH => Ok(Record::Finish { sid, end: ssn }),
        RESET => Ok(Record::Reset { sid, end: ssn, code }),
        STOP => Ok(Record::Stop { sid, expected: ssn, code }),
        CREDIT => Ok(Record::MaxStreamData { sid: sid.on_page(d), limit: number, over: c }),
        ACKNOWLEDGE_EACH => Ok(Record::AcknowledgeEach { every: low, delay: code }),
        _ => Err(Fault::RecordKind(kind)),
    }
}

/// The first four bytes, which must exist.
pub(super) fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

const FINISH: u8 = 1;
const RESET: u8 = 2;
const STOP: u8 = 3;
const CREDIT: u8 = 4;
const ACKNOWLEDGE_EACH: u8 = 5;
