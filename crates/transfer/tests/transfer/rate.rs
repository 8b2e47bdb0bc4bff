//! A receiver that asks for a rate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch::units::Rate;
use anabranch::{Admission, Config};
use anabranch_transfer::{Existing, Progress, Receiver, SendError, send};

use crate::support::{Folder, Pair, bind, noise, pair, parcel};

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

/// Half a megabyte takes at least a second at 4 Mbit/s, and two at 2 Mbit/s: the lower limit of the two ends counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sender_keeps_the_lower_of_both_rates() {
    for (own, asked, seconds) in
        [(None, "4Mbit/s", 1), (Some("4Mbit/s"), "2Mbit/s", 2), (Some("2Mbit/s"), "4Mbit/s", 2)]
    {
        let (from, to) = (Folder::new(), Folder::new());
        let file = from.file("f", &noise(1, 500_000));
        let server = bind(Config::default().admit(Admission::Ticket));
        let client = bind(Config { rate_max: own.map(rate), ..Config::default() });
        let ticket = server.ticket();
        let (sender, receiver) = tokio::join!(client.connect(&ticket), server.accept());
        let (sender, receiver) = (sender.unwrap(), receiver.unwrap());
        let target = Receiver::new(&to.0, Existing::Keep).ask_rate(rate(asked));
        let begin = Instant::now();
        let (sent, received) = tokio::join!(
            send(&sender, parcel(&[file]), Arc::new(Progress::default())),
            target.receive(&receiver, Arc::new(Progress::default()))
        );
        let took = begin.elapsed();
        assert_eq!((sent.unwrap().files, received.unwrap().files), (1, 1));
        assert!(took >= Duration::from_secs(seconds), "{own:?}, {asked}: {took:?}");
        assert!(took < Duration::from_secs(10 * seconds), "{own:?}, {asked}: {took:?}");
    }
}

/// The sender would be busy for ever. A peer that wishes that can as well stop reading.
#[tokio::test]
async fn rate_below_the_least_is_refused() {
    let from = Folder::new();
    let file = from.file("f", b"f");
    let Pair { sender, receiver, _ends } = pair().await;
    let hostile = async {
        let list = receiver.accept_stream().await.unwrap();
        let mut reply = receiver.open_stream().await.unwrap();
        reply.write_all(&9_999_u64.to_le_bytes()).await.unwrap();
        (list, reply)
    };
    let sending = send(&sender, parcel(&[file]), Arc::new(Progress::default()));
    let (sent, _streams) = tokio::join!(sending, hostile);
    assert!(matches!(sent, Err(SendError::Protocol(_))), "{sent:?}");
}
