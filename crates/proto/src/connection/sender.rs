//! The sending half: what waits to be sent, what is on its way, and what the peer says has come of it.
//!
//! It knows our own sequence space, the streams as far as they send, and how much the peer takes. On which path something leaves, and when, is
//! the business of others.

use super::Path;
use super::paths::{AGE_MIN, Table};
use super::peer_window::PeerWindow;
use super::send_memory::{self, SendMemory};
use crate::config::{Config, Repair};
use crate::event::Events;
use crate::options::SackBlocks;
use crate::path::PathId;
use crate::payload::Payload;
use crate::recovery::scoreboard::{AckContext, Scoreboard};
use crate::segment::{Header, Record, RecordList, Segment, Sid, StreamHeader};
use crate::seq::{Offset, SeqNumber};
use crate::stream::flow_control::FlowControl;
use crate::stream::outbound::{Framing, Outbound};

/// What a peer is sent, at the end that it is from.
#[derive(Debug)]
pub(super) struct Sender<P> {
    /// Our first sequence number.
    initial: SeqNumber,
    pub(super) board: Scoreboard<Sent<P>>,
    pub(super) outbound: Outbound<P>,
    pub(super) peer_window: PeerWindow,
    memory: SendMemory,
}

/// What it takes to send a segment again.
#[derive(Clone, Debug)]
pub(super) struct Sent<P> {
    pub(super) stream_header: Option<StreamHeader>,
    /// What it carries, if that is data. Records are [kept elsewhere](crate::stream::records).
    pub(super) data: Option<P>,
    pub(super) is_fin: bool,
}

/// The blocks of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) blocks: [(Offset, Offset); SackBlocks::MAX],
    /// Whether the first one is what came twice.
    pub(super) is_twice: bool,
}

/// What the nonces of an acknowledgement say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    Given,
    Missing,
    False,
}

impl Report {
    /// Those that name what has come.
    pub(super) fn news(&self) -> impl Iterator<Item = &(Offset, Offset)> {
        self.blocks.iter().skip(usize::from(self.is_twice)).filter(|(left, right)| left < right)
    }
}

impl<P: Payload> Sender<P> {
    /// Nothing has been sent, and `initial` is our first sequence number.
    pub(super) fn new(initial: SeqNumber, config: &Config) -> Self {
        Self {
            initial,
            board: Scoreboard::new(1, 1),
            outbound: Outbound::new(Framing::Streams, 0, config.send_buffer, 0),
            peer_window: PeerWindow::new(),
            memory: SendMemory::new(config),
        }
    }

    /// Our first sequence number.
    pub(super) fn initial(&self) -> SeqNumber {
        self.initial
    }

    /// The number of a place.
    #[inline]
    pub(super) fn number(&self, place: Offset) -> SeqNumber {
        self.initial.plus(place)
    }

    /// The number of what leaves next.
    pub(super) fn next_number(&self) -> SeqNumber {
        self.initial.plus(self.board.next())
    }

    /// The place that an acknowledgement names; none if that is before our SYN.
    #[inline]
    pub(super) fn place(&self, ack: SeqNumber) -> Option<Offset> {
        ack.offset_from(self.initial, self.board.acked())
    }

    /// The place of a number of ours that has been sent.
    pub(super) fn place_sent(&self, number: SeqNumber) -> Offset {
        number.offset_from(self.initial, self.board.next()).unwrap_or(0)
    }

    /// How far behind what has been acknowledged an acknowledgement may be, on several paths or one.
    pub(super) fn ack_age_max(&self, has_paths: bool) -> u64 {
        if has_paths { self.peer_window.largest().max(AGE_MIN) } else { self.peer_window.largest() }
    }

    /// Whether an acknowledgement names what is or was in flight. [rfc-5961] sec. 5.2: "SND.UNA - MAX.SND.WND =< SEG.ACK =< SND.NXT".
    pub(super) fn is_near(&self, ack: SeqNumber, has_paths: bool) -> bool {
        let least = self.board.acked().saturating_sub(self.ack_age_max(has_paths));
        self.place(ack).is_some_and(|ack| (least..=self.board.next()).contains(&ack))
    }

    /// Whether more may be sent that is to be kept until it is acknowledged. `segment` is what windows count in.
    #[inline]
    pub(super) fn may_keep_more(&mut self, paths: &Table, segment: u32) -> bool {
        let Self { board, memory, .. } = self;
        board.len() < SEGMENTS_MAX && memory.admits(board.memory(), || board.front_transmissions(), paths, segment)
    }

    /// Whether there was no room for more of it, as it was found last.
    pub(super) fn keeps_all_it_may(&self) -> bool {
        let Self { board, memory, .. } = self;
        board.len() >= SEGMENTS_MAX || memory.was_full(board.memory(), || board.front_transmissions())
    }

    /// An application wrote more than may wait on a stream. Whether from now on more may, up to `max`.
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

    /// [rfc-9293] sec. 3.7.4: whether a segment is short, might still become longer, and something is unacknowledged.
    pub(super) fn waits_for_more(&self, space: u32, mss: u32) -> bool {
        !self.board.is_empty() && space < mss && self.outbound.may_grow()
    }

    /// The lost segment that a path sends next: one of its own, one that has no path any more, or one of a slower path.
    pub(super) fn next_lost(&mut self, path: PathId, paths: &Table, repair: Repair) -> Option<u64> {
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

    /// Enters what an acknowledgement reports below its number `ack`. Whether our FIN is part of it.
    #[inline]
    pub(super) fn on_cumulative(
        &mut self,
        ack: Offset,
        context: &AckContext,
        flow_control: &mut FlowControl,
        events: &mut Events,
    ) -> bool {
        let Self { board, outbound, .. } = self;
        let mut is_fin_acked = false;
        board.acknowledge(ack, context, |sent: Sent<P>| {
            is_fin_acked |= sent.is_fin;
            if sent.data.is_some() {
                return outbound.on_acked(sent.stream_header.map_or(Sid::PLAIN, |header| header.sid), events);
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

    /// Where the blocks are of an acknowledgement of everything below `ack`.
    pub(super) fn report(&self, ack: Offset, sack: &SackBlocks) -> Report {
        let place = |number: SeqNumber| number.offset_from(self.initial, ack);
        let mut blocks = [NOTHING; SackBlocks::MAX];
        for (block, (left, right)) in blocks.iter_mut().zip(sack.as_slice()) {
            *block = place(*left).zip(place(*right)).unwrap_or(NOTHING);
        }
        // [rfc-2883] sec. 4: the first block may report what came twice, below the acknowledgement or within the second.
        let [(left, right), (start, end), ..] = blocks;
        let is_twice = left < right && right <= self.board.next() && (right <= ack || start <= left && right <= end);
        Report { blocks, is_twice }
    }

    /// Whether an acknowledgement proves that what it names has come. Of what was overtaken some sums are known no more, and a segment with
    /// content has no room for that of its blocks: what those say is not taken, and no lie.
    #[inline]
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

    /// Whether an ACK of a peer that has no SACK answers a segment, and yet neither the acknowledgement number, which was `acked`, nor the window's
    /// edge, which was `edge`, nor anything else says so. What stands for something in sequence space is none ([rfc-5681] sec. 2), nor is an
    /// update of the window, unless it names a stream.
    pub(super) fn is_duplicate_ack(&self, acked: Offset, edge: Offset, segment: &Segment<P>) -> bool {
        let is_answer = edge == self.peer_window.edge() || segment.options.as_acknowledgement().expected().is_some();
        let is_silent = segment.space() == 0 && self.board.acked() == acked && !self.board.is_empty();
        is_silent && is_answer
    }
}

/// The lower of two segments, if there are two.
fn lower(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.min(other)).or(one).or(other)
}

/// A block in which there is nothing.
const NOTHING: (Offset, Offset) = (0, 0);

/// Segments that are not acknowledged cumulatively, at most: half of what a stream's 24 bits can tell apart. With segments of
/// 1460 bytes that is a window of 12 GB, more than TCP has.
const SEGMENTS_MAX: usize = 1 << 23;

#[cfg(test)]
mod tests {
    use anabranch_cc::{Departure, Settings, registry};
    use anabranch_units::Time;

    use super::*;
    use crate::options::{AcknowledgementOptions, Options};
    use crate::payload::Virtual;
    use crate::segment::Content;

    /// Our SYN has 7; so many segments of 100 bytes have left, with the nonces 1, 2, 3 and so on.
    fn sender(segments: u16) -> Sender<Virtual> {
        let law = Settings::default_for(registry::find("reno").unwrap());
        let mut sender = Sender::new(SeqNumber(7), &Config::new(law));
        for nonce in 1..=segments {
            let sent = Sent { stream_header: None, data: Some(Virtual(100)), is_fin: false };
            let departure = |flight: u64| Departure { time: Time::ZERO, window: 0.0, flight: flight as f64 };
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

    /// [rfc-5961] sec. 5.2; with several paths what is on a slow one may be older than a window.
    #[test]
    fn nobody_acknowledges_what_has_not_left_or_what_is_old() {
        let mut sender = sender(3);
        let is_near = |sender: &Sender<_>, place| sender.is_near(sender.number(place), false);
        assert!(is_near(&sender, 301) && !is_near(&sender, 302), "what has not left");
        let context = AckContext { now: Time::ZERO, via: PathId::FIRST, rtt_min: None, echo: None };
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

    /// The sum of everything below, and that of the blocks.
    #[test]
    fn only_who_has_the_segments_can_say_so() {
        let sender = sender(6);
        let report = sender.report(201, &blocks(&[(301, 501)]));
        let proof = |below, above| sender.proof(201, Some(&report), &ack(below, above));
        // The first two; the fourth and the fifth.
        assert_eq!(proof(1 + 2, 4 + 5), Proof::Given);
        assert_eq!(proof(1 + 2, 4), Proof::False);
        assert_eq!(proof(1, 4 + 5), Proof::False);
        let with_data = Segment { content: Content::Data(Virtual(1)), ..ack(3, 0) };
        assert_eq!(sender.proof(201, Some(&report), &with_data), Proof::Missing, "there is no room for both sums");
    }
}
