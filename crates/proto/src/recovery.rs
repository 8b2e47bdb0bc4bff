//! Loss recovery: which segments are in flight, delivered or lost. It does not depend on streams.
//!
//! One `scoreboard` records the segments of the whole connection, because they share one sequence space. Each path has:
//! * `timing`, its time constants, and `rtt`, the RTT estimator;
//! * `detection`, how losses are detected, and `rack`, which detects them by time;
//! * `episode`, the current recovery, and `retransmission_log`, which detects spurious losses;
//! * `delivery_rate`, and of `anabranch_cc` `Rounds` and `Account`: round trips, and what was delivered and lost;
//! * `pacer`, and `law`, the state of the controller.
//!
//! `control` combines them around the controller, in the order on which controllers rely.

pub(crate) mod control;
pub(crate) mod delivery_rate;
pub(crate) mod detection;
pub(crate) mod episode;
pub(crate) mod law;
pub(crate) mod pacer;
pub(crate) mod prr;
pub(crate) mod rack;
pub(crate) mod retransmission_log;
pub(crate) mod rtt;
pub(crate) mod scoreboard;
pub(crate) mod timing;
