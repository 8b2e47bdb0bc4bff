/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Standard TCP (crates/cc: law/reno.rs).
 *
 *   below ssthresh:  w += 1 for each acknowledged segment
 *   from ssthresh:   w += 1/w
 *   loss:            ssthresh = max(w/2, 2), w = ssthresh; timeout: w = 1
 *
 * Citation: rfc-5681, rfc-3465.
 */
#ifndef AB_RENO_H
#define AB_RENO_H

#include "state.h"

AB_INLINE void ab_reno_on_ack(struct ab_state *s, const struct ab_ack *ack)
{
	ab_segments window = s->window, below;

	if (ack->in_recovery || ack->is_limited)
		return;
	below = ab_min(ab_excess(s->ssthresh, window), ack->acked);
	window += below;
	window += ab_quotient(ack->acked - below, window);
	s->window = ab_min(window, AB_WINDOW_MAX);
	s->is_increasing = s->window < s->ssthresh;
}

AB_INLINE ab_segments ab_reno_halved(ab_segments window)
{
	return ab_max(window / 2, 2 * AB_ONE);
}

AB_INLINE void ab_reno_on_loss(struct ab_state *s, enum ab_signal signal)
{
	s->before = s->window;
	s->ssthresh_before = s->ssthresh;
	s->ssthresh = ab_reno_halved(s->window);
	if (signal == AB_TIMEOUT)
		s->window = AB_ONE;
	else
		s->window = ab_min(s->window, s->ssthresh);
}

AB_INLINE void ab_reno_on_undo(struct ab_state *s)
{
	if (s->before) {
		s->window = ab_max(s->window, s->before);
		s->ssthresh = ab_max(s->ssthresh, s->ssthresh_before);
		s->before = 0;
	}
}

#endif
