//! Random operations: each stream is delivered exactly once, completely and in order, and nothing stops for ever.

use proptest::prelude::*;

use super::*;
use crate::testing::End;
use crate::{Failover, PathStatus, Priority, Repair, Scheduling, StreamBuffer, Urgency};

/// An operation on a pair.
#[derive(Clone, Debug)]
enum Operation {
    Open(Side),
    Write(Side, u16, u32),
    Finish(Side, u16),
    Prioritise(Side, u16, Priority),
    Reset(Side, u16, u16),
    Stop(Side, u16, u16),
    /// For a while the application reads only little.
    Read(Side, u16, u32),
    Stall(Side),
    Resume(Side),
    /// The application does not read this stream.
    Neglect(Side, u16),
    Fault(Side, u64, Fault),
    /// A datagram of this length, which expires after so long.
    Datagram(Side, u32, u64),
    Wait(u64),
    /// Operations on paths, by their index among the existing ones.
    Join(Side, u64),
    Leave(Side, usize),
    Standby(Side, usize, bool),
    /// A link fails in one or both directions, or works again.
    Cut(usize, bool, bool),
    /// A fault of one segment on an added link.
    RouteFault(usize, Side, u64, Fault),
    /// The client's address on a path changes, as the server sees it.
    Rebind(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

#[derive(Clone, Debug)]
struct Setup {
    streams: (u16, u16),
    receive_buffer: u64,
    stream_buffer: StreamBuffer,
    send_buffer: u64,
    every: u32,
    law: usize,
    has_sack: bool,
    loss_detection: crate::LossDetection,
    timestamps: (bool, bool),
    nagle: bool,
    form: crate::Form,
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![3 => Just(Side::Client), 1 => Just(Side::Server)]
}

/// A delayed segment arrives after segments that were sent later.
fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::Lose),
        1 => Just(Fault::Duplicate),
        2 => (1..400u64).prop_map(|span| Fault::Delay(ms(span))),
        1 => any::<u32>().prop_map(Fault::Corrupt),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => side().prop_map(Operation::Open),
        6 => (side(), 1..6u16, 1..60_000u32).prop_map(|(side, sid, bytes)| Operation::Write(side, sid, bytes)),
        2 => (side(), 1..6u16).prop_map(|(side, sid)| Operation::Finish(side, sid)),
        1 => (side(), 1..6u16, 0..9u8, 0..5u8).prop_map(|(side, sid, level, weight)| {
            Operation::Prioritise(side, sid, Priority { level, weight })
        }),
        1 => (side(), 1..6u16, any::<u16>()).prop_map(|(side, sid, code)| Operation::Reset(side, sid, code)),
        1 => (side(), 1..6u16, any::<u16>()).prop_map(|(side, sid, code)| Operation::Stop(side, sid, code)),
        1 => (side(), 1..6u16, 1..3000u32).prop_map(|(side, sid, most)| Operation::Read(side, sid, most)),
        1 => side().prop_map(Operation::Stall),
        1 => side().prop_map(Operation::Resume),
        1 => (side(), 1..6u16).prop_map(|(side, sid)| Operation::Neglect(side, sid)),
        12 => (side(), 0..40u64, fault()).prop_map(|(side, number, fault)| Operation::Fault(side, number, fault)),
        3 => (side(), 0..1100u32, 0..300u64).prop_map(|(side, len, span)| Operation::Datagram(side, len, span)),
        4 => (1..600u64).prop_map(Operation::Wait),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let streams = prop_oneof![1 => Just((0, 5)), 4 => (1..6u16, 1..6u16)];
    let stream_buffer =
        prop_oneof![3 => Just(StreamBuffer::Shared), 1 => (1..200_000u64).prop_map(StreamBuffer::Bytes)];
    let buffers = (2000..200_000u64, stream_buffer, 1..100_000u64);
    let detection = prop_oneof![Just(crate::LossDetection::Rack), Just(crate::LossDetection::DupAcks)];
    let has_sack = prop_oneof![3 => Just(true), 1 => Just(false)];
    let options = any::<(bool, bool, bool, bool)>();
    (streams, buffers, 1..4u32, 0..registry::rows().len(), (has_sack, detection), options).prop_map(
        |(streams, (receive_buffer, stream_buffer, send_buffer), every, law, (has_sack, loss_detection), options)| {
            let (one, other, nagle, is_sealed) = options;
            let form = if is_sealed { crate::Form::Sealed } else { crate::Form::Tcp };
            Setup {
                streams,
                receive_buffer,
                stream_buffer,
                send_buffer,
                every,
                law,
                has_sack,
                loss_detection,
                timestamps: (one, other),
                nagle,
                form,
            }
        },
    )
}

fn end(pair: &mut Pair, side: Side) -> &mut End {
    match side {
        Side::Client => &mut pair.client,
        Side::Server => &mut pair.server,
    }
}

fn apply(pair: &mut Pair, operation: Operation) {
    match operation {
        Operation::Open(side) => {
            // All streams may be in use.
            let _ = end(pair, side).try_open();
        }
        // A write to a stream that is not open fails, and the application knows it.
        Operation::Write(side, sid, bytes) => end(pair, side).write_now(Sid::new(sid), bytes),
        Operation::Finish(side, sid) => {
            let _ = end(pair, side).finish(Sid::new(sid));
        }
        Operation::Prioritise(side, sid, priority) => {
            let _ = end(pair, side).connection.streams().set_priority(Sid::new(sid), priority);
        }
        Operation::Reset(side, sid, code) => {
            let _ = end(pair, side).reset(Sid::new(sid), code);
        }
        Operation::Stop(side, sid, code) => {
            let _ = end(pair, side).stop(Sid::new(sid), code);
        }
        Operation::Read(side, sid, most) => {
            end(pair, side).read_some(Sid::new(sid), most);
        }
        Operation::Stall(side) => end(pair, side).is_reading = false,
        Operation::Resume(side) => end(pair, side).is_reading = true,
        Operation::Neglect(side, sid) => {
            end(pair, side).neglected.insert(Sid::new(sid));
        }
        Operation::Fault(side, ahead, fault) => {
            let wire = if side == Side::Client { &mut pair.up } else { &mut pair.down };
            wire.faults.insert(wire.count + ahead, fault);
        }
        // Fails if it is too long, and where no datagrams were agreed on.
        Operation::Datagram(side, len, span) => {
            let now = pair.now;
            let urgency = if len % 2 == 0 { Urgency::Urgent } else { Urgency::Usual };
            let _ = end(pair, side).send_datagram_as(now, len, now + ms(span), urgency);
        }
        Operation::Wait(span) => pair.run_for(ms(span)),
        // Fails before the handshake, after a close and beyond the limit; the application gets an error.
        Operation::Join(side, delay) if pair.routes.len() < 6 => {
            let tuple = pair.route(ms(delay));
            let (now, tuple) = (pair.now, if side == Side::Client { tuple } else { tuple.reversed() });
            let _ = end(pair, side).connection.paths().add(now, tuple);
        }
        Operation::Join(..) => {}
        Operation::Leave(side, index) => {
            let now = pair.now;
            let mut paths = end(pair, side).connection.paths();
            let ids: Vec<_> = paths.ids().collect();
            let _ = paths.remove(now, ids[index % ids.len()]);
        }
        Operation::Standby(side, index, is_standby) => {
            let mut paths = end(pair, side).connection.paths();
            let ids: Vec<_> = paths.ids().collect();
            let status = if is_standby { PathStatus::Standby } else { PathStatus::Active };
            paths.set_status(ids[index % ids.len()], status);
        }
        Operation::Cut(index, up, down) => {
            let count = pair.routes.len() + 1;
            let (there, back) = match (index % count).checked_sub(1) {
                None => (&mut pair.up, &mut pair.down),
                Some(index) => {
                    let route = &mut pair.routes[index];
                    (&mut route.up, &mut route.down)
                }
            };
            (there.is_cut, back.is_cut) = (up, down);
        }
        Operation::RouteFault(index, side, ahead, fault) if !pair.routes.is_empty() => {
            let count = pair.routes.len();
            let route = &mut pair.routes[index % count];
            let wire = if side == Side::Client { &mut route.up } else { &mut route.down };
            wire.faults.insert(wire.count + ahead, fault);
        }
        Operation::RouteFault(..) => {}
        Operation::Rebind(index) => {
            pair.server.has_moved = true;
            let count = pair.routes.len() + 1;
            let tuple = match (index % count).checked_sub(1) {
                None => &mut pair.server.tuple,
                Some(index) => &mut pair.routes[index].server,
            };
            tuple.remote.port += 100;
        }
    }
    pair.drain();
    pair.client.connection.check();
    pair.server.connection.check();
}

fn path_operation() -> impl Strategy<Value = Operation> {
    let index = 0..6usize;
    prop_oneof![
        12 => operation(),
        3 => (side(), 1..200u64).prop_map(|(side, delay)| Operation::Join(side, delay)),
        1 => (side(), index.clone()).prop_map(|(side, index)| Operation::Leave(side, index)),
        1 => (side(), index.clone(), any::<bool>()).prop_map(|(side, index, is)| Operation::Standby(side, index, is)),
        3 => (index.clone(), any::<bool>(), any::<bool>()).prop_map(|(index, up, down)| Operation::Cut(index, up, down)),
        6 => (index.clone(), side(), 0..40u64, fault()).prop_map(|(index, side, ahead, fault)| Operation::RouteFault(index, side, ahead, fault)),
        1 => index.prop_map(Operation::Rebind),
    ]
}

/// Whether `reader` has received everything that `writer` wrote on streams that were neither reset nor stopped. Order and
/// uniqueness were checked when it arrived.
fn is_delivered(writer: &End, reader: &End) -> Result<(), TestCaseError> {
    let mut unread = reader.stopped_unread.clone();
    for (tag, story) in writer.stories.iter().enumerate().filter(|(_, story)| !story.is_reset && story.bytes > 0) {
        let read = reader.reading(story.sid).filter(|(reading, _)| *reading == tag as u32);
        let whole = reader.whole.iter().find(|(whole, _)| *whole == tag as u32).copied();
        let stopped = reader.stopped.contains(&(tag as u32));
        let expected = Some((tag as u32, story.bytes));
        if story.is_finished {
            let mut is_unread =
                || unread.iter().position(|sid| *sid == story.sid).map(|at| unread.remove(at)).is_some();
            prop_assert!(stopped || whole == expected || is_unread(), "{:?}: {:?}", story, whole);
        } else {
            prop_assert_eq!(read, expected, "{:?}", story);
        }
    }
    Ok(())
}

/// Everything is acknowledged: each datagram that was sent has arrived or is known to be missing, and none was read twice.
fn are_datagrams_accounted_for(writer: &End, reader: &End) -> Result<(), TestCaseError> {
    let (sent, arrived) = (writer.connection.datagram_stats(), reader.connection.datagram_stats());
    prop_assert_eq!(sent.sent, arrived.received + arrived.missed, "{:?}, {:?}", sent, arrived);
    prop_assert_eq!(sent.sent, sent.delivered + sent.lost, "{:?}", sent);
    prop_assert!(sent.delivered <= arrived.received, "{:?}, {:?}", sent, arrived);
    let mut numbers = reader.datagram_numbers();
    prop_assert_eq!(numbers.len() as u64, arrived.received - arrived.dropped_unread);
    numbers.sort_unstable();
    prop_assert!(numbers.is_sorted_by(|one, other| one < other), "{:?}", numbers);
    Ok(())
}

/// Long enough for every back-off after the last fault, and for one round trip per grant of credit: with a credit of one byte
/// that is one for each byte.
fn patience(pair: &Pair, stream_buffer: StreamBuffer) -> Span {
    let written: u64 =
        [&pair.client, &pair.server].into_iter().flat_map(|end| &end.stories).map(|story| story.bytes).sum();
    let rounds = match stream_buffer {
        StreamBuffer::Shared => 0,
        StreamBuffer::Bytes(bytes) => written / bytes,
    };
    Span::from_secs(400) + ms(200) * rounds
}

proptest! {
    #[test]
    fn every_stream_is_delivered_once_whole_and_in_order(
        setup in setup(),
        operations in prop::collection::vec(operation(), 1..80),
    ) {
        let row = &registry::rows()[setup.law];
        let base = Config {
            law: Settings::default_for(row),
            receive_buffer: setup.receive_buffer,
            stream_buffer: setup.stream_buffer,
            send_buffer: setup.send_buffer,
            acks: crate::AckPolicy { every: setup.every, delay: ms(40) },
            // Sixty timeouts in a row must not end the connection here.
            user_timeout: None,
            time_wait: ms(500),
            loss_detection: setup.loss_detection,
            nagle: setup.nagle,
            form: setup.form,
            keep_alive: Some(crate::KeepAlive { idle: Span::from_secs(3), ..crate::KeepAlive::USUAL }),
            ..config()
        };
        let client = Config { streams: setup.streams.0, timestamps: setup.timestamps.0, ..base.clone() };
        let mut pair = Pair::with(client, Config { streams: setup.streams.1, timestamps: setup.timestamps.1, ..base });
        if !setup.has_sack {
            (pair.up.middlebox, pair.down.middlebox) = (removes_sack, removes_sack);
        }
        // In plain TCP the end of the stream is a FIN, which has its own tests.
        let is_plain = setup.streams.0 == 0;
        for operation in operations.into_iter().filter(|op| !(is_plain && matches!(op, Operation::Finish(..)))) {
            apply(&mut pair, operation);
        }
        // After the last fault everything arrives, and both ends close. Back-off bounds how long that takes.
        for side in [Side::Client, Side::Server] {
            let end = end(&mut pair, side);
            end.is_reading = true;
            end.neglected.clear();
        }
        pair.up.faults.clear();
        pair.down.faults.clear();
        pair.run_for(patience(&pair, setup.stream_buffer));
        prop_assert_eq!(pair.states(), (State::Established, State::Established));
        is_delivered(&pair.client, &pair.server)?;
        is_delivered(&pair.server, &pair.client)?;
        are_datagrams_accounted_for(&pair.client, &pair.server)?;
        are_datagrams_accounted_for(&pair.server, &pair.client)?;
        pair.client.connection.close();
        pair.run_for(Span::from_secs(10));
        prop_assert_eq!(pair.states(), (State::FinWait2, State::CloseWait));
        pair.server.connection.close();
        pair.run_for(Span::from_secs(10));
        prop_assert_eq!(pair.states(), (State::Closed, State::Closed));
    }

    /// The same while paths are added and removed, fail and recover, and change their addresses. Data that was on a lost path is
    /// not lost.
    #[test]
    fn paths_take_nothing_with_them(
        setup in setup(),
        scheduling in 0..Scheduling::ALL.len(),
        repair in prop_oneof![Just(Repair::SamePath), Just(Repair::AnyPath)],
        failover in prop_oneof![3 => Just(Failover::OnSilence), 1 => Just(Failover::Never)],
        operations in prop::collection::vec(path_operation(), 1..100),
    ) {
        let base = Config {
            law: Settings::default_for(&registry::rows()[setup.law]),
            streams: 5,
            receive_buffer: setup.receive_buffer,
            stream_buffer: setup.stream_buffer,
            send_buffer: setup.send_buffer,
            acks: crate::AckPolicy { every: setup.every, delay: ms(40) },
            user_timeout: None,
            loss_detection: setup.loss_detection,
            nagle: setup.nagle,
            form: setup.form,
            timestamps: setup.timestamps.0,
            // A server cannot find a client that has moved and sends nothing.
            keep_alive: Some(crate::KeepAlive { idle: Span::from_secs(3), ..crate::KeepAlive::USUAL }),
            time_wait: ms(500),
            paths_max: 4,
            scheduling: Scheduling::ALL[scheduling],
            repair,
            failover,
            ..config()
        };
        let mut pair = Pair::established(base.clone(), base);
        // Without failover, data in flight to an address that is no longer valid waits for ever.
        let may_wait = failover == Failover::Never;
        for operation in operations.into_iter().filter(|op| !(may_wait && matches!(op, Operation::Rebind(_)))) {
            apply(&mut pair, operation);
        }
        pair.heal();
        pair.run_for(patience(&pair, setup.stream_buffer));
        prop_assert_eq!(pair.states(), (State::Established, State::Established));
        is_delivered(&pair.client, &pair.server)?;
        is_delivered(&pair.server, &pair.client)?;
        are_datagrams_accounted_for(&pair.client, &pair.server)?;
        are_datagrams_accounted_for(&pair.server, &pair.client)?;
        pair.client.connection.close();
        pair.run_for(Span::from_secs(20));
        pair.server.connection.close();
        pair.run_for(Span::from_secs(20));
        prop_assert_eq!(pair.states(), (State::Closed, State::Closed), "{}", pair.describe());
    }
}
