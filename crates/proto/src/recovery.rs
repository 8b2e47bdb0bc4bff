//! Loss recovery: what was sent, what of it arrived, what is lost. It knows no streams.
//!
//! `scoreboard` records, for the whole connection, as sequence space is one; `rack` decides by time what is lost, `rtt`
//! estimates, `episode` says what is being repaired, `rounds` counts, `delivery_rate` keeps the best of them,
//! `pacer` spaces, `retransmission_log` keeps what was sent again, `law` what the controller said: one of each for a path. `control` puts a path's
//! together around its controller, in the order that controllers rely on.

pub(crate) mod control;
pub(crate) mod delivery_rate;
pub(crate) mod episode;
pub(crate) mod law;
pub(crate) mod pacer;
pub(crate) mod prr;
pub(crate) mod rack;
pub(crate) mod retransmission_log;
pub(crate) mod rounds;
pub(crate) mod rtt;
pub(crate) mod scoreboard;
