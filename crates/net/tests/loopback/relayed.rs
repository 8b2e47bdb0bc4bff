//! Connections through a relay, on the loopback interface. Behind NATs they are tested in `crates/cli/tests/nat`.

use std::time::Duration;

use anabranch::{
    Admission, Config, ConnectError, Endpoint, Refusal, Relay, RelayConfig, RelayError, SecretKey, Ticket,
};

use crate::support::{pattern, soon};

fn relay(config: RelayConfig) -> Relay {
    Relay::bind("127.0.0.1:0".parse().unwrap(), &SecretKey::generate().unwrap(), config).unwrap()
}

fn served(config: RelayConfig) -> (Ticket, tokio::task::AbortHandle) {
    let relay = relay(config);
    let ticket = relay.ticket();
    (ticket, tokio::spawn(async move { relay.serve().await }).abort_handle())
}

/// An end with one path: it cannot leave the relay.
fn bound(config: Config) -> Endpoint {
    Endpoint::server("127.0.0.1:0".parse().unwrap(), &SecretKey::generate().unwrap(), config).unwrap()
}

/// A ticket with an address at which nobody is.
fn only_through(ticket: &Ticket) -> Ticket {
    let nobody = vec!["127.0.0.1:1".parse().unwrap()];
    Ticket::new(ticket.key(), nobody).unwrap().with_relay(ticket.relay().unwrap())
}

#[tokio::test]
async fn stream_through_a_relay_comes_whole() {
    let (relay, _task) = served(RelayConfig::default());
    let one_path = Config { paths: 1, ..Config::default() };
    let server = soon(bound(one_path.clone()).with_relay(&relay)).await.unwrap();
    assert_eq!(server.ticket().relay(), Some(&relay));
    let client = bound(one_path);
    let ticket = only_through(&server.ticket());
    let (there, here) = soon(async { tokio::join!(client.connect(&ticket), server.accept()) }).await;
    let (there, here) = (there.unwrap(), here.unwrap());
    assert_eq!(there.remote_key(), server.public_key());
    let len = 3_000_000;
    let sending = async {
        let mut stream = there.open_stream().await.unwrap();
        stream.write_all_bytes(pattern(1, 0, len)).await.unwrap();
        stream.finish().unwrap();
        assert_eq!(stream.stopped().await, Ok(None));
    };
    let receiving = async {
        let mut stream = here.accept_stream().await.unwrap();
        let all = stream.read_to_end(len).await.unwrap();
        assert_eq!(all, pattern(1, 0, len));
    };
    soon(async { tokio::join!(sending, receiving) }).await;
    assert!(there.paths().len() == 1 && there.paths()[0].is_relayed());
    let closing = async { tokio::join!(there.close(), here.close()) };
    soon(closing).await.0.unwrap();
}

/// The relay knows nobody of that key; and one that admits certain keys admits no other.
#[tokio::test]
async fn relay_says_who_is_not_there() {
    let (relay, _task) = served(RelayConfig::default());
    let (client, stranger) = (bound(Config::default()), SecretKey::generate().unwrap());
    let ticket = Ticket::new(stranger.public(), vec!["127.0.0.1:1".parse().unwrap()]).unwrap().with_relay(&relay);
    let quick = Config { connect_timeout: Duration::from_secs(2), ..Config::default() };
    let refused = soon(bound(quick.clone()).connect(&ticket)).await.unwrap_err();
    let ConnectError::Relay(_, why) = &refused else { panic!("{refused:?}") };
    assert_eq!(*why, RelayError::Refused(Refusal::NotThere));
    drop(client);
    let admission = Admission::Keys([stranger.public()].into());
    let (closed, _task) = served(RelayConfig { admission, ..RelayConfig::default() });
    let refused = soon(bound(quick).with_relay(&closed)).await.unwrap_err();
    assert!(matches!(&refused, ConnectError::Relay(_, RelayError::NoAnswer(_))), "{refused:?}");
}
