//! The keys of `[topology]`, for the reference: [`crate::document`] writes it out before keys are read.

use schemars::{JsonSchema, json_schema};
use serde::de::{self, Deserialize, Deserializer};

use crate::document::{PORTS_MAX, SIZE_MAX};
use crate::load::values::inline_schema;

/// Links of a network of a known shape. The common keys of all links of one kind are a table with the keys of a link, except `id`,
/// `from`, `to` and `count`: `access = { rate = "1Gbit/s", delay = "1ms" }`.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "topology", tag = "kind")]
#[expect(dead_code, reason = "topologies are written out before the keys are read")]
pub(crate) enum TopologyKeys {
    /// Sources `s0`, `s1`, ... and destinations `d0`, `d1`, ... with the link `bottleneck` between them, from `left` to
    /// `right`. Sources are linked by `access0`, ..., destinations by `exit0`, ...
    Dumbbell {
        /// The number of sources, and of destinations.
        pairs: Size,
        /// The link in the middle.
        bottleneck: Template,
        /// The other links.
        access: Template,
    },
    /// Routers `r0`, `r1`, ... in a row, with a link `hop0`, `hop1`, ... from each to the next. `s` and `d` are at both ends of
    /// the row, `a0` and `b0` at both ends of `hop0`, and so on.
    ParkingLot {
        /// The number of links in the row.
        hops: Size,
        /// The keys of each of them.
        hop: Template,
        /// The other links: `access` and `exit` of `s` and `d`, `access0` and `exit0`, ...
        access: Template,
    },
    /// From `s` over `a` (the links `first0`, `last0`) or over `b` (`first1`, `last1`) to `d`.
    TwoPaths {
        /// The link from `a` to `d`.
        first: Template,
        /// The link from `b` to `d`.
        second: Template,
        /// The links from `s`.
        access: Template,
    },
    /// A fat tree of switches with k ports (Al-Fares et al., SIGCOMM 2008), with k^3/4 hosts `h0`, `h1`, ... and 5k^2/4
    /// switches: `e<pod>-<i>`, `a<pod>-<i>` and cores `c<i>`.
    FatTree {
        /// Ports of a switch: an even number, up to 26.
        k: Size,
        /// The keys of each link.
        link: Template,
        /// If present, there is a flow `f<i>` from each host `h<i>` to the host whose number is larger by this, modulo the number of
        /// hosts.
        stride: Option<Size>,
        /// The keys of these flows.
        flow: Option<Template>,
    },
}

/// A number of elements; its limit depends on the shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size;

/// A table that is read when the topology is written out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template;

/// Types that are never decoded: see the head of this file.
macro_rules! written_out {
    ($type:ident, $name:literal, $schema:tt) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                de::IgnoredAny::deserialize(deserializer).map(|_| Self)
            }
        }

        inline_schema!($type, $name, |_| json_schema!($schema));
    };
}

written_out!(Size, "size", { "type": "integer", "minimum": 1, "maximum": SIZE_MAX.max(PORTS_MAX) });
written_out!(Template, "template", { "type": "object" });
