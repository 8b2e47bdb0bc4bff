//! Connecting to a ticket: at its addresses, and through its relay.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use crate::code::{self, Code, CodeOffer};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::{CodeError, ConnectError, RelayError};
use crate::find;
use crate::frame;
use crate::key::PublicKey;
use crate::member;
use crate::membership::{Mail, Membership};
use crate::ticket::Ticket;

impl Endpoint {
    /// Connects to the endpoint of this ticket: at its addresses, one after the other, and, if it names a relay, through that at the same
    /// time, until one answers. A connection through a relay gets a path of its own to the other end when there is one, and uses the relay
    /// only until then, or if that path fails.
    ///
    /// # Errors
    /// If no peer with the ticket's key answers, or the peer refuses.
    pub async fn connect(&self, ticket: &Ticket) -> Result<Connection, ConnectError> {
        let Some(relay) = ticket.relay() else { return self.connect_directly(ticket).await };
        let mut direct = pin!(self.connect_directly(ticket));
        let mut relayed = pin!(self.connect_through(relay, ticket.key()));
        tokio::select! {
            result = &mut direct => match result {
                Ok(connection) => Ok(connection),
                Err(_) => relayed.await,
            },
            result = &mut relayed => match result {
                Ok(connection) => Ok(connection),
                Err(error) => direct.await.map_err(|_| error),
            },
        }
    }

    async fn connect_through(&self, relay: &Ticket, key: PublicKey) -> Result<Connection, ConnectError> {
        let relayed = |error| ConnectError::Relay(relay.addresses().to_vec(), error);
        let membership = member::membership(self, relay).map_err(relayed)?;
        self.joined(&membership).await.map_err(relayed)?;
        let answered = tokio::time::timeout(self.connect_timeout(), membership.call(key)).await;
        let number = answered.unwrap_or(Err(RelayError::PeerSilent)).map_err(relayed)?;
        self.call_all(key, &[frame::tuple(number)]).await.map_err(|error| match error {
            ConnectError::NoAnswer(_) => relayed(RelayError::PeerSilent),
            ConnectError::Refused(_) => relayed(RelayError::PeerRefuses),
            ConnectError::Full(_, full) => relayed(RelayError::PeerFull(full)),
            other => other,
        })
    }

    /// The same endpoint as a member of a relay: it can be reached through it, also behind a NAT, and its ticket names it. If the relay is
    /// lost later, the endpoint joins again.
    ///
    /// # Errors
    /// If the relay does not answer or refuses.
    pub async fn with_relay(self, relay: &Ticket) -> Result<Self, ConnectError> {
        let relayed = |error| ConnectError::Relay(relay.addresses().to_vec(), error);
        let membership = member::membership(&self, relay).map_err(relayed)?;
        self.joined(&membership).await.map_err(relayed)?;
        Ok(self)
    }

    /// Asks who is the relay at one of these addresses, as [`Relay::find`](crate::Relay::find) does. If it answers over TCP alone, this endpoint
    /// joins it so without waiting for UDP.
    ///
    /// # Errors
    /// If no relay answers.
    pub async fn find_relay(&self, addresses: &[SocketAddr]) -> Result<Ticket, RelayError> {
        let found = find::find(addresses).await?;
        if found.is_over_tcp {
            self.shared_lobby().lock().note_silent(found.relay.key());
        }
        Ok(found.relay)
    }

    /// The addresses of the relays of which this endpoint is a member over TCP, as they did not answer over UDP. Mostly there is none.
    pub fn relays_over_tcp(&self) -> Vec<SocketAddr> {
        let lobby = self.shared_lobby().lock();
        lobby.memberships.iter().filter_map(|of| of.place()?.over_tcp).collect()
    }

    /// Offers a short code at a relay, by which somebody gives this end a ticket.
    ///
    /// # Errors
    /// If the relay does not answer.
    pub async fn offer_code(&self, relay: &Ticket) -> Result<CodeOffer, CodeError> {
        let membership = self.member(relay).await?;
        let mut mail = membership.offer().await.ok_or(CodeError::RelayGone)?;
        match tokio::time::timeout(self.connect_timeout(), mail.recv()).await {
            Ok(Some(Mail::Offered(number))) => Ok(CodeOffer::new(Code::new(number)?, membership, mail)),
            _ => Err(CodeError::RelayGone),
        }
    }

    /// Gives the ticket of this endpoint to the end that offers this code at the relay. That end may then connect.
    ///
    /// # Errors
    /// If there is no such code, or it is wrong.
    pub async fn redeem_code(&self, relay: &Ticket, code: &Code) -> Result<(), CodeError> {
        let membership = self.member(relay).await?;
        code::redeem(&membership, code, &self.ticket()).await
    }

    /// The membership in a relay that has been joined.
    async fn member(&self, relay: &Ticket) -> Result<Arc<Membership>, CodeError> {
        let relayed = |error| CodeError::Relay(ConnectError::Relay(relay.addresses().to_vec(), error));
        let membership = member::membership(self, relay).map_err(relayed)?;
        self.joined(&membership).await.map_err(relayed)?;
        Ok(membership)
    }

    /// Waits until this end is a member. Whoever takes the connection and says nothing is no relay.
    async fn joined(&self, membership: &Membership) -> Result<(), RelayError> {
        let patience = 2 * self.connect_timeout();
        tokio::time::timeout(patience, membership.joined()).await.unwrap_or(Err(RelayError::Gone)).map(|_| ())
    }
}
