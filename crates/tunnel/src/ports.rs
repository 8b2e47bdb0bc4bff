//! The ports on which a server listens for its clients. A client that comes back takes over the ports that it still holds: its
//! earlier connection, which it has lost, may live for half a minute. A client that has another key now, because it has none of its own,
//! takes them over if the earlier connection does not answer.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch::Connection;
use anabranch::units::Span;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The listeners of a server for all of its clients. Clones are handles of the same ports.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    held: Arc<Mutex<Held>>,
}

/// Who holds each port. There are as many entries as listeners.
#[derive(Debug, Default)]
struct Held {
    /// Tunnels and holders so far, which this numbers.
    made: u64,
    by_address: BTreeMap<SocketAddr, Holder>,
}

#[derive(Debug)]
struct Holder {
    serial: u64,
    tunnel: u64,
    connection: Connection,
    /// Asks the holder to let go.
    wanted: Option<oneshot::Sender<()>>,
    /// Ends when the holder has let go.
    gone: Option<oneshot::Receiver<()>>,
}

/// A port that is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    ports: Ports,
    address: SocketAddr,
    serial: u64,
    wanted: oneshot::Receiver<()>,
    _gone: oneshot::Sender<()>,
}

impl Ports {
    /// A number for a tunnel.
    pub(crate) fn join(&self) -> u64 {
        let mut held = self.lock();
        held.made += 1;
        held.made
    }

    /// Listens at an address for a tunnel over this connection. If another tunnel to the same client listens there, or one to a
    /// client that does not answer, it lets go.
    ///
    /// # Errors
    /// If the address cannot be bound, for example because another client holds it.
    pub(crate) async fn bind(
        &self,
        address: SocketAddr,
        tunnel: u64,
        connection: &Connection,
    ) -> io::Result<(TcpListener, Hold)> {
        let listener = match bind(address) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && self.reclaim(address, tunnel, connection).await =>
            {
                bind(address)
            }
            bound => bound,
        }?;
        let hold = self.hold(listener.local_addr()?, tunnel, connection.clone());
        Ok((listener, hold))
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the holder of an address to let go, if it is another tunnel of this client, or its client does not answer. Returns
    /// whether it has done so.
    async fn reclaim(&self, address: SocketAddr, tunnel: u64, connection: &Connection) -> bool {
        let Some((serial, former)) = self.holder(address, tunnel) else { return false };
        if former.remote_key() != connection.remote_key() {
            let rtts = former.paths().into_iter().filter_map(|path| path.report.rtt_smoothed);
            if former.answers(answers_within(rtts)).await {
                return false;
            }
            // If it comes back, it learns that it has lost its port, as it cannot have it again.
            former.abort();
        }
        let gone = {
            let mut held = self.lock();
            // Another client may hold the address by now.
            held.by_address.get_mut(&address).filter(|holder| holder.serial == serial).and_then(|holder| {
                // The holder may be letting go already.
                _ = holder.wanted.take()?.send(());
                holder.gone.take()
            })
        };
        // After an abort it may have let go meanwhile.
        let Some(gone) = gone else { return !self.lock().by_address.contains_key(&address) };
        // The sender is dropped after the listener: an error is what is waited for.
        timeout(LETS_GO_WITHIN, gone).await.is_ok()
    }

    /// The holder of an address, if it is another tunnel.
    fn holder(&self, address: SocketAddr, tunnel: u64) -> Option<(u64, Connection)> {
        let held = self.lock();
        let holder = held.by_address.get(&address).filter(|holder| holder.tunnel != tunnel)?;
        Some((holder.serial, holder.connection.clone()))
    }

    fn hold(&self, address: SocketAddr, tunnel: u64, connection: Connection) -> Hold {
        let ((wants, wanted), (goes, gone)) = (oneshot::channel(), oneshot::channel());
        let mut held = self.lock();
        held.made += 1;
        let serial = held.made;
        let holder = Holder { serial, tunnel, connection, wanted: Some(wants), gone: Some(gone) };
        held.by_address.insert(address, holder);
        drop(held);
        Hold { ports: self.clone(), address, serial, wanted, _gone: goes }
    }
}

impl Hold {
    /// Waits until the same client wants the port for a new connection.
    pub(crate) async fn until_wanted(&mut self) {
        if (&mut self.wanted).await.is_err() {
            // Another holder has replaced this one in the table; that happens only after it has let go.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.ports.lock();
        if held.by_address.get(&self.address).is_some_and(|holder| holder.serial == self.serial) {
            held.by_address.remove(&self.address);
        }
    }
}

/// Binds a TCP listener with the system's largest backlog. TCP connections beyond the limit of streams wait in the backlog; those
/// beyond the backlog are reset.
///
/// # Errors
/// If the address cannot be bound.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Closing connections of an earlier listener must not block the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_MAX)
}

/// Linux' default limit (net.core.somaxconn).
const WAITING_MAX: u32 = 4096;

/// A client that is there answers within a round trip, which a queue may have made longer: four times the longest known one, at least a second.
fn answers_within(rtts: impl Iterator<Item = Span>) -> Duration {
    let longest = rtts.max().map_or(Duration::ZERO, |rtt| Duration::from_nanos(rtt.ticks()));
    (4 * longest).clamp(ANSWERS_WITHIN, ANSWERS_WITHIN_MOST)
}

const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Whoever asks for the port waits so long.
const ANSWERS_WITHIN_MOST: Duration = Duration::from_secs(10);

/// A listener is closed in its task's next turn.
const LETS_GO_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Without an RTT, as before the first answer, it is the least; a path of three seconds or a wrong sample does not make others wait for ever.
    #[test]
    fn silent_client_is_waited_for_four_round_trips_up_to_ten_s() {
        let within = |rtts: &[u64]| answers_within(rtts.iter().copied().map(Span::from_millis)).as_millis();
        assert_eq!((within(&[]), within(&[1]), within(&[250])), (1000, 1000, 1000));
        assert_eq!((within(&[251]), within(&[20, 600, 300])), (1004, 2400));
        assert_eq!((within(&[2500]), within(&[2501]), within(&[u64::MAX / 1_000_000])), (10_000, 10_000, 10_000));
    }
}
