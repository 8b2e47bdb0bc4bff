/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A rival fills the queue: the window of CUBIC (crates/cc: law/anabranch/compete.rs,
 * law/cubic.rs).
 *
 * Citation: rfc-9438.
 *
 * Differs from the Rust in: the curve ends 256 s from its plateau, 6.7 million segments.
 */
#ifndef AB_COMPETE_H
#define AB_COMPETE_H

#include "core.h"

/* After a loss a drain is worth while behind a buffer of 0.6 products, if 0.2 of one stand. */
#define AB_DRAINS_FROM AB_PART(1.6)
#define AB_QUEUE_AFTER_LOSS AB_PART(1.2)
/* The window of a drain after a loss. */
#define AB_COMPETE_AFTER_LOSS AB_PART(0.65)
/* RFC 9438: the constants of the curve and of the reduction. */
#define AB_C 0.4
#define AB_BETA 0.7
#define AB_ALPHA_FRIENDLY AB_PART(3.0 * (1.0 - AB_BETA) / (1.0 + AB_BETA))
/* Losses of the last window or 150 segments that are too many to be random. */
#define AB_COMPETE_LOSSES AB_PART(0.05)
/* A queue of so much of what it was is empty, and one of so much of a full buffer is short. */
#define AB_COMPETE_EMPTY AB_PART(0.2)
#define AB_SHORT AB_PART(0.2)
/* What happened so many round trips ago has no part in a queue. */
#define AB_QUIET_ROUNDS 8
#define AB_CURVE_SPAN AB_SPAN(256.0)

/* CUBIC's variables. */
struct ab_curve {
	ab_segments window_max;
	ab_segments threshold;
	ab_time began;			/* of the epoch, with the first ACK after a loss; 0: not yet */
	ab_segments plateau;
	ab_span k;
	ab_segments friendly;		/* the window of Reno */
};

struct ab_compete {
	struct ab_curve cubic;
	ab_span full;			/* the queueing delay at losses: that of a full buffer */
	ab_time reduced_at;		/* the window; the latest time */
	ab_time lost_at;
	u32 ours;			/* drains in a row that found the queue to be ours */
	u32 drains_after_loss;
	u32 has_varied;			/* there was a queue at a loss: the least RTT is none of a full buffer */
};

/*
 * The time to the plateau: the cube root of (plateau - window)/C, in seconds.
 *
 * x = (plateau - window)/C has 24 bits after the point and is below 2^47. y = x 2^shift, from
 * 2^60 and below 2^63 with a shift that 3 divides, has a root from 2^20 and below 2^21. From
 * 1.5 2^20, 50 % too much or 25 % too little, Newton's steps leave 18, 3, 0.1 %, 10^-6 and
 * less than one; a last one has ten bits after the point. A root of 2^31 times 10^9 is below
 * 2^61; it has 10 + 24/3 + shift/3 bits after the point, and a span 16.
 */
AB_INLINE ab_span ab_time_to_plateau(ab_segments distance)
{
	u64 x = ab_times(distance, AB_PART(1.0 / AB_C)), y, root = 3ULL << 19, square;
	u32 thirds;

	if (!x)
		return 0;
	thirds = (ab_zeros(x) - 1) / 3;
	y = x << (3 * thirds);
#pragma GCC unroll 10
	for (u32 step = 0; step < 5; step++)
		root = (2 * root + y / (root * root)) / 3;
	square = root * root;
	root = ((2 * root << 10) + ab_mul_div(y, 1 << 10, square)) / 3;
	return root * 1000000000 >> (2 + thirds);
}

/* W_cubic(time); below 2^50. d has 24 bits after the point: 2^32 at 256 s. */
AB_INLINE ab_change ab_curve_at(const struct ab_curve *c, ab_span time)
{
	ab_span from = ab_clamp(time - c->k, -AB_CURVE_SPAN, AB_CURVE_SPAN);
	u64 d = ab_mul_div(ab_size(from), 256, 1000000000);
	ab_change cube = ab_times(ab_product(ab_product(d, d, 24), d, 24), AB_PART(AB_C));

	return (ab_change)c->plateau + (from < 0 ? -cube : cube);
}

/* The window after `acked` more segments (RFC 9438 sec. 4.2 to 4.4). */
AB_INLINE ab_segments ab_curve_grown(struct ab_curve *c, ab_time now, ab_span rtt,
				     ab_segments window, ab_segments acked)
{
	ab_segments more = ab_mul_div(acked, AB_ONE, window);
	ab_change at, target;
	ab_span time;

	if (window < c->threshold)
		return window + acked;
	if (!c->began) {
		c->began = now;
		c->plateau = ab_max(c->window_max, window);
		c->k = ab_time_to_plateau(c->plateau - window);
		c->friendly = window;
	}
	c->friendly += c->friendly < c->window_max ? ab_times(more, AB_ALPHA_FRIENDLY) : more;
	time = ab_since(now, c->began);
	at = ab_curve_at(c, time);
	if (at < (ab_change)c->friendly)
		return ab_max(window, c->friendly);
	target = ab_clamp(ab_curve_at(c, time + rtt), window, window + window / 2);
	return window + ab_mul_div(target - window, acked, window);
}

AB_INLINE void ab_curve_lose(struct ab_curve *c, ab_segments window)
{
	/* RFC 9438 sec. 4.7: fast convergence. */
	c->window_max = window < c->window_max ? ab_times(window, AB_PART(0.5 * (1.0 + AB_BETA))) : window;
	c->threshold = ab_max(ab_times(window, AB_PART(AB_BETA)), 2 * AB_ONE);
	c->began = 0;
}

AB_INLINE void ab_curve_time_out(struct ab_curve *c, ab_segments window)
{
	c->window_max = window;
	c->threshold = ab_max(ab_times(window, AB_PART(AB_BETA)), 2 * AB_ONE);
	c->began = 0;
}

/* Begins with a window of `window`, which holds the share of the link that the flow has. */
AB_INLINE void ab_compete_enter(struct ab_core *c, struct ab_compete *r, ab_segments window)
{
	AB_CLEAR(*r);
	r->full = ab_most(ab_queue_most(&c->model), 0);
	r->cubic.window_max = window;
	r->cubic.threshold = window;
	r->reduced_at = c->model.now;
	r->lost_at = c->model.now;
	c->window = ab_max(window, 2 * AB_ONE);
}

/* Begins beside a rival that was there first: doubles up to `fair` or the first loss. */
AB_INLINE void ab_compete_enter_late(struct ab_compete *r, ab_segments fair)
{
	r->cubic.window_max = ab_max(r->cubic.window_max, fair);
	r->cubic.threshold = ab_max(r->cubic.threshold, fair);
}

/* Goes on after a drain, during which the curve of CUBIC stood still. */
AB_INLINE void ab_compete_resume(struct ab_core *c, struct ab_compete *r, ab_segments window,
				 ab_time drain_began)
{
	c->window = window;
	if (r->cubic.began)
		r->cubic.began += c->model.now - drain_began;
	r->reduced_at = c->model.now;
}

/* Returns the part of the window that a drain leaves, if one begins; else 0. */
AB_INLINE u64 ab_compete_on_ack(struct ab_core *c, const struct ab_settings *p,
				struct ab_compete *r, const struct ab_ack *ack)
{
	struct ab_model *m = &c->model;
	struct ab_clock *clock = &c->clock;
	ab_time now = m->now, interval = ab_beside_rival(c, p);
	ab_span queue = ab_queue(m);

	ab_keep_base(m);
	if (r->drains_after_loss && ab_since(now, r->lost_at) >= m->mean && !ab_is_falling(m)) {
		r->drains_after_loss = 0;
		if (queue > 2 * m->tolerance &&
		    m->standing > (ab_span)ab_times(m->base, AB_QUEUE_AFTER_LOSS)) {
			clock->next = now;
			return AB_COMPETE_AFTER_LOSS;
		}
	}
	if (ab_is_due(clock, now) && ab_moves(clock, m, interval))
		return 0;
	if (ab_is_due(clock, now) && !ack->is_limited && !r->drains_after_loss) {
		/* A queue that falls by itself would look like one that falls with our window. */
		int is_rising = m->standing > (ab_span)ab_times(m->peak, AB_PART(0.97)) &&
				m->rtt >= m->standing;

		if (queue > 2 * m->tolerance && is_rising &&
		    ab_since(now, r->reduced_at) > 2 * m->mean) {
			u64 part = ab_part(m->base, m->standing);

			if (!m->shown)
				return AB_PART(0.7);
			return ab_min(ab_max(part, AB_PART(0.7)), AB_PART(0.9));
		}
		ab_skip_if_late(clock, now, interval);
	}
	if (!ack->in_recovery && !ack->is_limited)
		c->window = ab_curve_grown(&r->cubic, now, m->mean, c->window, ack->acked);
	return 0;
}

/* A loss at a window of `window`; whether it reduces the window. */
AB_INLINE int ab_compete_on_loss(struct ab_core *c, const struct ab_settings *p,
				 struct ab_compete *r, ab_segments window)
{
	struct ab_model *m = &c->model;
	ab_span delay = ab_queue_most(m);

	r->has_varied |= r->full > 2 * m->tolerance;
	if (!(m->shown || r->has_varied) ||
	    delay >= ab_most(ab_stimes(r->full, AB_PART(0.3)), m->tolerance))
		r->full = ab_most(delay, ab_stimes(r->full, AB_PART(0.8)));
	else if (!ab_loses_more_long(m, AB_COMPETE_LOSSES))
		return 0; /* Without a queue: a random one. */
	ab_curve_lose(&r->cubic, window);
	c->window = r->cubic.threshold;
	r->reduced_at = m->now;
	r->lost_at = m->now;
	r->drains_after_loss = m->peak_long > (ab_span)ab_times(m->base, AB_DRAINS_FROM) &&
			       ab_is_near(&c->clock, m->now, ab_beside_rival(c, p));
	return 1;
}

/* Whether others have drained: a queue far from a full buffer is empty, by no loss or drain of ours. */
AB_INLINE int ab_have_others_drained(const struct ab_compete *r, const struct ab_model *m)
{
	ab_span queue = ab_queue_most(m);

	return queue > 2 * m->tolerance && queue < ab_stimes(r->full, AB_SHORT) &&
	       ab_queue(m) <= ab_most(ab_stimes(queue, AB_COMPETE_EMPTY), m->tolerance) &&
	       ab_since(m->now, r->lost_at) > AB_QUIET_ROUNDS * m->mean &&
	       ab_since(m->now, r->reduced_at) > AB_QUIET_ROUNDS * m->mean;
}

AB_INLINE void ab_compete_on_timeout(struct ab_core *c, struct ab_compete *r)
{
	ab_curve_time_out(&r->cubic, c->window);
	c->window = AB_ONE;
	r->reduced_at = c->model.now;
	r->lost_at = c->model.now;
}

#endif
