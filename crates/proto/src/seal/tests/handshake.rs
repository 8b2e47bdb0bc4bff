//! How the two ends agree on keys.

use super::*;

#[test]
fn the_handshake_rides_on_syn_and_syn_ack() {
    let now = Time::ZERO;
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let initiation = sealed(&mut client, now, PATH, &syn());
    assert_eq!(Seal::recipient(&initiation), Some(Recipient::Listener));
    let (mut server, segment) = accepted(&mut listener, now, &initiation, 9);
    assert_eq!((segment, server.remote()), (syn(), secret(1).public()));
    let response = sealed(&mut server, now, PATH.reversed(), &syn_ack());
    assert_eq!(Seal::recipient(&response), Some(Recipient::Connection(7)));
    assert_eq!(opened(&mut client, now, PATH, &response), Ok(Some(syn_ack())));
    assert!(client.is_established() && !server.is_established(), "the client has still to show that it has the keys");
    assert_eq!(server.seal(now, &on(PATH.reversed()), &data(1), &mut vec![]), Err(SealError::NotReady));
    let first = sealed(&mut client, now, PATH, &data(101));
    assert_eq!(Seal::recipient(&first), Some(Recipient::Connection(9)));
    assert_eq!(first.len() as u32, 20 + 9 + Seal::OVERHEAD);
    assert_eq!(opened(&mut server, now, PATH.reversed(), &first), Ok(Some(data(101))));
    exchange(&mut client, &mut server, now, 110);
}

#[test]
fn a_lost_initiation_is_sent_again_as_it_was() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let first = sealed(&mut client, secs(0), PATH, &syn());
    let second = sealed(&mut client, secs(1), PATH, &syn());
    assert_eq!(first, second);
    let (mut server, _) = accepted(&mut listener, secs(1), &second, 9);
    // The first initiation was only late: it belongs to the existing connection.
    let again = listener.handle(secs(1), PATH.reversed(), &first, 10, &mut vec![]);
    assert!(matches!(again, Ok(Answer::Again { number: 9 })), "{again:?}");
    assert_eq!(opened(&mut server, secs(1), PATH.reversed(), &first), Ok(Some(syn())));
}

#[test]
fn a_lost_response_is_sent_again_as_it_was() {
    let (mut client, mut server, _) = half_open();
    let first = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    let second = sealed(&mut server, secs(1), PATH.reversed(), &syn_ack());
    assert_eq!(first, second);
    assert_eq!(opened(&mut client, secs(1), PATH, &second), Ok(Some(syn_ack())));
    // The response arrives twice, and the connection acknowledges it twice.
    assert_eq!(opened(&mut client, secs(1), PATH, &first), Ok(Some(syn_ack())));
    exchange(&mut client, &mut server, secs(1), 101);
    assert_eq!(opened(&mut client, secs(2), PATH, &first), Err(Refusal::Unexpected), "both have the keys by now");
}

/// The response may arrive repeatedly, so nothing in it may have an effect twice.
#[test]
fn no_data_ride_on_a_response() {
    let (mut client, mut server, _) = half_open();
    let early = segment(Flags::SYN | Flags::ACK, 200, b"early");
    for refused in [data(1), early] {
        assert_eq!(server.seal(secs(0), &on(PATH.reversed()), &refused, &mut vec![]), Err(SealError::NotReady));
    }
    let refusal = segment(Flags::RST | Flags::ACK, 0, b"");
    let response = sealed(&mut server, secs(0), PATH.reversed(), &refusal);
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Ok(Some(refusal)), "there is no connection to be had");
}

#[test]
fn a_forged_response_does_not_keep_the_true_one_out() {
    let (mut client, mut server, _) = half_open();
    let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    for at in [12, 50, response.len() - 1] {
        let mut forged = response.clone();
        forged[at] ^= 1;
        assert_eq!(opened(&mut client, secs(0), PATH, &forged), Err(Refusal::Forged), "byte {at}");
    }
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Ok(Some(syn_ack())));
}

/// With a public key of zero, every secret key yields the shared secret zero, which anybody knows.
#[test]
fn a_key_that_is_none_is_refused() {
    let nobody = PublicKey([0; 32]);
    let mut one = Seal::initiator(secret(1), nobody, 7, SealConfig::default(), stamp(1), [1; 32]);
    assert_eq!(one.seal(secs(0), &on(PATH), &syn(), &mut vec![]), Err(SealError::NoKey));
    // 2^255 - 18 is 1, of order 4.
    let mut small = [0xff; 32];
    (small[0], small[31]) = (0xee, 0x7f);
    let mut one = Seal::initiator(secret(1), PublicKey(small), 7, SealConfig::default(), stamp(1), [1; 32]);
    assert_eq!(one.seal(secs(0), &on(PATH), &syn(), &mut vec![]), Err(SealError::NoKey));
    // The same in the other direction: an ephemeral key of zero.
    let mut listener = listener(ListenerConfig::default());
    let mut forged = sealed(&mut initiator(Limits::default()), secs(0), PATH, &syn());
    forged[8..40].fill(0);
    let end = forged.len() - 32;
    let mac1 = cookie::mac1(&secret(2).public(), &forged[..end]);
    forged[end..end + 16].copy_from_slice(&mac1);
    let answer = listener.handle(secs(0), PATH.reversed(), &forged, 9, &mut vec![]);
    assert!(matches!(answer, Err(Refusal::Forged)), "{answer:?}");
}

/// Every type that holds a secret wipes it when dropped. The compiler checks this.
#[test]
fn secrets_are_wiped_out() {
    fn is_wiped<T: zeroize::ZeroizeOnDrop>() {}
    is_wiped::<SecretKey>();
    is_wiped::<Entropy>();
    is_wiped::<cookie::Secret>();
    is_wiped::<cipher::Key>();
}

#[test]
fn a_wrong_key_is_not_answered() {
    let mut client = Seal::initiator(secret(1), secret(3).public(), 7, SealConfig::default(), stamp(11), [11; 32]);
    let mut listener = listener(ListenerConfig::default());
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let mut reply = vec![];
    let answer = listener.handle(secs(0), PATH.reversed(), &initiation, 9, &mut reply);
    assert!(matches!(answer, Err(Refusal::Forged)) && reply.is_empty(), "{answer:?}");
}

#[test]
fn a_responder_without_the_key_is_not_believed() {
    let mut client = initiator(Limits::default());
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    // It answers another client's initiation with our index.
    let mut other = Seal::initiator(secret(1), secret(3).public(), 7, SealConfig::default(), stamp(12), [12; 32]);
    let mut impostor = Listener::new(secs(0), secret(3), ListenerConfig::default(), [1; 32]);
    let asked = sealed(&mut other, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut impostor, secs(0), &asked, 9);
    let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Err(Refusal::Forged));
    assert_eq!(sealed(&mut client, secs(1), PATH, &syn()), initiation, "it goes on asking");
}

#[test]
fn two_handshakes_at_once_do_not_touch_each_other() {
    let mut listener = listener(ListenerConfig::default());
    let mut clients = [5u8, 6].map(|number| client_of(number, number.into(), number));
    let initiations = clients.each_mut().map(|client| sealed(client, secs(0), PATH, &syn()));
    let mut servers = [(1, 8), (0, 9)].map(|(at, number)| accepted(&mut listener, secs(0), &initiations[at], number).0);
    assert_eq!(servers[0].remote(), secret(6).public());
    let responses = servers.each_mut().map(|server| sealed(server, secs(0), PATH.reversed(), &syn_ack()));
    assert_eq!(opened(&mut clients[0], secs(0), PATH, &responses[0]), Err(Refusal::UnknownSession));
    for (client, at) in clients.iter_mut().zip([1, 0]) {
        assert_eq!(opened(client, secs(0), PATH, &responses[at]), Ok(Some(syn_ack())));
        exchange(client, &mut servers[at], secs(0), 101);
    }
}

/// Each end opens a connection to the other: two connections, each with its own initiator.
#[test]
fn two_ends_may_call_each_other() {
    let mut here = Listener::new(secs(0), secret(1), ListenerConfig::default(), [4; 32]);
    let mut there = listener(ListenerConfig::default());
    let mut one = initiator(Limits::default());
    let mut other = Seal::initiator(secret(2), secret(1).public(), 3, SealConfig::default(), stamp(5), [5; 32]);
    let (first, second) = (sealed(&mut one, secs(0), PATH, &syn()), sealed(&mut other, secs(0), PATH, &syn()));
    for (listener, initiation, client) in [(&mut there, first, &mut one), (&mut here, second, &mut other)] {
        let (mut server, _) = accepted(listener, secs(0), &initiation, 9);
        let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
        opened(client, secs(0), PATH, &response).unwrap();
        exchange(client, &mut server, secs(0), 101);
    }
}

#[test]
fn both_ends_settle_on_a_cipher_that_both_like() {
    use Cipher::{Aegis128L, Aes128Gcm, Aes256Gcm, ChaCha20Poly1305};
    let aegis = CipherPreference::fast_aes().preferring(Aegis128L);
    let is_built = Aegis128L.is_built();
    let cases = [
        (CipherPreference::fast_aes(), CipherPreference::fast_aes(), Aes128Gcm),
        (CipherPreference::fast_aes(), CipherPreference::default(), ChaCha20Poly1305),
        (CipherPreference::default(), CipherPreference::fast_aes(), ChaCha20Poly1305),
        (CipherPreference::new(&[Aes256Gcm]), CipherPreference::fast_aes(), Aes256Gcm),
        (aegis, CipherPreference::fast_aes(), if is_built { Aegis128L } else { Aes128Gcm }),
        (aegis, CipherPreference::default(), ChaCha20Poly1305),
        (CipherPreference::fast_aes(), aegis, Aes128Gcm),
    ];
    for (ours, theirs, expected) in cases {
        let (mut client, mut server) = pair_of(
            SealConfig { ciphers: ours, ..Default::default() },
            SealConfig { ciphers: theirs, ..Default::default() },
        );
        assert_eq!((client.cipher(), server.cipher()), (Some(expected), Some(expected)));
        exchange(&mut client, &mut server, secs(1), 10);
        rekey(&mut client, &mut server, secs(130));
        assert_eq!((client.cipher(), server.cipher()), (Some(expected), Some(expected)), "new keys, no other cipher");
    }
}

/// The responder selects a cipher that was not offered.
#[test]
fn a_cipher_that_was_not_offered_is_not_used() {
    let (mut client, mut server, _) = half_open();
    let State::Responding(responding) = &mut server.state else { panic!("it has not answered") };
    responding.cipher = Cipher::Aes128Gcm;
    let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Err(Refusal::NoCipher));
}
