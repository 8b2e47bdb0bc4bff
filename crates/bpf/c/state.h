/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a law knows: its settings, its state of one connection, and what an event tells.
 * The words are those of crates/cc (controller.rs, law/fast/), where each is defined.
 */
#ifndef AB_STATE_H
#define AB_STATE_H

#include "event.h"

enum ab_base { AB_FAST, AB_RENO };

/*
 * Settings of a law; one copy for all its connections, which user space may change at
 * any time. User space keeps the ranges; crates/bpf/src/settings.rs has the same order.
 */
struct ab_settings {
	ab_segments initial_window;	/* 1 to 1000 segments */
	ab_segments alpha;		/* 1 to 100,000 segments */
	ab_segments beta;		/* 0 to 100,000 segments */
	u64 gamma;			/* 2^-16; above 0, at most 1 */
	u64 threshold;			/* ns; multiplicative increase below it */
	u64 weight;			/* 2^-32; of a sample in avgRTT */
	u64 base;			/* enum ab_base */
	u64 refill;			/* 1: CCaFR of emfast-2019 */
	u64 reroute;			/* 1: the rule of rrfast-2017 */
	u64 composite;			/* 1: the loss policy of ctcp-2019 */
	char name[16];			/* of the law; the programs of a control group ask for it */
};

enum ab_mode { AB_OFF, AB_FIRST_SERIES, AB_FILLING };
enum ab_repair { AB_NO_REPAIR, AB_RANDOM, AB_CONGESTION };
enum ab_latest { AB_NO_LOSS, AB_KEPT, AB_TOLD };

/*
 * The state of one connection. In the kernel it is icsk_ca_priv: 104 bytes.
 */
struct ab_state {
	ab_segments window;		/* at least 1 segment, at most AB_WINDOW_MAX */
	ab_segments before;		/* the window before the latest loss; 0: none */
	union {
		ab_segments pending;	/* fast: what an increase still has to give */
		ab_segments ssthresh;	/* reno */
	};
	union {
		u64 base;		/* fast: ns; 0: not known */
		ab_segments ssthresh_before; /* reno */
	};
	u64 average;			/* avgRTT, 2^-16 ns; 0: not known */
	u64 began;			/* ns; when the round trip began */
	u64 updated;			/* ns; when the target was last computed */
	u64 arrival;			/* ns; of the last ACK */
	u64 ipd;			/* avgIPD, 2^-16 ns */
	u64 watch_until;		/* ns; 0: no decrease is watched */
	u64 watch_least;		/* ns; the least RTT of the watch */
	/* The driver's: what the ACK at hand has shown. */
	u32 rtt_us;			/* 0: no sample */
	u32 flight;			/* segments when the acknowledged one left */
	u32 lost;			/* the kernel's count of losses when recovery began */
	u32 has_arrival : 1;
	u32 has_ipd : 1;
	u32 is_even : 1;		/* the IPD of this ACK equals avgIPD */
	u32 is_gap : 1;			/* the IPD of this ACK is a gap */
	u32 has_schedule : 1;
	u32 is_open : 1;		/* the target may be computed in this round trip */
	u32 has_updated : 1;
	u32 has_full : 1;		/* a full segment was among the samples */
	u32 is_increasing : 1;		/* multiplicatively, at the last ACK */
	u32 mode : 2;			/* enum ab_mode: of CCaFR */
	u32 repair : 2;			/* enum ab_repair */
	u32 latest : 2;			/* enum ab_latest */
	u32 seems_random : 1;		/* the driver's: the evidence at the last loss */
	u32 ticks : 8;			/* the driver's */
	u32 reroutes : 8;		/* modulo 256 */
};

_Static_assert(sizeof(struct ab_state) == 104, "the state fits icsk_ca_priv");

#endif
