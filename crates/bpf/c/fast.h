/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * FAST with the parts of emfast-2019 and rrfast-2017 (crates/cc: law/fast.rs).
 *
 *   window.h   the estimates and the window law
 *   refill.h   after fast recovery, if settings.refill
 *   reroute.h  the reset of baseRTT, if settings.reroute
 *   a loss:    w = max(w/2, 2); a timeout: w = 2
 *
 * Differs from the Rust in:
 *   - the window is at most 2^20 segments, an RTT at most 68 s.
 */
#ifndef AB_FAST_H
#define AB_FAST_H

#include "refill.h"
#include "reroute.h"

/* The value of a sample: that of a short segment does not lower the baseRTT of full ones. */
AB_INLINE u64 ab_of_full(struct ab_state *s, u64 rtt, u32 is_short)
{
	if (is_short)
		return s->has_full && ab_is_known(s) ? ab_max(rtt, s->base) : rtt;
	if (!s->has_full) {
		s->has_full = 1;
		ab_forget(s);
	}
	return rtt;
}

AB_INLINE void ab_measure(struct ab_state *s, const struct ab_settings *p, u64 now, u64 rtt)
{
	ab_on_rtt(s, rtt, p->weight);
	if (p->reroute && ab_is_longer(s, now, rtt)) {
		s->reroutes++;
		ab_forget(s);
		ab_on_rtt(s, rtt, p->weight);
	}
}

/* The window after an ACK outside fast recovery, for a sender that fills it. */
AB_INLINE ab_segments ab_advance(struct ab_state *s, const struct ab_settings *p,
				 const struct ab_ack *ack, u64 rtt)
{
	u64 average = ab_average_rtt(s);
	ab_segments window = s->window, target;
	u64 queued = ab_queued(s, ack->old);
	u64 ratio = ab_ratio(s->base, average);
	ab_segments alpha = ab_part_of(p->alpha, ack->share);
	ab_segments beta = ab_part_of(p->beta, ack->share);

	ab_schedule(s, ack->now, rtt);
	s->is_increasing = s->average < ((s->base + p->threshold) << AB_SUB_NS);
	if (p->refill && s->mode != AB_OFF) {
		s->pending = 0;
		return ab_refill(s, p, ack, rtt);
	}
	if (s->is_increasing) {
		s->pending = 0;
		return window + ack->acked;
	}
	if ((queued < ab_of_average(s, alpha) || queued >= ab_of_average(s, beta)) &&
	    ab_is_due(s, ack->now)) {
		s->has_updated = 1;
		s->updated = ack->now;
		target = ab_target(p, alpha, window, ack->old, ratio);
		if (p->reroute)
			ab_on_update(s, ack->now, window, target, rtt);
		window = ab_turn_to(s, window, target);
	}
	return ab_hand_out(s, window, ack->acked);
}

AB_INLINE void ab_fast_on_ack(struct ab_state *s, const struct ab_settings *p,
			      const struct ab_ack *ack)
{
	ab_segments window;
	u64 rtt = ab_min(ack->rtt, AB_RTT_MAX);

	if (ack->in_recovery)
		return;
	if (rtt) {
		rtt = ab_of_full(s, rtt, ack->is_short);
		ab_measure(s, p, ack->now, rtt);
	}
	if (!ab_is_known(s))
		return;
	if (ack->is_limited &&
	    ab_queued(s, ack->old) <= ab_of_average(s, ab_part_of(p->alpha, ack->share))) {
		s->pending = 0;
		return;
	}
	window = ab_min(ab_advance(s, p, ack, rtt ? rtt : ab_average_rtt(s)), AB_WINDOW_MAX);
	s->window = ack->is_limited ? ab_min(window, s->window) : window;
}

AB_INLINE ab_segments ab_fast_halved(ab_segments window)
{
	return ab_min(window, ab_max(window / 2, AB_WINDOW_MIN));
}

AB_INLINE void ab_fast_on_loss(struct ab_state *s, enum ab_signal signal)
{
	s->before = s->window;
	s->pending = 0;
	s->mode = AB_OFF;
	if (signal == AB_TIMEOUT)
		s->window = ab_min(s->window, AB_WINDOW_MIN);
	else
		s->window = ab_fast_halved(s->window);
}

AB_INLINE void ab_fast_on_recovered(struct ab_state *s, const struct ab_settings *p)
{
	if (p->refill)
		s->mode = AB_FIRST_SERIES;
}

AB_INLINE void ab_fast_on_undo(struct ab_state *s)
{
	if (s->before) {
		s->window = ab_max(s->window, s->before);
		s->before = 0;
		s->mode = AB_OFF;
	}
}

AB_INLINE void ab_fast_on_idle(struct ab_state *s, const struct ab_settings *p)
{
	s->pending = 0;
	s->window = ab_min(s->window, p->initial_window);
}

#endif
