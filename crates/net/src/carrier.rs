//! Moves the datagrams of a carrier: from its outbox into a WebSocket, and from there to the endpoint.

use std::time::Duration;

use anabranch_proto::endpoint::Arrival;
use bytes::{Bytes, BytesMut};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::carriers::Carrier;
use crate::clock::Clock;
use crate::socket::Received;
use crate::websocket::{DATAGRAM_MAX, WebSocket};

/// Carries datagrams until either end closes, is idle or takes nothing, or does what is not allowed.
pub(crate) async fn run(carrier: &Carrier, clock: Clock, socket: WebSocket) {
    let (sink, stream) = socket.split();
    tokio::select! {
        () = read(carrier, clock, stream) => {}
        () = write(carrier, sink) => {}
    }
}

async fn read(carrier: &Carrier, clock: Clock, mut stream: impl Stream<Item = tungstenite::Result<Message>> + Unpin) {
    loop {
        match tokio::time::timeout(IDLE_MAX, stream.next()).await {
            Ok(Some(Ok(Message::Binary(bytes)))) if (1..=DATAGRAM_MAX).contains(&bytes.len()) => {
                let arrival = Arrival { at: clock.now(), tuple: carrier.tuple(), size: bytes.len(), ecn: None };
                let received = Received { arrival, datagrams: BytesMut::from(&bytes[..]), has_time: false };
                carrier.take(received).await;
            }
            // The library answers a ping.
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
            // A text, or no WebSocket at all: the other end is broken or hostile.
            Ok(_) | Err(_) => return,
        }
    }
}

async fn write(carrier: &Carrier, mut sink: impl Sink<Message> + Unpin) {
    let mut leaving: Vec<Bytes> = vec![];
    while carrier.outbox().next(&mut leaving).await {
        let sending = async {
            for datagram in leaving.drain(..) {
                sink.feed(Message::Binary(datagram)).await?;
            }
            sink.flush().await
        };
        if !matches!(tokio::time::timeout(STALLED_MAX, sending).await, Ok(Ok(()))) {
            return;
        }
    }
    _ = tokio::time::timeout(CLOSING_MAX, sink.close()).await;
}

/// Both ends of a membership ask for a sign of life every 10 s.
const IDLE_MAX: Duration = Duration::from_secs(45);

/// How long the other end may take nothing, and how long a close may take.
const STALLED_MAX: Duration = Duration::from_secs(30);
const CLOSING_MAX: Duration = Duration::from_secs(1);
