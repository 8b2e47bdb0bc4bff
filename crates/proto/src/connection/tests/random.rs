//! Random operations: whatever happens, each stream is delivered once, whole, in its order, and nothing stops for good.

use proptest::prelude::*;

use super::*;

/// What may happen to a pair.
#[derive(Clone, Debug)]
enum Operation {
    Open(Side),
    Write(Side, u8, u32),
    Finish(Side, u8),
    /// The application takes little, for a while.
    Read(Side, u8, u32),
    Stall(Side),
    Resume(Side),
    Fault(Side, u64, Fault),
    Wait(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

#[derive(Clone, Debug)]
struct Setup {
    streams: (u8, u8),
    receive_buffer: u64,
    send_buffer: u64,
    every: u32,
    law: usize,
    has_sack: bool,
    loss_detection: crate::LossDetection,
    timestamps: (bool, bool),
    nagle: bool,
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![3 => Just(Side::Client), 1 => Just(Side::Server)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let fault = prop_oneof![
        4 => Just(Fault::Lose),
        1 => Just(Fault::Duplicate),
        2 => (1..400u64).prop_map(|span| Fault::Delay(ms(span))),
    ];
    prop_oneof![
        2 => side().prop_map(Operation::Open),
        6 => (side(), 1..6u8, 1..60_000u32).prop_map(|(side, sid, bytes)| Operation::Write(side, sid, bytes)),
        2 => (side(), 1..6u8).prop_map(|(side, sid)| Operation::Finish(side, sid)),
        1 => (side(), 1..6u8, 1..3000u32).prop_map(|(side, sid, most)| Operation::Read(side, sid, most)),
        1 => side().prop_map(Operation::Stall),
        1 => side().prop_map(Operation::Resume),
        12 => (side(), 0..40u64, fault).prop_map(|(side, number, fault)| Operation::Fault(side, number, fault)),
        4 => (1..600u64).prop_map(Operation::Wait),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let streams = prop_oneof![1 => Just((0, 5)), 4 => (1..6u8, 1..6u8)];
    let detection = prop_oneof![Just(crate::LossDetection::Rack), Just(crate::LossDetection::DupAcks)];
    let has_sack = prop_oneof![3 => Just(true), 1 => Just(false)];
    (
        streams,
        2000..200_000u64,
        1..100_000u64,
        1..4u32,
        0..registry::rows().len(),
        (has_sack, detection),
        any::<(bool, bool, bool)>(),
    )
        .prop_map(
            |(streams, receive_buffer, send_buffer, every, law, (has_sack, loss_detection), (one, other, nagle))| {
                Setup {
                    streams,
                    receive_buffer,
                    send_buffer,
                    every,
                    law,
                    has_sack,
                    loss_detection,
                    timestamps: (one, other),
                    nagle,
                }
            },
        )
}

fn end(pair: &mut Pair, side: Side) -> &mut crate::testing::End {
    match side {
        Side::Client => &mut pair.client,
        Side::Server => &mut pair.server,
    }
}

fn apply(pair: &mut Pair, operation: Operation) {
    match operation {
        Operation::Open(side) => {
            // All may be in use.
            let _ = end(pair, side).connection.streams().open();
        }
        // To a stream that is not open nothing is written, and the application knows.
        Operation::Write(side, sid, bytes) => end(pair, side).write_now(Sid::new(sid), bytes),
        Operation::Finish(side, sid) => {
            let _ = end(pair, side).connection.streams().finish(Sid::new(sid));
        }
        Operation::Read(side, sid, most) => {
            end(pair, side).read_some(Sid::new(sid), most);
        }
        Operation::Stall(side) => end(pair, side).is_reading = false,
        Operation::Resume(side) => end(pair, side).is_reading = true,
        Operation::Fault(side, ahead, fault) => {
            let wire = if side == Side::Client { &mut pair.up } else { &mut pair.down };
            wire.faults.insert(wire.count + ahead, fault);
        }
        Operation::Wait(span) => pair.run_for(ms(span)),
    }
    pair.drain();
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
            send_buffer: setup.send_buffer,
            acks: crate::AckPolicy { every: setup.every, delay: ms(40) },
            // Sixty timeouts in a row are no reason to give up here.
            user_timeout: None,
            time_wait: ms(500),
            loss_detection: setup.loss_detection,
            nagle: setup.nagle,
            keep_alive: Some(crate::KeepAlive { idle: Span::from_secs(3), ..crate::KeepAlive::USUAL }),
            ..config()
        };
        let client = Config { streams: setup.streams.0, timestamps: setup.timestamps.0, ..base.clone() };
        let mut pair = Pair::with(client, Config { streams: setup.streams.1, timestamps: setup.timestamps.1, ..base });
        (pair.up.is_without_sack, pair.down.is_without_sack) = (!setup.has_sack, !setup.has_sack);
        // In plain TCP the end of the stream is a FIN, which has tests of its own.
        let is_plain = setup.streams.0 == 0;
        for operation in operations.into_iter().filter(|op| !(is_plain && matches!(op, Operation::Finish(..)))) {
            apply(&mut pair, operation);
        }
        // After the last fault everything arrives and both sides close. How long that takes is bounded by back-off.
        for side in [Side::Client, Side::Server] {
            let end = end(&mut pair, side);
            end.is_reading = true;
        }
        pair.up.faults.clear();
        pair.down.faults.clear();
        pair.run_for(Span::from_secs(400));
        prop_assert_eq!(pair.states(), (State::Established, State::Established));
        for sid in (1..=5).map(Sid::new) {
            prop_assert_eq!(pair.client.written(sid), pair.server.received(sid), "client to server, stream {}", sid);
            prop_assert_eq!(pair.server.written(sid), pair.client.received(sid), "server to client, stream {}", sid);
        }
        pair.client.connection.close();
        pair.run_for(Span::from_secs(10));
        prop_assert_eq!(pair.states(), (State::FinWait2, State::CloseWait));
        pair.server.connection.close();
        pair.run_for(Span::from_secs(10));
        prop_assert_eq!(pair.states(), (State::Closed, State::Closed));
    }
}
