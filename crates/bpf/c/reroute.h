/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The reset of baseRTT: a decrease of the window after which the RTT does not come near
 * baseRTT shows a longer route (crates/cc: law/fast/base_rtt.rs, the reading `NOT_NEAR`).
 *
 *   the law shrinks the window:              watch the samples of two RTTs
 *   the least of them is above 1.5 baseRTT:  forget baseRTT and avgRTT
 *
 * Citation: rrfast-2017 sec. 4.
 */
#ifndef AB_REROUTE_H
#define AB_REROUTE_H

#include "window.h"

AB_INLINE void ab_on_update(struct ab_state *s, u64 now, ab_segments from, ab_segments to, u64 rtt)
{
	if (!s->watch_until && to < from) {
		s->watch_until = now + 2 * rtt;
		s->watch_least = AB_INFINITE;
	}
}

/* Whether the route is longer. baseRTT includes this sample. */
AB_INLINE int ab_is_longer(struct ab_state *s, u64 now, u64 rtt)
{
	if (!s->watch_until)
		return 0;
	s->watch_least = ab_min(s->watch_least, rtt);
	if (now < s->watch_until)
		return 0;
	s->watch_until = 0;
	return 2 * s->watch_least > 3 * s->base;
}

#endif
