/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CCaFR: after fast recovery the window is updated with each ACK, until ACKs are even
 * (crates/cc: law/fast/refill.rs, the reading `RECOMMENDED`).
 *
 *   fast recovery ends:             FIRST_SERIES
 *   IPD ~ avgIPD and RTT ~ avgRTT:  OFF
 *   FIRST_SERIES:                   w += 1/w for each segment
 *   IPD > 3 avgIPD:                 FILLING, from the next ACK
 *   FILLING:                        w = min(2w, target from the RTT of this ACK)
 *
 * Citation: emfast-2019 sec. 3, Algorithm 1 and eq. 2.
 */
#ifndef AB_REFILL_H
#define AB_REFILL_H

#include "window.h"

/* avgIPD is smoothed with weight 1/256. */
#define AB_IPD_WEIGHT (1ULL << (AB_WEIGHT - 8))

/* To be called for every ACK, also for duplicates and in fast recovery. */
AB_INLINE void ab_on_arrival(struct ab_state *s, u64 now)
{
	u64 ipd;

	s->is_even = 0;
	s->is_gap = 0;
	if (s->has_arrival) {
		ipd = ab_min(ab_excess(now, s->arrival), AB_RTT_MAX) << AB_SUB_NS;
		s->ipd = s->has_ipd ? ab_average(s->ipd, ipd, AB_IPD_WEIGHT) : ipd;
		s->has_ipd = 1;
		/* Within a tenth: 10 * 2^52 < 2^56. */
		s->is_even = 10 * ab_distance(ipd, s->ipd) <= s->ipd;
		s->is_gap = ipd > 3 * s->ipd;
	}
	s->has_arrival = 1;
	s->arrival = now;
}

/* The window after an ACK; the mode is not OFF. */
AB_INLINE ab_segments ab_refill(struct ab_state *s, const struct ab_settings *p,
				const struct ab_ack *ack, u64 rtt)
{
	ab_segments window = s->window;
	u64 sample = rtt << AB_SUB_NS;

	/* Within 0.3 %: 1000 * 2^52 < 2^62. */
	if (s->is_even && 1000 * ab_distance(sample, s->average) <= 3 * s->average)
		s->mode = AB_OFF;
	if (s->mode == AB_FILLING)
		window = ab_min(ab_target(p, ab_part_of(p->alpha, ack->share), window, ack->old,
					  ab_ratio(s->base, rtt)), 2 * window);
	else
		window += ab_quotient(ack->acked, window);
	if (s->is_gap && s->mode == AB_FIRST_SERIES)
		s->mode = AB_FILLING;
	return window;
}

#endif
