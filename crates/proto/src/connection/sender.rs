//! The sending half: data that waits to be sent, and data in flight.
//!
//! It knows our sequence space, the sending streams and the peer's window. The path and time of sending are decided elsewhere.

use super::Path;
use super::paths::{AGE_MIN, Table};
use super::peer_window::PeerWindow;
use super::send_memory::{self, SendMemory};
use crate::config::{Config, Repair};
use crate::datagrams::Outgoing;
use crate::event::Events;
use crate::options::SackBlocks;
use crate::path::PathId;
use crate::payload::Payload;
use crate::recovery::scoreboard::{AckContext, Scoreboard};
use crate::segment::{Header, Record, RecordList, Segment, Sid, StreamHeader};
use crate::seq::{Offset, SeqNumber};
use crate::stream::flow_control::FlowControl;
use crate::stream::outbound::{Framing, Outbound};

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender<P> {
    /// Our initial sequence number.
    initial: SeqNumber,
    pub(super) board: Scoreboard<Sent<P>>,
    pub(super) outbound: Outbound<P>,
    pub(super) datagrams: Outgoing<P>,
    pub(super) peer_window: PeerWindow,
    memory: SendMemory,
}

/// What a retransmission needs to know of a sent segment.
#[derive(Clone, Debug)]
pub(super) struct Sent<P> {
    /// That of a datagram has its length in place of the SSN. When a void is sent for it, it becomes that of the void.
    pub(super) stream_header: Option<StreamHeader>,
    /// Its data, if any. Records are [kept elsewhere](crate::stream::records), and datagrams are not kept.
    pub(super) data: Option<P>,
    pub(super) is_fin: bool,
}

/// The SACK blocks of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) blocks: [(Offset, Offset); SackBlocks::MAX],
    /// Whether the first block reports a duplicate segment (DSACK).
    pub(super) is_twice: bool,
}

/// Whether the nonces of an acknowledgement prove that its segments arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    Given,
    Missing,
    False,
}

impl Report {
    /// Puts the blocks that report arrivals in the order of sending, in which the scoreboard holds what another path has delivered.
    /// What comes out of that order cannot be held: it would be released at once, in a burst.
    pub(super) fn sort(&mut self) {
        self.blocks[usize::from(self.is_twice)..].sort_unstable();
    }

    /// The blocks that report arrivals, that is, all but a DSACK.
    pub(super) fn news(&self) -> impl Iterator<Item = &(Offset, Offset)> {
        self.blocks.iter().skip(usize::from(self.is_twice)).filter(|(left, right)| left < right)
    }
}

impl<P: Payload> Sender<P> {
    /// A sender that has sent nothing; `initial` is our initial sequence number.
    pub(super) fn new(initial: SeqNumber, config: &Config) -> Self {
        Self {
            initial,
            board: Scoreboard::new(1, 1),
            outbound: Outbound::new(Framing::Streams, 0, config.send_buffer, 0),
            datagrams: Outgoing::new(config.datagram_send_buffer),
            peer_window: PeerWindow::new(),
            memory: SendMemory::new(config),
        }
    }

    /// Our initial sequence number.
    pub(super) fn initial(&self) -> SeqNumber {
        self.initial
    }

    /// The sequence number of an offset.
    pub(super) fn number(&self, place: Offset) -> SeqNumber {
        self.initial.plus(place)
    }

    /// The sequence number of the next segment.
    pub(super) fn next_number(&self) -> SeqNumber {
        self.initial.plus(self.board.next())
    }

    /// The offset of an acknowledgement number; `None` if it is before our SYN.
    pub(super) fn place(&self, ack: SeqNumber) -> Option<Offset> {
        ack.offset_from(self.initial, self.board.acked())
    }

    /// The offset of a sequence number that we have sent.
    pub(super) fn place_sent(&self, number: SeqNumber) -> Offset {
        number.offset_from(self.initial, self.board.next()).unwrap_or(0)
    }

    /// How far below the acknowledged offset an acknowledgement number may be, with several paths or with one.
    pub(super) fn ack_age_max(&self, has_paths: bool) -> u64 {
        if has_paths { self.peer_window.largest().max(AGE_MIN) } else { self.peer_window.largest() }
    }

    /// Whether an acknowledgement number is of data that is or was in flight. [rfc-5961] sec. 5.2: "SND.UNA - MAX.SND.WND =<
    /// SEG.ACK =< SND.NXT".
    pub(super) fn is_near(&self, ack: SeqNumber, has_paths: bool) -> bool {
        let least = self.board.acked().saturating_sub(self.ack_age_max(has_paths));
        self.place(ack).is_some_and(|ack| (least..=self.board.next()).contains(&ack))
    }

    /// Whether the memory limit allows more unacknowledged data. `segment` is the unit of windows in bytes.
    pub(super) fn may_keep_more(&mut self, paths: &Table, segment: u32) -> bool {
        let Self { board, memory, .. } = self;
        board.len() < SEGMENTS_MAX && memory.admits(board.kept(), || board.front_transmissions(), paths, segment)
    }

    /// An application wrote more than may wait on a stream. Raises that limit, up to `max`, and returns whether it rose.
    pub(super) fn tune_buffer(&mut self, paths: &Table, max: u64) -> bool {
        let limit = self.outbound.limit();
        if limit >= max {
            return false;
        }
        let wanted = send_memory::carried_asleep(paths).min(max);
        if wanted > limit {
            self.outbound.set_limit(wanted);
        }
        wanted > limit
    }

    /// Nagle's algorithm ([rfc-9293] sec. 3.7.4): whether a short segment waits for more data while data is unacknowledged.
    pub(super) fn waits_for_more(&self, space: u32, mss: u32) -> bool {
        !self.board.is_empty() && space < mss && self.outbound.may_grow()
    }

    /// The next segment of those sent that leaves on a path: a lost one, or else a copy that is owed there.
    pub(super) fn next_lost(&mut self, path: PathId, paths: &Table, repair: Repair) -> Option<u64> {
        self.next_repair(path, paths, repair).or_else(|| self.board.lowest_owed(path))
    }

    /// The next lost segment that a path retransmits: one of its own, one without a path, or one of a slower path.
    fn next_repair(&mut self, path: PathId, paths: &Table, repair: Repair) -> Option<u64> {
        let own = self.board.lowest_lost(path);
        let has_orphan = self.board.has_orphans() && paths.usable().contains(path);
        let mut lost = lower(own, if has_orphan { self.board.lowest_lost(PathId::NOWHERE) } else { None });
        if repair == Repair::SamePath || !paths.has_several() {
            return lost;
        }
        let rtt = |id: PathId| paths[id].control.rtt_smoothed().unwrap_or(anabranch_units::Span::MAX);
        for index in (0..paths.slots()).filter(|&index| index != path.index()) {
            let other = PathId::new(index);
            if paths.get(other).is_some_and(Path::is_live) && rtt(other) > rtt(path) {
                lost = lower(lost, self.board.lowest_lost(other));
            }
        }
        lost
    }

    /// Processes a cumulative acknowledgement of everything below `ack`. Returns whether it covers our FIN.
    pub(super) fn on_cumulative(
        &mut self,
        ack: Offset,
        context: &AckContext,
        flow_control: &mut FlowControl,
        events: &mut Events,
    ) -> bool {
        let Self { board, outbound, datagrams, .. } = self;
        let mut is_fin_acked = false;
        board.acknowledge(ack, context, |sent: Sent<P>| {
            is_fin_acked |= sent.is_fin;
            if sent.data.is_some() {
                return outbound.on_acked(sent.stream_header.map_or(Sid::PLAIN, |header| header.sid), events);
            }
            if let Some(is_delivered) = sent.is_datagram_delivered() {
                if is_delivered {
                    datagrams.on_delivered(sent.is_large_datagram());
                }
                return;
            }
            let records = if sent.is_fin { None } else { outbound.records.on_acked() };
            records.iter().flat_map(RecordList::iter).for_each(|record| match record {
                Record::Finish { sid, .. } | Record::Reset { sid, .. } => outbound.on_acked(sid, events),
                Record::MaxStreamData { sid, limit, .. } => {
                    if let Some(record) = flow_control.on_acked(sid, limit) {
                        outbound.records.push(record);
                    }
                }
                Record::Stop { .. } | Record::AcknowledgeEach { .. } => {}
            });
        });
        is_fin_acked
    }

    /// The SACK blocks of an acknowledgement of everything below `ack`.
    pub(super) fn report(&self, ack: Offset, sack: &SackBlocks) -> Report {
        let place = |number: SeqNumber| number.offset_from(self.initial, ack);
        let mut blocks = [NOTHING; SackBlocks::MAX];
        for (block, (left, right)) in blocks.iter_mut().zip(sack.as_slice()) {
            *block = place(*left).zip(place(*right)).unwrap_or(NOTHING);
        }
        // [rfc-2883] sec. 4: the first block may report a duplicate, below the acknowledgement or within the second block.
        let [(left, right), (start, end), ..] = blocks;
        let is_twice = left < right && right <= self.board.next() && (right <= ack || start <= left && right <= end);
        Report { blocks, is_twice }
    }

    /// Whether the nonces prove the acknowledgement and its blocks. The sums for overtaken acknowledgements are no longer known,
    /// and a segment with content has no room for the sum of its blocks. Such blocks are ignored, but do not count as false.
    pub(super) fn proof(&self, ack: Offset, report: Option<&Report>, segment: &Segment<P>) -> Proof {
        let Header { nonce, nonce_sum, .. } = segment.header;
        if self.board.nonces_below(ack).is_some_and(|sum| sum != nonce_sum) {
            return Proof::False;
        }
        if segment.space() > 0 {
            return Proof::Missing;
        }
        let mut sum = 0u16;
        for &(left, right) in report.into_iter().flat_map(Report::news) {
            let Some(nonces) = self.board.nonces_within(left, right) else { return Proof::Missing };
            sum = sum.wrapping_add(nonces);
        }
        if sum == nonce { Proof::Given } else { Proof::False }
    }

    /// Whether an ACK of a peer without SACK is a duplicate ACK: it answers a segment, and neither the acknowledgement number
    /// (before: `acked`) nor the window's right edge (before: `edge`) has moved. A segment with sequence space is no duplicate
    /// ACK ([rfc-5681] sec. 2). Neither is a window update, unless it names a stream.
    pub(super) fn is_duplicate_ack(&self, acked: Offset, edge: Offset, segment: &Segment<P>) -> bool {
        let is_answer = edge == self.peer_window.edge() || segment.options.as_acknowledgement().expected().is_some();
        let is_silent = segment.space() == 0 && self.board.acked() == acked && !self.board.is_empty();
        is_silent && is_answer
    }
}

/// The lower one of two segments, or the only one.
fn lower(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.min(other)).or(one).or(other)
}

/// An empty block.
const NOTHING: (Offset, Offset) = (0, 0);

/// The largest number of segments above the cumulative acknowledgement: half of the range of a 24-bit SSN. With segments of 1460
/// bytes that is a window of 12 GB, more than TCP's largest.
const SEGMENTS_MAX: usize = 1 << 23;

#[cfg(test)]
mod tests {
    use anabranch_cc::{Departure, Settings, registry};
    use anabranch_units::Time;

    use super::*;
    use crate::options::{AcknowledgementOptions, Options};
    use crate::payload::Virtual;
    use crate::segment::Content;

    /// Our SYN has number 7; `segments` segments of 100 bytes were sent, with the nonces 1, 2, 3 and so on.
    fn sender(segments: u16) -> Sender<Virtual> {
        let law = Settings::default_for(registry::find("reno").unwrap());
        let mut sender = Sender::new(SeqNumber(7), &Config::new(law));
        for nonce in 1..=segments {
            let sent = Sent { stream_header: None, data: Some(Virtual(100)), is_fin: false };
            let departure = |flight: u64| Departure { flight: flight as f64, ..Departure::default() };
            sender.board.send(sent, (100, nonce), PathId::FIRST, departure);
        }
        sender
    }

    fn blocks(places: &[(Offset, Offset)]) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        places.iter().for_each(|(left, right)| {
            blocks.push(SeqNumber(7).plus(*left), SeqNumber(7).plus(*right));
        });
        blocks
    }

    /// An ACK without content, with these nonces.
    fn ack(nonce_sum: u16, nonce: u16) -> Segment<Virtual> {
        let options = Options::Acknowledgement(AcknowledgementOptions::default());
        let header = Header { nonce, nonce_sum, ..Header::default() };
        Segment { header, options, stream_header: None, content: Content::Nothing }
    }

    #[test]
    fn places_count_from_the_syn() {
        let sender = sender(3);
        assert_eq!((sender.number(1), sender.next_number()), (SeqNumber(8), SeqNumber(308)));
        assert_eq!((sender.place(SeqNumber(108)), sender.place_sent(SeqNumber(108))), (Some(101), 101));
    }

    /// [rfc-5961] sec. 5.2. With several paths, an acknowledgement may be older than a window.
    #[test]
    fn ack_of_unsent_or_old_data_is_ignored() {
        let mut sender = sender(3);
        let is_near = |sender: &Sender<_>, place| sender.is_near(sender.number(place), false);
        assert!(is_near(&sender, 301) && !is_near(&sender, 302), "what has not left");
        let context = AckContext { now: Time::ZERO, via: PathId::FIRST, rtt_min: None, echo: None, is_answer: true };
        sender.board.acknowledge(201, &context, |_| ());
        assert!(is_near(&sender, 201) && !is_near(&sender, 200), "the peer has never said a window");
        assert!(sender.is_near(sender.number(200), true));
    }

    /// [rfc-2883] sec. 4.
    #[test]
    fn the_first_block_may_be_what_came_twice() {
        let sender = sender(6);
        let news = |ack, places: &[_]| {
            let report = sender.report(ack, &blocks(places));
            (report.is_twice, report.news().copied().collect::<Vec<_>>())
        };
        assert_eq!(news(101, &[(201, 301)]), (false, vec![(201, 301)]));
        assert_eq!(news(301, &[(101, 201)]), (true, vec![]), "below the acknowledgement");
        assert_eq!(news(101, &[(201, 301), (201, 401)]), (true, vec![(201, 401)]), "within the second");
        assert_eq!(news(101, &[(501, 601), (201, 301)]), (false, vec![(501, 601), (201, 301)]));
    }

    /// The nonce sum of everything below, and that of the blocks.
    #[test]
    fn only_who_has_the_segments_can_say_so() {
        let sender = sender(6);
        let report = sender.report(201, &blocks(&[(301, 501)]));
        let proof = |below, above| sender.proof(201, Some(&report), &ack(below, above));
        // The first two segments; the fourth and the fifth.
        assert_eq!(proof(1 + 2, 4 + 5), Proof::Given);
        assert_eq!(proof(1 + 2, 4), Proof::False);
        assert_eq!(proof(1, 4 + 5), Proof::False);
        let with_data = Segment { content: Content::Data(Virtual(1)), ..ack(3, 0) };
        assert_eq!(sender.proof(201, Some(&report), &with_data), Proof::Missing, "there is no room for both sums");
    }
}
