//! Dialogues between two engines.

use anabranch_cc::{Settings, registry};
use anabranch_units::{Span, Time};

use crate::testing::{Fault, Marked, Pair, config, ms};
use crate::{CloseReason, Config, Content, Event, Flags, OpenError, Segment, SeqNumber, Sid, State};

mod closing;
mod handshake;
mod hostile;
mod paths;
mod random;
mod recovery;
mod streams;
