/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The start: the window doubles each round trip, paced, until a queue shows that it is ours
 * (crates/cc: law/anabranch/grow.rs).
 */
#ifndef AB_GROW_H
#define AB_GROW_H

#include "core.h"

/* The start ends with at least so many segments queued: on slow paths a burst is a queue. */
#define AB_GROW_ALPHA_LEAST AB_COUNT(10.0)
/* The delay has followed if it grew by this part of the growth of the window. */
#define AB_FOLLOWED AB_PART(0.4)
/* After so many doublings at another's queue the start is over. */
#define AB_FOREIGN_MOST 6
/* Rounded up, as three of 20 segments are no more than this. */
#define AB_GROW_LOSSES_MOST (AB_PART(0.15) + 1)
/* A route that is longer by less needs hardly more window. */
#define AB_ROUTE_KNOWN AB_PART(1.1)
#define AB_GROW_AFTER_LOSS AB_PART(0.7)

struct ab_grow {
	ab_time check_at;		/* the window stands still since then; 0: it does not */
	ab_span check_rtt;
	ab_segments check_flight;
	ab_time checked_at;
	ab_segments known;		/* what the path carries; 0: not known */
	u32 foreign;			/* checks that found another's queue */
	u32 reserved;
};

/* Segments that are to be queued at the end of the start. */
AB_INLINE ab_segments ab_grow_alpha(const struct ab_model *m)
{
	return ab_min(ab_max(m->alpha_full, AB_GROW_ALPHA_LEAST), ab_alpha_left(m));
}

AB_INLINE void ab_grow_end_at(struct ab_core *c, const struct ab_settings *p, ab_segments fits)
{
	ab_clock_restart(&c->clock, c->model.now, p->drain_interval);
	c->model.own_delay = 0;
	c->window = ab_min(c->window, fits);
}

/* The size of the path is known: what is in flight without the queue, and alpha. */
AB_INLINE void ab_grow_end(struct ab_core *c, const struct ab_settings *p)
{
	const struct ab_model *m = &c->model;

	ab_grow_end_at(c, p, ab_without_queue(c, m->old, m->rtt) + ab_grow_alpha(m));
}

AB_INLINE void ab_grow_lose(struct ab_core *c, const struct ab_settings *p)
{
	c->window = ab_times(c->window, AB_GROW_AFTER_LOSS);
	ab_grow_end(c, p);
}

/* Segments of the flight a round trip ago that an RTT of `rtt` shows in the queue. */
AB_INLINE ab_segments ab_grow_queued(const struct ab_model *m, ab_span rtt)
{
	ab_span delay = rtt - m->base - m->noise;

	return delay > 0 ? ab_mul_div(m->old, delay, rtt) : 0;
}

/* Returns whether the start is over. */
AB_INLINE int ab_grow_on_ack(struct ab_core *c, const struct ab_settings *p, struct ab_grow *g,
			     const struct ab_ack *ack)
{
	struct ab_model *m = &c->model;
	ab_segments enough;

	if (ack->is_limited)
		return 0;
	if (ab_has_round(m) && ab_loses_more(m, AB_GROW_LOSSES_MOST)) {
		ab_grow_lose(c, p);
		return 1;
	}
	if (g->check_at) {
		s64 growth;

		if (ab_since(m->now, g->check_at) < ab_stimes(m->mean, AB_PART(1.25)))
			return 0;
		growth = ab_part((s64)(c->window - g->check_flight), g->check_flight);
		growth = ab_most(growth, AB_PART(0.05));
		g->check_at = 0;
		if (ab_part(m->rtt - g->check_rtt, g->check_rtt) >= (s64)ab_times(growth, AB_FOLLOWED) ||
		    g->foreign >= AB_FOREIGN_MOST) {
			ab_grow_end(c, p);
			return 1;
		}
		g->foreign++;
		return 0;
	}
	enough = ab_max(ab_grow_alpha(m) / 2, 4 * AB_ONE);
	if (ab_grow_queued(m, m->rtt) < enough || m->rtt - m->base <= m->tolerance || g->foreign) {
		c->window += ack->acked;
		if (g->known && c->window >= g->known) {
			ab_grow_end_at(c, p, g->known);
			/* The mean may hold the silence before a timeout. */
			c->clock.next = m->now + ab_of_own(p, m->base);
			return 1;
		}
	}
	if (ab_grow_queued(m, m->standing) >= enough && ab_queue(m) > m->tolerance) {
		int has_grown = ab_since(m->now, g->checked_at) >= m->mean &&
				c->window >= ab_times(m->old, AB_PART(1.25));

		if (!g->foreign || has_grown) {
			g->checked_at = m->now;
			g->check_at = m->now;
			g->check_rtt = m->standing;
			g->check_flight = ab_min(m->old, c->window);
		}
	}
	return 0;
}

/* Returns whether the start is over: by a loss at a queue, or too many. */
AB_INLINE int ab_grow_on_loss(struct ab_core *c, const struct ab_settings *p)
{
	if (ab_queue_most(&c->model) <= c->model.tolerance &&
	    !ab_loses_more(&c->model, AB_GROW_LOSSES_MOST))
		return 0;
	ab_grow_lose(c, p);
	return 1;
}

#endif
