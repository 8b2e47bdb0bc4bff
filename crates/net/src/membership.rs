//! The membership of an endpoint in a relay, as the endpoint sees it. What keeps it up is in `member`.

use std::net::SocketAddr;

use tokio::sync::{mpsc, oneshot, watch};

use crate::error::RelayError;
use crate::key::PublicKey;
use crate::ticket::Ticket;

/// A membership, or the attempt to get it. It ends when the endpoint and its connections have ended.
#[derive(Debug)]
pub(crate) struct Membership {
    /// The addresses and the key of the relay.
    pub(crate) relay: Ticket,
    orders: mpsc::Sender<Order>,
    standing: watch::Receiver<Standing>,
}

/// How an endpoint stands with a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The first attempt to join goes on.
    Joining,
    /// It is a member.
    Member(MemberPlace),
    /// It is not; another attempt follows.
    Lost(RelayError),
}

/// A place as a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberPlace {
    /// The address at which the relay sees this end.
    pub(crate) seen: SocketAddr,
    /// The TCP port at which the relay takes members, too.
    pub(crate) tcp_port: Option<u16>,
    /// The address of the relay, if it is reached over TCP.
    pub(crate) over_tcp: Option<SocketAddr>,
}

/// A wish of the endpoint.
#[derive(Debug)]
pub(crate) enum Order {
    /// A route to the member with this key.
    Call(PublicKey, oneshot::Sender<Result<u32, RelayError>>),
    /// A number for a code, and what comes for it.
    Offer(mpsc::Sender<Mail>),
    /// A claim of the code with this number, and what comes back.
    Claim { claim: u64, number: u32, bytes: Vec<u8>, mail: mpsc::Sender<Mail> },
    /// Something for the other end of a claim.
    Pass { claim: u64, bytes: Vec<u8> },
    /// The code is not offered any more.
    Withdraw,
}

/// What comes for a code.
#[derive(Debug)]
pub(crate) enum Mail {
    /// It has this number.
    Offered(u32),
    /// Somebody claims it.
    Claimed { claim: u64, bytes: Vec<u8> },
    /// The other end of the claim says this.
    Passed { claim: u64, bytes: Vec<u8> },
    /// There is no code of that number.
    NotThere,
}

impl Membership {
    pub(crate) fn new(relay: Ticket) -> (Self, mpsc::Receiver<Order>, watch::Sender<Standing>) {
        let (orders, taken) = mpsc::channel(ORDERS_MAX);
        let (told, standing) = watch::channel(Standing::Joining);
        (Self { relay, orders, standing }, taken, told)
    }

    /// Waits until the first attempt to join has ended.
    pub(crate) async fn joined(&self) -> Result<MemberPlace, RelayError> {
        let mut standing = self.standing.clone();
        match standing.wait_for(|standing| *standing != Standing::Joining).await.as_deref() {
            Ok(Standing::Member(place)) => Ok(*place),
            Ok(Standing::Lost(error)) => Err(error.clone()),
            Ok(Standing::Joining) | Err(_) => Err(RelayError::Gone),
        }
    }

    /// The place of this end; `None` while it is no member.
    pub(crate) fn place(&self) -> Option<MemberPlace> {
        match *self.standing.borrow() {
            Standing::Member(place) => Some(place),
            Standing::Joining | Standing::Lost(_) => None,
        }
    }

    /// Gets a route to the member with this key. Returns the number of the peer.
    pub(crate) async fn call(&self, key: PublicKey) -> Result<u32, RelayError> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Call(key, answer)).await.map_err(|_| RelayError::Gone)?;
        answered.await.unwrap_or(Err(RelayError::Gone))
    }
}

impl Membership {
    /// Offers a code. Its number is the first that comes.
    pub(crate) async fn offer(&self) -> Option<mpsc::Receiver<Mail>> {
        let (sender, mail) = mpsc::channel(MAIL_MAX);
        self.orders.send(Order::Offer(sender)).await.ok().map(|()| mail)
    }

    pub(crate) async fn claim(&self, claim: u64, number: u32, bytes: Vec<u8>) -> Option<mpsc::Receiver<Mail>> {
        let (sender, mail) = mpsc::channel(MAIL_MAX);
        self.orders.send(Order::Claim { claim, number, bytes, mail: sender }).await.ok().map(|()| mail)
    }

    pub(crate) async fn pass(&self, claim: u64, bytes: Vec<u8>) {
        // If the relay is lost, no answer comes, which the caller sees.
        _ = self.orders.send(Order::Pass { claim, bytes }).await;
    }

    pub(crate) async fn withdraw(&self) {
        _ = self.orders.send(Order::Withdraw).await;
    }
}

/// Letters for a code that wait to be read.
const MAIL_MAX: usize = 16;

/// Calls that wait for their turn.
const ORDERS_MAX: usize = 16;
