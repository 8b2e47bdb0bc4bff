//! Streams in pairs.

use std::time::Duration;

use anabranch::pairs::{Pairs, Side};
use anabranch::{Config, ReadError, StreamError};

use crate::support::{Pair, soon};

/// Both ends ask at once, and the answers come in another order than the questions.
#[tokio::test]
async fn answers_find_their_questions() {
    const COUNT: u8 = 100;
    let Pair { here, there, .. } = Pair::new().await;
    let (here, there) = (Pairs::new(here, Side::Server), Pairs::new(there, Side::Client));
    let ask = async |pairs: &Pairs, name: u8| {
        let mut answers = vec![];
        for number in 0..COUNT {
            let (mut stream, answer) = pairs.open().await.unwrap();
            stream.write_all(&[name, number]).await.unwrap();
            stream.finish().unwrap();
            answers.push(answer);
        }
        for (number, mut answer) in answers.into_iter().enumerate() {
            let answer = answer.arrive().await.unwrap().read_to_end(10).await.unwrap();
            assert_eq!(&answer[..], [name, number as u8, 7]);
        }
    };
    let reply = async |pairs: &Pairs| {
        let mut asked = vec![];
        for _ in 0..COUNT {
            asked.push(pairs.accept().await.unwrap());
        }
        for (mut stream, mut asked) in asked.into_iter().rev() {
            let question = asked.read_to_end(10).await.unwrap();
            stream.write_all(&question).await.unwrap();
            stream.write_all(&[7]).await.unwrap();
            stream.finish().unwrap();
        }
    };
    soon(async { tokio::join!(ask(&here, 1), ask(&there, 2), reply(&here), reply(&there)) }).await;
}

/// Of 8 streams 4 ask; the fifth question waits for an answer, and goes on after one, or after one is no longer wanted.
#[tokio::test]
async fn half_of_the_streams_are_for_answers() {
    let Pair { here, there, .. } = Pair::with(Config { streams: 8, ..Config::default() }).await;
    let (here, there) = (Pairs::new(here, Side::Server), Pairs::new(there, Side::Client));
    let mut open = vec![];
    for _ in 0..4 {
        let (mut stream, answer) = there.open().await.unwrap();
        stream.finish().unwrap();
        open.push(answer);
    }
    let more = async |there: &Pairs| tokio::time::timeout(Duration::from_millis(50), there.open()).await;
    assert!(more(&there).await.is_err());
    let (mut reply, _) = here.accept().await.unwrap();
    reply.finish().unwrap();
    soon(open[0].arrive()).await.unwrap();
    let fifth = more(&there).await.unwrap().unwrap();
    assert!(more(&there).await.is_err());
    drop(fifth);
    more(&there).await.unwrap().unwrap();
}

/// A stream that is too short for a number, an answer to nothing, and a dropped question disturb nobody.
#[tokio::test]
async fn streams_without_a_pair_are_refused() {
    let Pair { here, there, .. } = Pair::new().await;
    let raw = there.clone();
    let here = Pairs::new(here, Side::Server);
    let mut short = raw.open_stream().await.unwrap();
    short.write_all(b"abc").await.unwrap();
    short.finish().unwrap();
    let mut answer = raw.open_stream().await.unwrap();
    answer.write_all(&[0, 0, 0, 0x80, 1]).await.unwrap();
    // Nobody has asked: it is stopped with code 0.
    assert_eq!(soon(answer.stopped()).await, Ok(Some(0)));
    let there = Pairs::new(there, Side::Client);
    let (question, mut lost) = there.open().await.unwrap();
    drop(question);
    // The number may have left before the reset; then the pair comes, and its question is incomplete.
    let (mut question, mut answer) = there.open().await.unwrap();
    question.finish().unwrap();
    loop {
        let (mut reply, mut asked) = soon(here.accept()).await.unwrap();
        match asked.read_to_end(10).await {
            Ok(_) => break reply.finish().unwrap(),
            Err(error) => assert_eq!(error, ReadError::Reset(0)),
        }
    }
    assert_eq!(&soon(answer.arrive()).await.unwrap().read_to_end(10).await.unwrap()[..], b"");
    // An answer arrives once.
    assert_eq!(answer.arrive().await.unwrap_err(), StreamError::Closed);
    drop(answer);
    raw.abort();
    assert!(soon(lost.arrive()).await.is_err());
    assert!(soon(there.open()).await.is_err() && soon(here.accept()).await.is_err());
}

/// When nobody needs pairs any longer, their task lets go of the connection, which closes.
#[tokio::test]
async fn dropped_pairs_close_the_connection() {
    let Pair { here, there, .. } = Pair::new().await;
    let pairs = Pairs::new(there, Side::Client);
    let (stream, answer) = pairs.open().await.unwrap();
    drop(pairs);
    assert!(tokio::time::timeout(Duration::from_millis(50), here.accept_stream()).await.is_ok());
    drop((stream, answer));
    while soon(here.accept_stream()).await.is_ok() {}
    soon(here.close()).await.unwrap();
    soon(here.closed()).await.unwrap();
}
