/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * FAST's estimates and window law (crates/cc: law/fast/estimator.rs, window.rs).
 *
 *   each sample:  baseRTT = min(baseRTT, rtt)
 *                 avgRTT += (rtt - avgRTT) * min(weight, 3/w)
 *   target:       w' = (1 - gamma) w + gamma (old * baseRTT/avgRTT + alpha), at least 2
 *   when:         in every second round trip, at most once in 10 ms, outside the dead band
 *   how:          an increase segment by segment with the ACKs, a decrease at once
 *
 * A subflow of a connection has its share of alpha, at least 2 segments (coupled.h).
 *
 * Citation: fast-2006 eq. 8.
 */
#ifndef AB_WINDOW_H
#define AB_WINDOW_H

#include "state.h"

#define AB_WINDOW_MIN (2 * AB_ONE)
/* At and below this window an increase is not spread over ACKs. */
#define AB_WINDOW_SMALL (4 * AB_ONE)
/* The least time between two updates, ns. */
#define AB_PERIOD 10000000ULL

AB_INLINE void ab_forget(struct ab_state *s)
{
	s->base = 0;
	s->average = 0;
}

AB_INLINE int ab_is_known(const struct ab_state *s)
{
	return s->base && s->average;
}

/* avgRTT in ns. */
AB_INLINE u64 ab_average_rtt(const struct ab_state *s)
{
	return s->average >> AB_SUB_NS;
}

/* The weight of a sample; 3 << 56 < 2^58. */
AB_INLINE u64 ab_weight_at(ab_segments window, u64 most)
{
	return ab_min(most, (3ULL << (AB_POINT + AB_WEIGHT)) / window);
}

/* rtt is above 0 and at most AB_RTT_MAX. */
AB_INLINE void ab_on_rtt(struct ab_state *s, u64 rtt, u64 most)
{
	u64 sample = rtt << AB_SUB_NS;

	s->base = s->base ? ab_min(s->base, rtt) : rtt;
	if (s->average)
		s->average = ab_average(s->average, sample, ab_weight_at(s->window, most));
	else
		s->average = sample;
}

/*
 * Segments queued of `old` in flight, old (avgRTT - baseRTT)/avgRTT, before the division, and
 * `segments` of that; both 2^-6 segments * ns: 2^96 / 2^34.
 */
AB_INLINE u64 ab_queued(const struct ab_state *s, ab_segments old)
{
	return ab_product(old, ab_excess(s->average, s->base << AB_SUB_NS), 34);
}

AB_INLINE u64 ab_of_average(const struct ab_state *s, ab_segments segments)
{
	return ab_product(segments, s->average, 34);
}

/* A subflow's part of alpha or beta: 2^41 * 2^16. */
AB_INLINE ab_segments ab_part_of(ab_segments all, u64 share)
{
	return share < AB_WHOLE ? ab_max(all * share >> AB_SHARE, ab_min(all, AB_WINDOW_MIN)) : all;
}

/* gamma * 2^44 <= 2^60. */
AB_INLINE ab_segments ab_target(const struct ab_settings *p, ab_segments alpha,
				ab_segments window, ab_segments old, u64 ratio)
{
	u64 gamma = p->gamma;
	ab_segments fits = ab_scale(old, ratio) + alpha;
	u64 rest = (1ULL << AB_GAMMA) - gamma;
	ab_segments target = (rest * window >> AB_GAMMA) +
			     (gamma * ab_min(fits, AB_WINDOW_MAX) >> AB_GAMMA);

	return ab_max(target, AB_WINDOW_MIN);
}

/* Every second round trip, by the clock: it is over when more than one RTT has passed. */
AB_INLINE void ab_schedule(struct ab_state *s, u64 now, u64 rtt)
{
	if (!s->has_schedule) {
		s->has_schedule = 1;
		s->began = now;
		s->is_open = 1;
	}
	if (now - s->began > rtt) {
		s->began = now;
		s->is_open = !s->is_open;
	}
}

AB_INLINE int ab_is_due(const struct ab_state *s, u64 now)
{
	return s->is_open && (!s->has_updated || now - s->updated >= AB_PERIOD);
}

AB_INLINE ab_segments ab_turn_to(struct ab_state *s, ab_segments window, ab_segments target)
{
	s->pending = ab_excess(target, window);
	return ab_min(window, target);
}

AB_INLINE ab_segments ab_hand_out(struct ab_state *s, ab_segments window, ab_segments acked)
{
	ab_segments step = ab_min(s->pending, window > AB_WINDOW_SMALL ? acked : window);

	s->pending -= step;
	return window + step;
}

#endif
