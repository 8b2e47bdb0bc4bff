//! What a subscriber of `tracing` receives.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anabranch::{Config, Endpoint, SecretKey};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{between, soon};

/// Records each event, with its own fields and those of its span.
#[derive(Clone, Default)]
struct Notes {
    spans: Arc<Mutex<Vec<String>>>,
    events: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicU64>,
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "anabranch"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(span.metadata().name().to_owned());
        span.record(&mut line);
        let mut spans = self.spans.lock().unwrap();
        spans.push(line.0);
        self.open.fetch_add(1, Ordering::Relaxed);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let span = event.parent().map_or(0, Id::into_u64);
        let mut line = Line(format!("{span} {}:", event.metadata().level()));
        event.record(&mut line);
        self.events.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn try_close(&self, _: Id) -> bool {
        self.open.fetch_sub(1, Ordering::Relaxed);
        true
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_connection_is_a_span_with_what_becomes_of_it() {
    let notes = Notes::default();
    let _guard = tracing::subscriber::set_default(notes.clone());
    // With only one subscriber, `tracing` caches the interest of the thread that first reaches an event; here that may be another
    // test's thread.
    let _second = tracing::Dispatch::new(Notes::default());
    let key = SecretKey::generate().unwrap();
    let name = key.public();
    let server = Endpoint::server("127.0.0.1:0".parse().unwrap(), &key, Config::default()).unwrap();
    let client = Endpoint::client(Config::default()).unwrap();
    let ticket = server.ticket();
    soon(async {
        let (here, there) = between(&client, &server, &ticket).await;
        let mut stream = here.open_stream().await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        stream.finish().unwrap();
        assert_eq!(there.accept_stream().await.unwrap().read_to_end(9).await.unwrap(), &b"hello"[..]);
        tokio::join!(here.close(), there.close()).0.unwrap();
        drop((here, there));
        tokio::join!(client.wait_idle(), server.wait_idle());
    })
    .await;
    let spans = notes.spans.lock().unwrap().clone();
    let [call, answer] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(*call, format!("connection side=\"client\" peer={name}"));
    assert!(answer.starts_with("connection side=\"server\" peer="), "{answer}");
    assert_eq!(notes.open.load(Ordering::Relaxed), 0, "a span ends with its connection");
    let events = notes.events.lock().unwrap().clone();
    let at = format!("remote={}", server.local_addresses()[0]);
    let of_call: Vec<_> = events.iter().filter_map(|event| event.strip_prefix("1 ")).collect();
    assert!(of_call[0].starts_with("INFO: message=calls local=127.0.0.1:") && of_call[0].ends_with(&at), "{of_call:?}");
    assert!(of_call[1].starts_with("INFO: message=established local=127.0.0.1:"), "{of_call:?}");
    assert!(of_call[1].ends_with(&format!("{at} streams=4080")), "{of_call:?}");
    for message in ["TRACE: message=stream delivered stream=1", "DEBUG: message=peer has closed", "INFO: message=over"]
    {
        assert!(of_call.contains(&message), "{message} is not in {of_call:?}");
    }
    assert!(events.iter().any(|event| event.starts_with("2 INFO: message=established")), "{events:?}");
}
