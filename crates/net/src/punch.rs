//! The search for a way between two ends that avoids their relay.
//!
//! Both ends send probes to all addresses at which the other may be reached, at the same time, so that a NAT on the way takes the other's
//! probes for answers. The end that called takes the best of the addresses from which a probe has come, and sets up a path there. The
//! engine validates it as any path; a probe alone proves nothing, and is answered by at most as many bytes.
//!
//! Probes go to addresses that the other end names. So that nobody makes an end send to strangers, it sends only when a connection with
//! the peer is established, 12 bytes at a time, and not many.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_proto::endpoint::ConnectionId;
use anabranch_proto::{Address, FourTuple};
use tokio::time::Instant;

use crate::address;

/// What one end does to reach another.
#[derive(Debug)]
pub(crate) struct Punch {
    /// The shard and the identifier of the connection.
    pub(crate) place: usize,
    pub(crate) connection: ConnectionId,
    pub(crate) token: u64,
    /// Whether this end called, and so sets up the path.
    pub(crate) is_caller: bool,
    candidates: Vec<Address>,
    begun: Instant,
    rounds: usize,
    /// The four-tuples on which probes have come, with the answers that they got.
    heard: Vec<(FourTuple, u32)>,
    /// When the best of them is tried.
    choose_at: Option<Instant>,
    tried: usize,
}

impl Punch {
    pub(crate) fn new(
        now: Instant,
        (place, connection): (usize, ConnectionId),
        token: u64,
        is_caller: bool,
        candidates: &[SocketAddr],
    ) -> Self {
        let candidates = candidates.iter().map(|candidate| address::of(*candidate)).collect();
        Self {
            place,
            connection,
            token,
            is_caller,
            candidates,
            begun: now,
            rounds: 0,
            heard: vec![],
            choose_at: None,
            tried: 0,
        }
    }

    /// The addresses to which a probe goes now.
    pub(crate) fn poll_probes(&mut self, now: Instant) -> &[Address] {
        if self.probes_at().is_none_or(|at| at > now) {
            return &[];
        }
        self.rounds += 1;
        &self.candidates
    }

    fn probes_at(&self) -> Option<Instant> {
        // Who has chosen a way does not need another one.
        let is_done = self.is_caller && self.tried > 0;
        ROUNDS_MS.get(self.rounds).filter(|_| !is_done).map(|ms| self.begun + Duration::from_millis(*ms))
    }

    /// A probe has come on this four-tuple. Returns whether it is answered there.
    pub(crate) fn on_probe(&mut self, now: Instant, tuple: FourTuple) -> bool {
        let place = self.heard.iter().position(|(heard, _)| *heard == tuple);
        let place = place.unwrap_or_else(|| {
            self.heard.push((tuple, 0));
            self.heard.len() - 1
        });
        if place >= HEARD_MAX {
            self.heard.truncate(HEARD_MAX);
            return false;
        }
        if self.is_caller {
            self.choose_at.get_or_insert(now + CHOICE);
        }
        let (_, answers) = &mut self.heard[place];
        *answers += 1;
        !self.is_caller && *answers <= ANSWERS_MAX
    }

    /// The four-tuple on which to set up a path now.
    pub(crate) fn poll_choice(&mut self, now: Instant) -> Option<FourTuple> {
        self.choose_at.filter(|at| *at <= now)?;
        self.choose_at = None;
        let best = self.heard.iter().map(|(tuple, _)| *tuple).min_by_key(|tuple| self.rank(tuple))?;
        self.heard.retain(|(tuple, _)| *tuple != best);
        self.tried += 1;
        Some(best)
    }

    /// The path that was chosen does not carry anything: another one is tried.
    pub(crate) fn on_failed(&mut self, now: Instant) {
        if self.tried < TRIES_MAX && !self.heard.is_empty() {
            self.choose_at = Some(now);
        }
    }

    /// When something is to be done.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.probes_at(), self.choose_at].into_iter().flatten().min()
    }

    /// Whether nothing more can come of it.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.begun + OVER
    }

    /// The smaller the better: IPv6, where there is mostly no NAT, then the peer's own addresses, which may be in the same network, then
    /// that of its NAT, which the relay sees, and last what nobody has named.
    fn rank(&self, tuple: &FourTuple) -> (bool, usize) {
        let named = self.candidates.iter().position(|candidate| *candidate == tuple.remote);
        // The first one is what the relay sees.
        let named = named.map_or(usize::MAX, |place| if place == 0 { usize::MAX - 1 } else { place });
        (tuple.remote.is_ipv4(), named)
    }
}

/// The addresses that a member tells: of IPv6 first. Those of a link alone are of no use elsewhere.
pub(crate) fn candidates(own: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_useful = |address: &SocketAddr| match address.ip() {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    let mut own: Vec<_> = own.into_iter().filter(is_useful).collect();
    own.sort_by_key(SocketAddr::is_ipv4);
    own
}

/// When probes are sent, in milliseconds. The other end begins a round trip earlier or later; the last rounds are for a network that loses some.
const ROUNDS_MS: [u64; 9] = [0, 20, 60, 140, 300, 600, 1_000, 1_500, 2_500];

/// How long a better way may come later than the first one.
const CHOICE: Duration = Duration::from_millis(30);

/// When probes of the other end are of no interest any more.
const OVER: Duration = Duration::from_secs(10);

/// Addresses of the other end that are remembered, answers to each, and paths that are tried.
const HEARD_MAX: usize = 16;
const ANSWERS_MAX: u32 = 3;
const TRIES_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use anabranch_proto::endpoint::{Endpoint, EndpointConfig};
    use anabranch_proto::seal::SealConfig;
    use anabranch_units::{Span, Time};

    use super::*;
    use crate::key::SecretKey;

    fn tuple(remote: &str) -> FourTuple {
        let [local, remote] = ["10.0.0.1:7", remote].map(|text| address::of(text.parse().unwrap()));
        FourTuple { local, remote }
    }

    fn punch(now: Instant, is_caller: bool, candidates: &[&str]) -> Punch {
        let config = EndpointConfig { connections_max: 8, seal: SealConfig::default(), server: None };
        let key = SecretKey::generate().unwrap();
        let mut engine = Endpoint::new(Time::ZERO, key.engine(), config, [7; 32]);
        let stamp = crate::clock::timestamp(&mut Span::from_secs(1));
        let connection = crate::Config::default().connection();
        let id = engine.connect(Time::ZERO, stamp, key.public().0, tuple("192.0.2.1:1"), connection).unwrap();
        let candidates: Vec<_> = candidates.iter().map(|text| text.parse().unwrap()).collect();
        Punch::new(now, (0, id), 5, is_caller, &candidates)
    }

    #[test]
    fn probes_go_to_all_candidates_nine_times_at_most() {
        let begin = Instant::now();
        let mut punch = punch(begin, false, &["203.0.113.1:9", "[2001:db8::1]:9"]);
        let mut count = 0;
        for ms in 0..20_000 {
            count += punch.poll_probes(begin + Duration::from_millis(ms)).len();
        }
        assert_eq!(count, 2 * 9);
        assert_eq!((punch.deadline(), punch.is_over(begin + OVER)), (None, true));
    }

    #[test]
    fn caller_chooses_the_best_of_what_came_within_30_ms() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut punch = punch(begin, true, &["203.0.113.1:9", "[2001:db8::1]:9", "10.0.0.2:9"]);
        for (ms, from) in [(50, "203.0.113.1:4"), (55, "203.0.113.1:9"), (60, "10.0.0.2:9"), (79, "[2001:db8::1]:9")] {
            assert!(!punch.on_probe(at(ms), tuple(from)), "the path's challenge follows");
            assert_eq!(punch.poll_choice(at(ms)), None);
        }
        let order = ["[2001:db8::1]:9", "10.0.0.2:9", "203.0.113.1:9"];
        for (place, best) in order.into_iter().enumerate() {
            assert_eq!(punch.poll_choice(at(80 + place as u64)), Some(tuple(best)));
            punch.on_failed(at(81 + place as u64));
        }
        assert_eq!(punch.deadline(), None, "three are enough");
        assert!(punch.poll_probes(at(90)).is_empty());
    }

    /// Whoever knows the token makes this end answer a few times.
    #[test]
    fn flood_of_probes_gets_few_answers() {
        let now = Instant::now();
        let mut punch = punch(now, false, &["203.0.113.1:9"]);
        let flood = (0..1_000).flat_map(|port| [port; 10]);
        let answers = flood.filter(|port| punch.on_probe(now, tuple(&format!("198.51.100.1:{}", port + 1)))).count();
        assert_eq!((answers, punch.heard.len(), punch.poll_choice(now + CHOICE)), (16 * 3, 16, None));
    }

    #[test]
    fn candidates_begin_with_ipv6_and_leave_out_links() {
        let own = ["192.168.1.5:7", "169.254.3.4:7", "[fe80::1]:7", "[2001:db8::5]:7", "10.0.0.1:7"];
        let own = own.map(|text| text.parse().unwrap()).to_vec();
        let expected = ["[2001:db8::5]:7", "192.168.1.5:7", "10.0.0.1:7"].map(|text| text.parse().unwrap());
        assert_eq!(candidates(own), expected);
    }
}
