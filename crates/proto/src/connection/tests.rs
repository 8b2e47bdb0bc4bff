//! Tests of two connected engines.

use anabranch_cc::{Settings, registry};
use anabranch_units::{Span, Time};

use crate::testing::{Fault, Marked, Pair, config, ms, removes_mss, removes_multistream, removes_sack, removes_scale};
use crate::{CloseReason, Config, Content, Event, Flags, OpenError, Priority, Segment, SeqNumber, Sid, State};

mod ack_requests;
mod alive;
mod buffers;
mod closing;
mod corrupt;
mod credit;
mod datagrams;
mod doubled;
mod dup_acks;
mod ecn;
mod failover;
mod fallback;
mod flow_control;
mod giving_up;
mod handshake;
mod hostile;
mod life;
mod limits;
mod many_streams;
mod memory;
mod nonces;
mod options;
mod paths;
mod random;
mod rate_limit;
mod recovery;
mod stalled;
mod streams;
mod undo;
mod urgent;
mod wire_rules;
