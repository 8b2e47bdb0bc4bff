/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * When to drain: all flows of a queue at the same time (crates/cc: law/anabranch/clock.rs).
 *
 * Differs from the Rust in: `ab_clock_begin` and its kind have the interval as a parameter,
 * as settings may change.
 */
#ifndef AB_CLOCK_H
#define AB_CLOCK_H

#include "model.h"

/* The round trips between two drains of our own queue: each costs about half of one. */
#define AB_ROUNDS_OF_OWN 26
/* The same beside a rival: a drain takes two to five. */
#define AB_ROUNDS_BESIDE_RIVAL 12
/* Half a round trip after the flight is at its least, a round trip after the drain began. */
#define AB_DIP_ROUNDS AB_PART(1.5)
#define AB_REFILL_ROUNDS 2
#define AB_LATER_ROUNDS 3
#define AB_LATER AB_SPAN(0.3)
#define AB_OTHER_DIP_ROUNDS 8
/* 1 s doubled so often is more than 12 times the longest RTT, 68 s. */
#define AB_DOUBLINGS 10

/* The least RTT in some time. */
struct ab_dip {
	ab_span rtt;			/* AB_NONE: none */
	ab_time at;
};

struct ab_clock {
	ab_time next;			/* AB_NEVER before the first drain is set */
	ab_time ended;			/* the end of the latest drain; 0: none */
	struct ab_dip deepest;		/* since the latest drain began */
	struct ab_dip own;		/* of that drain */
	struct ab_dip later;		/* in the half interval after it, after a queue */
	u32 is_in_phase;		/* the phase is that of a drain that emptied the queue */
	u32 has_moved;			/* the next drain */
	u32 has_refilled;
	u32 had_queue;			/* since it was last empty */
};

AB_INLINE void ab_forget_dips(struct ab_clock *c)
{
	AB_CLEAR(c->deepest);
	AB_CLEAR(c->own);
	AB_CLEAR(c->later);
	c->deepest.rtt = AB_NONE;
	c->own.rtt = AB_NONE;
	c->later.rtt = AB_NONE;
}

AB_INLINE void ab_clock_init(struct ab_clock *c)
{
	c->next = AB_NEVER;
	ab_forget_dips(c);
}

AB_INLINE void ab_hear(struct ab_dip *dip, ab_span rtt, ab_time at)
{
	if (rtt < dip->rtt) {
		dip->rtt = rtt;
		dip->at = at;
	}
}

/* As ab_hear; of two dips that are equally deep the later counts. */
AB_INLINE void ab_hear_latest(struct ab_dip *dip, const struct ab_model *m)
{
	if (m->rtt < dip->rtt) {
		dip->rtt = m->rtt;
		dip->at = m->now;
	} else if (m->rtt < dip->rtt + (m->tolerance >> 1) &&
		   ab_since(m->now, dip->at) > AB_OTHER_DIP_ROUNDS * m->mean) {
		dip->at = m->now;
	}
}

/* Watches the dips of the RTT. */
AB_INLINE void ab_clock_on_ack(struct ab_clock *c, const struct ab_model *m, ab_time interval,
			       int is_draining)
{
	ab_span after = ab_since(m->now, c->own.at), queue = m->rtt - m->base;

	if (queue > 2 * m->tolerance)
		c->had_queue = 1;
	if (after > AB_REFILL_ROUNDS * m->mean && queue > m->tolerance)
		c->has_refilled = 1;
	ab_hear_latest(&c->deepest, m);
	if (is_draining)
		ab_hear(&c->own, m->rtt, m->now);
	else if (c->has_refilled && after > ab_most(AB_LATER_ROUNDS * m->mean, AB_LATER) &&
		 after < interval * 32768)
		ab_hear(&c->later, m->rtt, m->now);
}

/* A flow that has not drained with others takes the phase of the first empty queue. */
AB_INLINE void ab_clock_join(struct ab_clock *c, const struct ab_model *m, ab_time interval)
{
	if (!c->had_queue || m->rtt - m->base >= m->tolerance)
		return;
	c->had_queue = 0;
	if (!c->is_in_phase && ab_since(m->now, c->ended) > 3 * m->mean) {
		c->next = m->now + interval;
		c->is_in_phase = 1;
	}
}

AB_INLINE int ab_is_due(const struct ab_clock *c, ab_time now)
{
	return now >= c->next;
}

/* The usual interval, doubled until it is `least` or more. */
AB_INLINE ab_time ab_doubled(ab_time interval, ab_time least)
{
#pragma GCC unroll 10
	for (u32 doublings = 0; doublings < AB_DOUBLINGS; doublings++)
		interval <<= interval < least;
	return interval;
}

/* A drain begins. */
AB_INLINE void ab_clock_begin(struct ab_clock *c, ab_time now)
{
	c->next = ab_least(c->next, now);
	ab_forget_dips(c);
	c->has_refilled = 0;
	c->has_moved = 0;
}

/* The next drain is an interval later. */
AB_INLINE void ab_skip(struct ab_clock *c, ab_time now, ab_time interval)
{
	c->next = (c->next == AB_NEVER ? now : c->next) + interval;
	if (c->next < now + (interval >> 1))
		c->next = now + interval;
}

/* A drain has ended; the next is `interval` after its begin. */
AB_INLINE void ab_clock_end(struct ab_clock *c, ab_time now, ab_time interval, u32 is_in_phase)
{
	c->ended = now;
	c->is_in_phase = is_in_phase;
	ab_skip(c, now, interval);
}

/* A drain has been due for a quarter of the interval: it is left out. */
AB_INLINE void ab_skip_if_late(struct ab_clock *c, ab_time now, ab_time interval)
{
	if (now - c->next > interval >> 2)
		c->next += interval;
}

/* A drain is due, and the queue is empty without one: others drain. */
AB_INLINE void ab_pass(struct ab_clock *c, ab_time now, ab_time interval, ab_span mean)
{
	c->next = now + interval - ab_ns(ab_times(mean, AB_DIP_ROUNDS));
	c->is_in_phase = 1;
}

/* The flow has just found the path's size: its first drain is an interval later. */
AB_INLINE void ab_clock_restart(struct ab_clock *c, ab_time now, ab_time interval)
{
	c->ended = now;
	c->next = now + interval;
	c->is_in_phase = 0;
}

/* Whether the next drain is due within half of `interval`. */
AB_INLINE int ab_is_near(const struct ab_clock *c, ab_time now, ab_time interval)
{
	return c->next - now < interval >> 1;
}

/* Moves the drain that is due to one interval after another flow's dip; 0 if ours is as good. */
AB_INLINE int ab_moves(struct ab_clock *c, const struct ab_model *m, ab_time interval)
{
	ab_span apart = ab_since(c->deepest.at, c->own.at);
	ab_time next, now = m->now;

	if (c->has_moved)
		return 0;
	if (c->deepest.rtt < c->own.rtt - m->tolerance && (apart > m->mean || -apart > m->mean))
		next = c->deepest.at;
	else if (c->later.rtt < c->own.rtt + (m->tolerance >> 1) && c->own.rtt < m->base + m->tolerance)
		next = c->later.at;
	else
		return 0;
	next += interval - ab_ns(ab_times(m->mean, AB_DIP_ROUNDS));
	if (next <= now)
		next += ((u64)(now - next) + interval - 1) / interval * interval;
	if (next > now + interval)
		return 0;
	c->next = next;
	c->has_moved = 1;
	c->is_in_phase = 1;
	return 1;
}

#endif
