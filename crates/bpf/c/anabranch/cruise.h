/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The queue is ours: FAST's window, with a drain every 5 s
 * (crates/cc: law/anabranch/cruise.rs, whose head says what each part is for).
 */
#ifndef AB_CRUISE_H
#define AB_CRUISE_H

#include "core.h"

/* The part of the way to the goal in a round trip. */
#define AB_GAMMA_PART AB_PART(0.25)
#define AB_CRUISE_LEAST (2 * AB_ONE)
/* A queue that is so many times longer than expected may be another's. */
#define AB_SUSPICIOUS AB_PART(2.25)
/* A queue of so much of its usual length is empty. */
#define AB_EMPTY AB_PART(0.3)
/* After so many drains left out in a row one takes place. */
#define AB_PASSES_MOST 4
/* The window is at most this much larger than what the path carries. */
#define AB_ABOVE_CARRIED AB_PART(1.25)
#define AB_STEP AB_SPAN(0.05)
#define AB_CRUISE_LOSSES_MOST AB_PART(0.12)
#define AB_CRUISE_LOSSES_LONG AB_PART(0.08)
#define AB_CRUISE_AFTER_LOSS AB_PART(0.8)
/* Losses leave so much of alpha at least, and less after too many. */
#define AB_ALPHA_AFTER_LOSSES AB_PART(0.35)
#define AB_ALPHA_AFTER_MANY AB_PART(0.2)
/* Behind a policer the window stays at this part of what it has carried for two seconds. */
#define AB_CEILING AB_PART(0.95)
#define AB_HELD AB_SPAN(2.0)
#define AB_ABOVE_CEILING AB_PART(1.05)
/* So many round trips after a reduction the longest queue of four, and the losses, are those of the reduced window. */
#define AB_CRUISE_ROUNDS_OF_QUEUE 6
#define AB_CRUISE_ROUNDS_OF_LOSSES 3

struct ab_cruise {
	ab_span base;			/* that the window was made for */
	ab_time joined_until;		/* a drain of others that we joined */
	ab_segments joined_window;	/* the window and the RTT before it */
	ab_span joined_rtt;
	ab_segments step;		/* the next one into free room */
	ab_time reduced_at;		/* by a loss; 0: never */
	ab_time slow_until;		/* growth by single segments */
	ab_segments ceiling;		/* 0: none; the window does not grow above it */
	ab_time held_until;		/* until then */
	u32 doubts;
	u32 is_share_shown;
	u32 passes;
	u32 reserved;
};

AB_INLINE void ab_cruise_resume(struct ab_core *c, struct ab_cruise *r, ab_segments window)
{
	c->window = ab_max(window, AB_CRUISE_LEAST);
	r->base = c->model.base;
}

AB_INLINE void ab_cruise_enter(struct ab_core *c, struct ab_cruise *r, ab_segments window)
{
	AB_CLEAR(*r);
	r->step = AB_ONE;
	ab_cruise_resume(c, r, window);
}

/* Whether there is nothing to drain: the queue is short, and has just fallen or not for too long. */
AB_INLINE int ab_is_drained(const struct ab_cruise *r, const struct ab_model *m)
{
	ab_span queue = ab_queue(m);

	return queue < (ab_span)ab_times(m->expected, AB_EMPTY) &&
	       (queue < ab_stimes(m->peak_long - m->base, AB_EMPTY) || r->passes < AB_PASSES_MOST);
}

/* The base has fallen without a drain of ours: takes part in that of the others. */
AB_INLINE void ab_cruise_join(struct ab_core *c, const struct ab_settings *p, struct ab_cruise *r)
{
	struct ab_model *m = &c->model;
	ab_segments fits;

	if (m->base >= r->base - m->tolerance)
		return;
	if (m->now > r->joined_until) {
		r->joined_until = m->now + ab_ns(2 * m->mean);
		r->joined_window = c->window;
		r->joined_rtt = m->peak;
	}
	fits = ab_without_queue(c, r->joined_window, r->joined_rtt) + ab_alpha(m) / 2;
	fits = ab_times(fits, AB_PART(1.0) - p->decrease);
	c->window = ab_max(ab_min(c->window, fits), AB_CRUISE_LEAST);
	m->own_delay = ab_most(m->own_delay, r->joined_rtt - m->base);
	r->base = m->base;
	r->doubts = 0;
}

/* The change of the window by an ACK. */
AB_INLINE ab_change ab_cruise_step(const struct ab_core *c, struct ab_cruise *r,
				   const struct ab_ack *ack)
{
	const struct ab_model *m = &c->model;
	ab_segments window = c->window, acked = ack->acked, alpha = ab_alpha(m);
	ab_change goal = ab_mul_div(m->old, m->base, m->mean) + alpha, way = goal - (ab_change)window;
	ab_change law = ab_times(ab_mul_div(ab_size(way), acked, window), AB_GAMMA_PART);
	ab_span empty = ab_time_of(ab_max(alpha, 2 * AB_ONE) / 2, ab_max(m->rate, AB_RATE_ONE));
	ab_segments grown;
	u64 pace;

	if (way < 0)
		law = -law;
	empty = ab_least(empty, (ab_span)ab_times(m->base, AB_PART(0.03)) + AB_SPAN(0.001));
	if (m->low - m->base >= ab_most(m->noise, empty) || ack->is_limited) {
		u64 less = ab_mul_div(r->step, 4 * acked, window);

		r->step = ab_max(ab_excess(r->step, less), ab_times(alpha, AB_PART(0.05)));
		r->step = ab_max(r->step, AB_ONE);
		return law;
	}
	/* In proportion to the RTT: the steps of all flows are equal in rate and time. */
	pace = ab_min(ab_max(ab_part(m->mean, AB_STEP), AB_PART(0.25)), AB_PART(2.0));
	/* The steps of coupled subflows are one flow's together. */
	grown = (ab_times(r->step, pace) * m->share) >> AB_SHARE;
	grown = ab_mul_div(acked, ab_min(grown, window), window);
	if (m->now < r->slow_until) {
		r->step = AB_ONE;
	} else {
		r->step += ab_mul_div(r->step, ab_times(acked, ab_min(pace, AB_PART(1.0))), window);
		r->step = ab_min(r->step, window);
	}
	return ab_most(law, grown);
}

/* Too many losses: where there is no queue they show what the path carries. */
AB_INLINE void ab_hold(const struct ab_model *m, struct ab_cruise *r, ab_segments window)
{
	ab_segments fits = ab_min(m->carried, ab_without_losses(m, window));

	if (ab_queue_most(m) > m->tolerance)
		return;
	/* Many losses below the ceiling are random: it was none. */
	if (m->now < r->held_until &&
	    (!r->ceiling || window <= ab_times(r->ceiling, AB_ABOVE_CEILING)))
		r->ceiling = 0;
	else
		r->ceiling = ab_times(fits, AB_CEILING);
	r->held_until = m->now + ab_ns(AB_HELD);
}

/* The part of alpha that losses leave at least. */
AB_INLINE u64 ab_alpha_least(const struct ab_cruise *r, ab_time now)
{
	return now < r->slow_until ? AB_ALPHA_AFTER_MANY : AB_ALPHA_AFTER_LOSSES;
}

/* A loss while the window is `window`. Returns the window that it leaves, or 0 if it stays. */
AB_INLINE ab_segments ab_cruise_on_loss(const struct ab_core *c, const struct ab_settings *p,
					struct ab_cruise *r, ab_segments window)
{
	const struct ab_model *m = &c->model;
	ab_span explained = ab_time_of(m->alpha_full, ab_max(m->rate, AB_RATE_ONE));
	ab_span passed = ab_since(m->now, r->reduced_at);
	int is_long, are_many;

	explained = ab_most(explained, m->tolerance);
	is_long = ab_queue_most(m) > (ab_span)ab_times(explained, AB_PART(1.75));
	are_many = ab_loses_more(m, AB_CRUISE_LOSSES_MOST) || ab_loses_more_long(m, AB_CRUISE_LOSSES_LONG);
	if (!((is_long && passed > AB_CRUISE_ROUNDS_OF_QUEUE * m->mean) ||
	      (are_many && passed > AB_CRUISE_ROUNDS_OF_LOSSES * m->mean)))
		return 0;
	r->reduced_at = m->now;
	r->step = AB_ONE;
	if (are_many) {
		ab_hold(m, r, window);
		r->slow_until = ab_max(r->held_until, m->now) + p->drain_interval;
	}
	/* What was carried is known to fit. */
	window = ab_min(window, ab_max(m->carried, AB_ONE));
	return ab_max(ab_times(window, AB_CRUISE_AFTER_LOSS), AB_ONE);
}

/* Returns the part of the window that a drain leaves, if one begins; else 0. */
AB_INLINE u64 ab_cruise_on_ack(struct ab_core *c, const struct ab_settings *p,
			       struct ab_cruise *r, const struct ab_ack *ack)
{
	struct ab_model *m = &c->model;
	struct ab_clock *clock = &c->clock;
	ab_time now = m->now, interval = p->drain_interval, again;
	int is_suspicious, is_early, is_above;
	ab_segments alpha;
	ab_change step;

	if (!r->doubts)
		ab_clock_join(clock, m, interval);
	ab_cruise_join(c, p, r);
	alpha = ab_alpha(m);
	if (ack->is_limited && ab_queued(m, m->mean - m->base) <= alpha)
		return 0;
	is_suspicious = ab_queue(m) > (ab_span)ab_times(ab_most(m->expected, m->own_delay),
							AB_SUSPICIOUS) + m->tolerance;
	if (ab_is_due(clock, now) && !r->doubts && ab_is_drained(r, m)) {
		ab_pass(clock, now, interval, m->mean);
		r->passes++;
		m->own_delay = m->own_delay >> 1;
	}
	again = ab_confirms_after(c);
	if (ab_is_due(clock, now) && ab_moves(clock, m, r->doubts ? again : interval))
		return 0;
	is_early = is_suspicious && clock->is_in_phase && now - clock->ended > again;
	if (!ack->is_limited &&
	    (ab_is_due(clock, now) || (is_early && ab_since(now, r->reduced_at) > 3 * m->mean))) {
		u64 part = ab_mul_div(p->drain_part, m->base, m->standing);

		r->passes = 0;
		return ab_min(ab_max(part, AB_PART(0.35)), AB_PART(0.75));
	}
	/* A long recovery tells of its first loss only, however much is lost after it. */
	if (ack->lost && now - clock->ended > (ab_time)ab_ns(AB_CRUISE_ROUNDS_OF_LOSSES * m->mean) &&
	    ab_loses_more(m, AB_CRUISE_LOSSES_MOST)) {
		ab_segments left = ab_cruise_on_loss(c, p, r, c->window);

		if (left) {
			c->window = left;
			return 0;
		}
	}
	if (ack->in_recovery && ab_since(now, r->reduced_at) < 2 * m->mean)
		return 0;
	step = ab_cruise_step(c, r, ack);
	is_above = now < r->held_until && r->ceiling && c->window >= r->ceiling;
	is_above |= c->window > ab_times(m->carried, AB_ABOVE_CARRIED) + ab_max(alpha, 4 * AB_ONE);
	if ((step < 0 && (is_suspicious || r->doubts)) || (step > 0 && is_above))
		return 0;
	c->window = ab_most((ab_change)c->window + step, AB_CRUISE_LEAST);
	return 0;
}

#endif
