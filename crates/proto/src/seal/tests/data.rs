//! Sealing and opening of datagrams with data.

use super::*;

#[test]
fn a_datagram_counts_once_in_whatever_order() {
    let (mut client, mut server) = pair(Limits::default());
    let mut datagrams: Vec<_> = (0..500).map(|seq| (seq, sealed(&mut client, secs(0), PATH, &data(seq)))).collect();
    datagrams.reverse();
    for (seq, datagram) in &datagrams {
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), datagram), Ok(Some(data(*seq))));
    }
    for (_, datagram) in &datagrams {
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), datagram), Err(Refusal::Replayed));
    }
    assert_eq!(server.tally().refused(Refusal::Replayed), 500);
}

#[test]
fn a_mirror_opens_nothing() {
    let (mut client, _) = pair(Limits::default());
    let mut datagram = sealed(&mut client, secs(0), PATH, &data(1));
    assert_eq!(opened(&mut client, secs(0), PATH, &datagram), Err(Refusal::UnknownSession));
    let index = client.index().to_be_bytes();
    datagram[4..8].copy_from_slice(&index);
    assert_eq!(opened(&mut client, secs(0), PATH, &datagram), Err(Refusal::Forged));
}

#[test]
fn forgeries_without_end_end_a_session() {
    let (mut client, mut server) = pair(Limits { forgeries: 3, ..Limits::default() });
    let good = sealed(&mut client, secs(0), PATH, &data(1));
    let mut bad = good.clone();
    bad[20] ^= 4;
    for _ in 0..3 {
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &bad), Err(Refusal::Forged));
    }
    assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &good), Err(Refusal::Exhausted));
}

/// Two paths with 12 Gbit/s together, that is a million datagrams a second. The slower path takes 75 ms longer.
#[test]
fn datagram_of_slower_path_is_within_replay_window() {
    let (mut client, mut server) = pair(Limits::default());
    let slow_path = PathId::new(1);
    let (fast, slow): (Vec<_>, Vec<_>) = (0..78_750)
        .map(|number| {
            let path = if number % 7 < 2 { slow_path } else { PathId::FIRST };
            let mut datagram = vec![];
            client.seal(secs(0), &Outgoing { path, ..on(PATH) }, &data(number), &mut datagram).unwrap();
            (path, datagram)
        })
        .partition(|(path, _)| *path == PathId::FIRST);
    assert_eq!(slow.len(), 22_500);
    for (_, datagram) in fast.iter().chain(&slow) {
        assert!(opened(&mut server, secs(0), PATH.reversed(), datagram).is_ok());
    }
    for (_, datagram) in [&fast[56_000], &slow[22_000]] {
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), datagram), Err(Refusal::Replayed));
    }
}

#[test]
fn changed_header_is_forged() {
    let (mut client, mut server) = pair(Limits::default());
    let good = sealed(&mut client, secs(0), PATH, &data(1));
    for (at, expected) in [(1, Refusal::Forged), (2, Refusal::Forged), (3, Refusal::Forged), (15, Refusal::Forged)] {
        let mut bad = good.clone();
        bad[at] ^= 8;
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &bad), Err(expected), "byte {at}");
    }
    let mut no_path = good.clone();
    no_path[1] = 16;
    assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &no_path), Err(Refusal::Malformed));
    assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &good), Ok(Some(data(1))));
}

/// Datagrams of later versions, and of other protocols on the same port.
#[test]
fn a_datagram_of_another_kind_is_nobodys() {
    let (mut client, _) = pair(Limits::default());
    let mut datagram = sealed(&mut client, secs(0), PATH, &data(1));
    for kind in (0..=255).filter(|kind| !(1..=4).contains(kind)) {
        datagram[0] = kind;
        assert_eq!(Seal::recipient(&datagram), None, "{kind:#x}");
    }
}

#[test]
fn words_that_nobody_knows_are_ignored() {
    let (mut client, mut server) = pair(Limits::default());
    for word in [[0x0a, 0x1a, 0xfa, 0x0a], [0, 0, 0, 6], [0xff; 4]] {
        let datagram = with_plain(&mut client, &word);
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Ok(None), "{word:?}");
    }
    assert_eq!(server.tally().ignored, 3);
    for bad in [&[0, 0, 0][..], &[0, 0, 0, 0, 1], &[0, 0, 0, 3, 0, 9, 0, 0, 1], &[0, 0, 0, 4, 1]] {
        let datagram = with_plain(&mut client, bad);
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Err(Refusal::NoSegment), "{bad:?}");
    }
}

/// Grease: a receiver that only ever gets known values loses the ability to ignore others.
#[test]
fn now_and_then_a_datagram_says_nothing() {
    let (mut client, mut server) = pair(Limits::default());
    let mut words = std::collections::BTreeSet::new();
    let mut greases = std::collections::BTreeSet::new();
    for number in 0..200_000 {
        let datagram = sealed(&mut client, secs(0), PATH, &data(number));
        greases.insert([datagram[2], datagram[3]]);
        if let Some(datagram) = own(&mut client, secs(0)) {
            words.insert(number);
            assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Ok(None));
        }
    }
    assert_eq!(words.first(), Some(&14), "the sixteenth datagram");
    assert!((3..=200).contains(&words.len()), "{}", words.len());
    assert_eq!(server.tally().ignored, words.len() as u64);
    assert!(greases.len() > 50_000, "two bytes of each that look random: {}", greases.len());
}

#[test]
fn a_datagram_is_padded_as_it_is_asked_for() {
    let (mut client, mut server) = pair(Limits::default());
    for pad_to in [0, 60, 69, 100, 1200, 5000] {
        let mut datagram = vec![];
        let outgoing = Outgoing { pad_to, datagram_max: 1452, ..on(PATH) };
        let sealed = client.seal(secs(0), &outgoing, &data(1), &mut datagram);
        // Without padding a datagram has 61 bytes, with padding at least 69.
        let size = if pad_to < 69 { 61 } else { pad_to.min(1452) as usize };
        assert_eq!((sealed, datagram.len()), (Ok(Sealed { size, count: 1 }), size), "{pad_to}");
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Ok(Some(data(1))));
    }
}

#[test]
fn lengths_can_be_hidden() {
    let text = Bytes::from(vec![7; 1000]);
    for (padding, lengths) in [(Padding::Full, vec![1200]), (Padding::Multiple(256), vec![256, 512, 768, 1024, 1200])] {
        let config = SealConfig { padding, ..Default::default() };
        let (mut client, mut server) = pair_of(config, config);
        let mut seen = std::collections::BTreeSet::new();
        for len in 1..1000 {
            let segment = Segment { content: Content::Data(text.slice(..len)), ..data(1) };
            let mut datagram = vec![];
            client.seal(secs(0), &Outgoing::new(PATH), &segment, &mut datagram).unwrap();
            seen.insert(datagram.len());
            assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Ok(Some(segment)));
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), lengths);
        sealed(&mut client, secs(120), PATH, &data(1));
        assert!(lengths.contains(&own(&mut client, secs(120)).unwrap().len()), "nor is it seen when keys are replaced");
    }
}

#[test]
fn a_segment_that_is_too_long_for_its_path_goes_in_fragments() {
    let (mut client, mut server) = pair(Limits::default());
    let text: Vec<u8> = (0..1400u32).map(|at| at as u8).collect();
    let long = Segment { content: Content::Data(text.into()), ..data(1) };
    let mut datagrams = vec![];
    let outgoing = Outgoing { datagram_max: 600, ..on(PATH) };
    let sealed = client.seal(secs(0), &outgoing, &long, &mut datagrams);
    assert_eq!((sealed, datagrams.len()), (Ok(Sealed { size: 600, count: 3 }), 1420 + 3 * 44));
    let parts: Vec<_> = datagrams.chunks(600).collect();
    for order in [[0, 1, 2], [2, 0, 1]] {
        let (mut client, mut server) = pair(Limits::default());
        let mut datagrams = vec![];
        client.seal(secs(0), &outgoing, &long, &mut datagrams).unwrap();
        let parts: Vec<_> = datagrams.chunks(600).collect();
        let came = order.map(|at| opened(&mut server, secs(0), PATH.reversed(), parts[at]).unwrap());
        assert_eq!(came, [None, None, Some(long.clone())]);
    }
    // One fragment is lost. The segment is retransmitted as another one, and the other fragments of the first are useless.
    opened(&mut server, secs(0), PATH.reversed(), parts[0]).unwrap();
    let mut again = vec![];
    client.seal(secs(1), &outgoing, &long, &mut again).unwrap();
    let came: Vec<_> = again.chunks(600).map(|part| opened(&mut server, secs(1), PATH.reversed(), part)).collect();
    assert_eq!(came, [Ok(None), Ok(None), Ok(Some(long.clone()))]);
    assert_eq!(opened(&mut server, secs(1), PATH.reversed(), parts[0]), Err(Refusal::Replayed));
    assert_eq!(server.poll_timeout(), secs(10));
    server.handle_timeout(secs(10));
    assert_eq!(server.poll_timeout(), Time::NEVER);
    let narrow = Outgoing { datagram_max: 100, ..on(PATH) };
    assert_eq!(client.seal(secs(1), &narrow, &long, &mut vec![]), Err(SealError::TooLong));
}

#[test]
fn the_data_of_a_segment_stays_where_the_datagram_was() {
    let (mut client, mut server) = pair(Limits::default());
    let datagram = BytesMut::from(&sealed(&mut client, secs(0), PATH, &data(1))[..]);
    let memory = datagram.as_ptr_range();
    let Ok(Some(Segment { content: Content::Data(data), .. })) = server.open(secs(0), PATH.reversed(), datagram) else {
        panic!("it is good")
    };
    assert_eq!(data.as_ptr(), memory.start.wrapping_add(16 + 20));
}
