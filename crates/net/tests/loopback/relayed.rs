//! Connections through a relay, on the loopback interface. Behind NATs they are tested in `crates/cli/tests/nat`.

use std::time::Duration;

use anabranch::{
    Admission, Code, CodeError, Config, ConnectError, Connection, Endpoint, PathState, PathStatus, Refusal, Relay,
    RelayConfig, RelayError, SecretKey, Ticket,
};

use crate::support::{between, soon, transfer, until};

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
    let (there, here) = between(&client, &server, &ticket).await;
    assert_eq!(there.remote_key(), server.public_key());
    transfer(&there, &here, 3_000_000, |_| {}).await;
    assert!(there.paths().len() == 1 && there.paths()[0].is_relayed());
    let closing = async { tokio::join!(there.close(), here.close()) };
    soon(closing).await.0.unwrap();
}

/// Two members and a stranger: what was forwarded is in the metrics of the relay, and what had no route; an endpoint that is no relay has no such metric.
#[cfg(feature = "prometheus")]
#[tokio::test]
async fn metrics_of_a_relay_count_what_it_forwards() {
    let relay = relay(RelayConfig::default());
    let (endpoint, ticket) = (relay.endpoint().clone(), relay.ticket());
    let _task = tokio::spawn(async move { relay.serve().await });
    let (server, client) = soon(ends(&ticket)).await;
    let through = only_through(&server.ticket());
    let (there, here) = between(&client, &server, &through).await;
    let value = |name: &str| {
        let text = endpoint.metrics_text();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("anabranch_{name} ")).map(str::to_owned));
        line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse::<u64>().unwrap()
    };
    let (datagrams, bytes) = (value("relay_datagrams_forwarded_total"), value("relay_bytes_forwarded_total"));
    assert!(datagrams >= 2 && bytes > 50 * datagrams, "a handshake: {datagrams}, {bytes}");
    assert_eq!(value("relay_datagrams_dropped_total{cause=\"rate\"}"), 0);
    assert_eq!(value("relay_datagrams_dropped_total{cause=\"route\"}"), 0);
    assert!(!server.metrics_text().contains("anabranch_relay"));
    drop((there, here));
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

async fn ends(relay: &Ticket) -> (Endpoint, Endpoint) {
    let server = soon(bound(Config::default()).with_relay(relay)).await.unwrap();
    (server, bound(Config::default()))
}

/// Both ends have the same address here, so a way around the relay is found at once, and the relay is not needed any more.
#[tokio::test]
async fn direct_path_takes_over_and_relay_is_a_backup() {
    let (relay, task) = served(RelayConfig::default());
    let (server, client) = ends(&relay).await;
    let ticket = only_through(&server.ticket());
    let (there, here) = between(&client, &server, &ticket).await;
    let is_direct = |connection: &Connection| {
        let direct = connection.paths().into_iter().any(|path| path.state == PathState::Live && !path.is_relayed());
        let backups = connection.paths().into_iter().filter(|path| path.is_relayed());
        direct && backups.map(|path| path.report.status).eq([PathStatus::Standby])
    };
    until(|| is_direct(&there) && is_direct(&here)).await;
    task.abort();
    let through_the_relay = || {
        let relayed = there.paths().into_iter().filter(anabranch::Path::is_relayed);
        relayed.map(|path| path.report.tally.sent).sum::<u64>()
    };
    let before = through_the_relay();
    transfer(&there, &here, 2_000_000, |_| {}).await;
    // Of some 1,400 segments. A busy machine lets a path of 100 us fall silent for some milliseconds, and then the backup carries a window.
    let more = through_the_relay() - before;
    assert!(more < 700, "{more} segments went through the relay");
}

/// A flood of members from one address: the relay takes so many, and those that are there go on.
#[tokio::test]
async fn flood_of_members_leaves_others_alone() {
    let (relay, _task) = served(RelayConfig { members_per_address: 6, ..RelayConfig::default() });
    let (server, client) = ends(&relay).await;
    let quick = Config { connect_timeout: Duration::from_secs(1), ..Config::default() };
    let mut joined = vec![];
    for _ in 0..12 {
        if let Ok(member) = soon(bound(quick.clone()).with_relay(&relay)).await {
            joined.push(member);
        }
    }
    assert_eq!(joined.len(), 5, "one is the server");
    joined.pop();
    let ticket = only_through(&server.ticket());
    // The place of the last one is free as soon as its connection has ended.
    soon(async {
        while client.connect(&ticket).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}

/// A member says things that no member says: it is cut off or ignored, and the relay serves others.
#[tokio::test]
async fn hostile_member_ends_nobody_else() {
    let (relay, _task) = served(RelayConfig::default());
    let (server, client) = ends(&relay).await;
    let hostile = bound(Config { paths: 1, ..Config::default() });
    for message in [vec![9; 100_000], vec![], vec![1, 99], vec![2; 10]] {
        let connection = soon(hostile.connect(&relay)).await.unwrap();
        _ = soon(connection.send_message(message.into())).await;
        assert!(soon(connection.closed()).await.is_err(), "it did not present itself");
    }
    let connection = soon(hostile.connect(&relay)).await.unwrap();
    connection.send_message(vec![1, 1].into()).await.unwrap();
    for message in [vec![99; 50], vec![3; 9], vec![6; 700], vec![5; 40], [&[2][..], &[0; 36], &[200]].concat()] {
        connection.send_message(message.into()).await.unwrap();
    }
    let ticket = only_through(&server.ticket());
    assert!(soon(client.connect(&ticket)).await.is_ok());
}

/// The same key joins again, as after a restart: the newer one is the member.
#[tokio::test]
async fn newer_member_of_a_key_replaces_the_older() {
    let (relay, _task) = served(RelayConfig::default());
    let key = SecretKey::generate().unwrap();
    let server = || Endpoint::server("127.0.0.1:0".parse().unwrap(), &key, Config::default()).unwrap();
    let _older = soon(server().with_relay(&relay)).await.unwrap();
    let newer = soon(server().with_relay(&relay)).await.unwrap();
    let ticket = only_through(&newer.ticket());
    let client = bound(Config::default());
    let (there, here) = soon(async { tokio::join!(client.connect(&ticket), newer.accept()) }).await;
    assert!(there.is_ok() && here.is_some());
}

#[tokio::test]
async fn relay_is_found_by_its_address() {
    let (relay, _task) = served(RelayConfig::default());
    assert_eq!(soon(Relay::find(relay.addresses())).await, Ok(relay));
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(soon(Relay::find(&[nobody])).await, Err(RelayError::NoAnswer(vec![nobody])));
}

/// Two ends that never met, and a code that one shows and the other types.
#[tokio::test]
async fn code_stands_for_a_ticket_once() {
    let (relay, _task) = served(RelayConfig::default());
    let (server, client) = (bound(Config::default()), bound(Config::default()));
    let offer = soon(client.offer_code(&relay)).await.unwrap();
    let code = offer.code().clone();
    assert!(code.to_string().starts_with("1-"), "the least number");
    let (ticket, redeemed) = soon(async { tokio::join!(offer.ticket(), server.redeem_code(&relay, &code)) }).await;
    let ticket = ticket.unwrap();
    assert_eq!((redeemed, ticket.key(), ticket.relay()), (Ok(()), server.public_key(), Some(&relay)));
    assert_eq!(soon(server.redeem_code(&relay, &code)).await, Err(CodeError::NotThere));
    let (there, here) = soon(async { tokio::join!(client.connect(&ticket), server.accept()) }).await;
    assert!(there.is_ok() && here.is_some());
}

/// Three wrong guesses end a code; two do not.
#[tokio::test]
async fn three_wrong_guesses_end_a_code() {
    let (relay, _task) = served(RelayConfig::default());
    let (offerer, guesser) = (bound(Config::default()), bound(Config::default()));
    for (guesses, ends) in [(2, false), (3, true)] {
        let offer = soon(offerer.offer_code(&relay)).await.unwrap();
        let code = offer.code().clone();
        let wrong: Code =
            if code.to_string().ends_with("-acorn-album") { "1-acorn-alley" } else { "1-acorn-album" }.parse().unwrap();
        let waiting = tokio::spawn(offer.ticket());
        for _ in 0..guesses {
            assert_eq!(soon(guesser.redeem_code(&relay, &wrong)).await, Err(CodeError::Wrong));
        }
        if ends {
            assert_eq!(soon(waiting).await.unwrap(), Err(CodeError::Guessed));
            assert_eq!(soon(guesser.redeem_code(&relay, &code)).await, Err(CodeError::NotThere));
        } else {
            assert_eq!(soon(guesser.redeem_code(&relay, &code)).await, Ok(()));
            assert_eq!(soon(waiting).await.unwrap().unwrap().key(), guesser.public_key());
        }
    }
}
