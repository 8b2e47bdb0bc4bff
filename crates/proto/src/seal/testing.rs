//! Access to internals for test vectors.

use super::cookie::cookie_mac;
use super::datagram::{COOKIE, Datagram, begin};
use super::noise::{Entropy, TAG};
use super::{Listener, ListenerConfig, PublicKey, SecretKey};
use anabranch_units::Time;

/// The secret ephemeral keys of an initiator and a listener with these seeds: first both keys of the handshake, then both of
/// rekeying.
pub(crate) fn ephemerals(initiator: [u8; 32], listener: [u8; 32]) -> [[u8; 32]; 4] {
    let mut client = Entropy::new(initiator);
    // The first draw determines the unknown cipher that is offered (grease).
    client.draw();
    let mut listener = Listener::new(Time::ZERO, SecretKey::new([0; 32]), ListenerConfig::default(), listener);
    let (first, second) = (client.draw(), listener.entropy.draw());
    let mut server = Entropy::new(listener.entropy.draw());
    [first, second, client.draw(), server.draw()]
}

/// The datagram that carries this cookie for this initiation.
pub(crate) fn cookie(responder: &PublicKey, initiation: &[u8], cookie: [u8; TAG]) -> Vec<u8> {
    let Some(Datagram::Initiation(initiation)) = Datagram::parse(initiation) else { panic!("it is no initiation") };
    let mut datagram = vec![];
    begin(COOKIE, initiation.sender, &mut datagram);
    datagram.extend(cookie);
    datagram.extend(cookie_mac(responder, &initiation.mac1, &cookie));
    datagram
}
