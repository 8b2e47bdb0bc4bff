//! Loss recovery: what is in flight, delivered or lost. It knows no streams.
//!
//! One `scoreboard` records segments for the whole connection, because sequence space is one. Each path has: `timing`, its time constants; `detection`, how
//! losses are detected; `rack`, which detects
//! losses by time; `rtt`, the RTT estimator; `episode`, the present recovery; `rounds`; `delivery_rate`; `progress`, what
//! has been delivered and lost; `pacer`;
//! `retransmission_log`, for the detection of spurious losses; `law`, the state of the controller. `control` combines them around
//! the controller, in the order that controllers rely on.

pub(crate) mod control;
pub(crate) mod delivery_rate;
pub(crate) mod detection;
pub(crate) mod episode;
pub(crate) mod law;
pub(crate) mod pacer;
pub(crate) mod progress;
pub(crate) mod prr;
pub(crate) mod rack;
pub(crate) mod retransmission_log;
pub(crate) mod rounds;
pub(crate) mod rtt;
pub(crate) mod scoreboard;
pub(crate) mod timing;
