//! Two endpoints that exchange sealed datagrams as a kernel would deliver them: a copy into the receiver's buffer, in batches.

use anabranch_cc::{Settings, registry};
use anabranch_proto::endpoint::{Admission, Arrival, ConnectionId, Endpoint, EndpointConfig, ServerConfig, Shares};
use anabranch_proto::seal::{Cipher, CipherPreference, ListenerConfig, Seal, SealConfig, SecretKey, Timestamp};
use anabranch_proto::{Address, Config, Event, FourTuple, Read, Sid};
use anabranch_units::{Span, Time};
use bytes::{Bytes, BytesMut};

/// `client` sends bytes to `server` on each of the streams.
pub(crate) struct Sealed {
    now: Time,
    client: End,
    server: End,
    streams: Vec<Sid>,
    /// The data that is written, again and again.
    block: Bytes,
    read: u64,
}

struct End {
    endpoint: Endpoint,
    id: Option<ConnectionId>,
    tuple: FourTuple,
    /// Reused buffers: the datagrams sealed last, and the datagrams received last.
    out: Vec<u8>,
    inbox: BytesMut,
    readable: Vec<Sid>,
    writable: Vec<Sid>,
}

impl Sealed {
    /// At most one acknowledgement per `ack_requests` segments is requested.
    pub(crate) fn new(streams: u8, cipher: Cipher, ack_requests: u8) -> Self {
        let law = Settings::default_for(registry::find("reno").expect("it is there"));
        // So that a segment with its overhead fills a datagram that every path carries.
        let mss = 1200 - Seal::OVERHEAD as u16 - 20;
        let connection = Config {
            streams: streams.into(),
            mss,
            ack_requests,
            ack_interval: Span::ZERO,
            receive_buffer: 4 << 20,
            ..Config::new(law)
        };
        let seal = SealConfig { ciphers: CipherPreference::new(&[cipher]), ..SealConfig::default() };
        let listener = ListenerConfig { connection: seal, ..ListenerConfig::default() };
        let server = ServerConfig {
            listener,
            admission: Admission::Anyone,
            shares: Shares::default(),
            connection: connection.clone(),
        };
        let config = |server| EndpointConfig { connections_max: 1, seal, server };
        let [here, there] = [1, 2].map(|address| Address { address, port: 1 });
        let tuple = FourTuple { local: here, remote: there };
        let (secret, name) = (SecretKey::new([1; 32]), SecretKey::new([2; 32]));
        let server = End::new(Endpoint::new(Time::ZERO, name.clone(), config(Some(server)), [3; 32]), tuple.reversed());
        let mut client = End::new(Endpoint::new(Time::ZERO, secret, config(None), [4; 32]), tuple);
        let stamp = Timestamp::since_1970(Span::from_secs(1));
        let id = client.endpoint.connect(Time::ZERO, stamp, name.public(), tuple, connection);
        client.id = Some(id.expect("there is room"));
        let block = Bytes::from(vec![7; 1 << 16]);
        let mut sealed = Self { now: Time::ZERO, client, server, streams: vec![], block, read: 0 };
        while sealed.server.id.is_none() {
            sealed.step();
        }
        let mut opened = sealed.client.endpoint.connection(id.expect("it was")).expect("it is there").streams();
        sealed.streams = (0..streams).map(|_| opened.open().expect("as many as were wanted")).collect();
        sealed.client.writable.clone_from(&sealed.streams);
        sealed
    }

    /// Runs until `bytes` more bytes were read.
    pub(crate) fn run(&mut self, bytes: u64) {
        let goal = self.read + bytes;
        while self.read < goal {
            self.step();
        }
    }

    fn step(&mut self) {
        self.write();
        let read = &mut self.read;
        self.client.exchange(self.now, &mut self.server, |server| *read += server.read());
        self.server.exchange(self.now, &mut self.client, |_| ());
        self.now += Span::from_micros(100);
        for end in [&mut self.client, &mut self.server] {
            if end.endpoint.poll_timeout() <= self.now {
                end.endpoint.handle_timeout(self.now);
            }
        }
    }

    fn write(&mut self) {
        let Some(connection) = self.client.id.and_then(|id| self.client.endpoint.connection(id)) else { return };
        let mut streams = connection.streams();
        for sid in self.client.writable.drain(..) {
            loop {
                let mut block = self.block.clone();
                streams.write(sid, &mut block).expect("it is open");
                if !block.is_empty() {
                    break;
                }
            }
        }
    }
}

impl End {
    fn new(endpoint: Endpoint, tuple: FourTuple) -> Self {
        let (out, inbox) = (Vec::with_capacity(1 << 17), BytesMut::with_capacity(1 << 17));
        Self { endpoint, id: None, tuple, out, inbox, readable: vec![], writable: vec![] }
    }

    /// Reads all available data. Returns the number of bytes.
    fn read(&mut self) -> u64 {
        let Some(connection) = self.id.and_then(|id| self.endpoint.connection(id)) else { return 0 };
        let (mut streams, mut read) = (connection.streams(), 0);
        for sid in self.readable.drain(..) {
            while let Ok(Read::Data(data)) = streams.read(sid, u32::MAX) {
                read += data.len() as u64;
            }
        }
        read
    }

    /// Sends everything to the other end, in batches. After each batch the other end's application runs.
    fn exchange(&mut self, now: Time, other: &mut Self, mut then: impl FnMut(&mut Self)) {
        self.out.clear();
        while let Some(batch) = self.endpoint.poll_transmit(now, 64, &mut self.out) {
            other.inbox.extend_from_slice(&self.out);
            let arrival = Arrival { at: now, tuple: other.tuple, size: batch.size, ecn: batch.ecn };
            let datagrams = other.inbox.split();
            other.endpoint.handle_datagrams(now, &arrival, datagrams);
            self.out.clear();
            while let Some(told) = other.endpoint.poll_event() {
                match told.event {
                    Event::Established { .. } => other.id = Some(told.connection),
                    Event::Readable(sid) => other.readable.push(sid),
                    Event::Writable(sid) => other.writable.push(sid),
                    event => panic!("{event:?}"),
                }
            }
            then(other);
        }
        while let Some(told) = self.endpoint.poll_event() {
            if let Event::Writable(sid) = told.event {
                self.writable.push(sid);
            }
        }
    }
}
