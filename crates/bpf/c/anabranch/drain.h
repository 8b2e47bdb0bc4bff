/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A drain: the window is reduced, to see whose queue it is, and how long the path is without
 * one (crates/cc: law/anabranch/drain.rs, whose head has the theory).
 *
 * Differs from the Rust in: shares are compared without a division,
 * 1 - RTT after/RTT before with a share of 1 - window after/window before.
 */
#ifndef AB_DRAIN_H
#define AB_DRAIN_H

#include "core.h"

/* In the first step the window stays reduced for so much longer than a round trip. */
#define AB_HOLD AB_SPAN(0.1)
/* Further steps leave this of the window. */
#define AB_DEEPER AB_PART(0.65)
/* Half of a fair share beside one rival. */
#define AB_ASIDE AB_PART(0.25)
/* Smaller shares are not measured. */
#define AB_SHARE_LEAST AB_PART(0.05)
/* Six steps leave a tenth of the window. */
#define AB_STEPS_MOST 6
/* 10^-9, for what is divided by. */
#define AB_NO_PART 4
#define AB_NO_SPAN 65536

struct ab_drain {
	ab_segments window;		/* before */
	ab_span rtt;			/* before */
	ab_time began;
	ab_rate rate;			/* before */
	ab_span base;			/* before: a lower one is not shown yet */
	ab_time step_at;
	ab_segments step_window;	/* before this step */
	ab_span step_rtt;		/* before this step */
	ab_span step_least;		/* that shows the reduction; AB_NONE before that */
	ab_span return_bottom;		/* while the window is back */
	ab_span return_most;
	u32 number;			/* of the step */
	u32 is_returning;
	u32 is_of_compete;		/* the mode before */
	u32 is_rate_taken;		/* before it began */
};

/* What a drain has shown. */
struct ab_shown {
	ab_span bottom;
	ab_span delay;
	s64 fall;			/* 1 - RTT after/RTT before */
	s64 reduced;			/* 1 - window after/window before */
	u32 steps;
	ab_flag is_known;		/* there was enough of a queue to tell */
	ab_flag is_empty;
	ab_flag is_floor;		/* the last step no longer made the RTT shorter */
	ab_flag is_lower;		/* the base has become lower meanwhile */
	ab_flag is_share_ours;
	ab_flag was_share_ours;		/* in the steps before the last */
};

enum ab_outcome { AB_GOES_ON, AB_SHOWN, AB_RETURNED, AB_NOT_RETURNED };

/* Reduces the window to `part`. */
AB_INLINE void ab_drain_begin(struct ab_core *c, struct ab_drain *d, u32 is_of_compete, u64 part)
{
	struct ab_model *m = &c->model;

	ab_clock_begin(&c->clock, m->now);
	AB_CLEAR(*d);
	d->window = c->window;
	d->rtt = m->standing;
	d->began = m->now;
	d->is_rate_taken = ab_is_rate_taken(m);
	d->rate = ab_mul_div(m->carried, AB_PER_RATE, m->base);
	d->base = m->base;
	d->step_at = m->now;
	d->step_window = c->window;
	d->step_rtt = m->standing;
	d->step_least = AB_NONE;
	d->number = 1;
	d->is_of_compete = is_of_compete;
	c->window = ab_max(ab_times(c->window, part), 2 * AB_ONE);
}

/* 1 - after/before. */
AB_INLINE s64 ab_fall(s64 after, s64 before)
{
	return ab_part(before - after, before);
}

/* Whether the share, fall/reduced, is at least `part`; it is 0 if nothing is reduced. */
AB_INLINE int ab_has_share(s64 fall, s64 reduced, u64 part)
{
	return reduced > 0 && fall >= (s64)ab_times(reduced, part);
}

AB_INLINE void ab_show(const struct ab_core *c, const struct ab_settings *p,
		       const struct ab_drain *d, struct ab_shown *shown)
{
	const struct ab_model *m = &c->model;
	ab_span bottom = d->step_least, tolerance = m->tolerance, delay = d->rtt - m->base;
	s64 earlier = ab_most(ab_fall(d->step_window, d->window), AB_NO_PART);

	shown->bottom = bottom;
	shown->delay = delay;
	shown->fall = ab_fall(bottom, d->rtt);
	shown->reduced = ab_fall(c->window, d->window);
	shown->steps = d->number;
	shown->is_known = delay > 2 * tolerance;
	shown->is_empty = bottom - m->base <= ab_most(ab_stimes(delay, AB_PART(0.2)), tolerance);
	shown->is_floor = d->number > 1 && !ab_has_share(ab_fall(bottom, d->step_rtt),
							 ab_fall(c->window, d->step_window),
							 AB_PART(0.3));
	shown->is_lower = m->base < d->base - tolerance;
	shown->is_share_ours = ab_has_share(shown->fall, shown->reduced, p->ours);
	/* The share that all earlier steps found. */
	shown->was_share_ours = ab_has_share(ab_fall(d->step_rtt, d->rtt), earlier, p->ours);
}

/* Whether the queue is ours, or of flows that drain with us. */
AB_INLINE int ab_is_ours(const struct ab_core *c, const struct ab_shown *shown)
{
	return shown->is_share_ours || (shown->is_empty && c->model.shown);
}

/*
 * The window to reach beside one rival: half of the sum of all windows, which is the window over
 * the share, fall/reduced; at most ten windows. Who has half of that already keeps what it has.
 */
AB_INLINE ab_segments ab_fair(const struct ab_shown *shown, ab_segments window)
{
	if (ab_has_share(shown->fall, shown->reduced, AB_ASIDE))
		return window;
	if (!ab_has_share(shown->fall, shown->reduced, AB_SHARE_LEAST))
		return 10 * window;
	return ab_mul_div(window, shown->reduced, 2 * shown->fall);
}

/* Whether one drain is enough beside a rival: three steps, to the bottom or through 0.6. */
AB_INLINE int ab_is_decisive(const struct ab_shown *shown)
{
	return shown->steps >= 3 && (shown->is_empty ||
				     (shown->is_share_ours && shown->reduced >= (s64)AB_PART(0.6)));
}

/* Whether the RTT is that of a longer route: it did not fall with our window, nor varies. */
AB_INLINE int ab_is_route(const struct ab_core *c, const struct ab_shown *shown, u64 share_most)
{
	return !ab_has_share(shown->fall, shown->reduced, share_most) && ab_may_be_route(&c->model);
}

AB_INLINE int ab_goes_deeper(const struct ab_core *c, const struct ab_shown *shown)
{
	int is_unknown = (shown->is_empty && !c->model.shown) ||
			 (shown->is_lower && shown->is_share_ours);

	return shown->steps < AB_STEPS_MOST && c->window > 5 * AB_ONE / 2 && !shown->is_floor &&
	       (is_unknown || (shown->is_share_ours && !shown->is_empty));
}

/* Beside a rival: lets the window return if the queue seems to be ours. */
AB_INLINE int ab_returns(struct ab_core *c, const struct ab_settings *p, struct ab_drain *d,
			 const struct ab_shown *shown)
{
	if (!d->is_of_compete || !shown->is_known || !ab_is_ours(c, shown) || ab_is_decisive(shown))
		return 0;
	d->is_returning = 1;
	d->return_bottom = shown->bottom;
	d->return_most = 0;
	d->step_at = c->model.now;
	c->window = d->window;
	ab_clock_end(&c->clock, c->model.now, ab_beside_rival(c, p), c->clock.is_in_phase);
	return 1;
}

/* The window is back: is the queue? */
AB_INLINE enum ab_outcome ab_watch_return(const struct ab_core *c, struct ab_drain *d)
{
	ab_span before, back;

	d->return_most = ab_most(d->return_most, c->model.rtt);
	if (ab_since(c->model.now, d->step_at) < (ab_span)ab_times(d->rtt, AB_PART(2.2)))
		return AB_GOES_ON;
	before = ab_most(d->rtt - d->return_bottom, AB_NO_SPAN);
	back = d->return_most - d->return_bottom;
	if (back >= (ab_span)ab_times(before, AB_PART(0.65)) &&
	    back < (ab_span)ab_times(before, AB_PART(1.6)))
		return AB_RETURNED;
	return AB_NOT_RETURNED;
}

/* Returns how the drain ended, if it did. */
AB_INLINE enum ab_outcome ab_drain_on_ack(struct ab_core *c, const struct ab_settings *p,
					  struct ab_drain *d, struct ab_shown *shown)
{
	struct ab_model *m = &c->model;
	ab_span passed, visible, enough;
	s64 part;

	if (d->is_returning)
		return ab_watch_return(c, d);
	passed = ab_since(m->now, d->step_at);
	part = ab_part(c->window, d->step_window);
	/*
	 * One segment leaves for each that arrives until the flight is below the window; then
	 * it takes a round trip to see it.
	 */
	visible = ab_stimes((s64)AB_PART(1.9) - part, d->step_rtt);
	if (passed < visible)
		return AB_GOES_ON;
	d->step_least = ab_least(d->step_least, m->rtt);
	enough = visible + (ab_span)ab_times(d->step_rtt, AB_PART(0.4));
	if (d->number == 1)
		enough = ab_most(enough, d->step_rtt + AB_HOLD);
	if (passed < enough)
		return AB_GOES_ON;
	ab_show(c, p, d, shown);
	if (ab_goes_deeper(c, shown)) {
		d->number++;
		d->step_at = m->now;
		d->step_window = c->window;
		d->step_rtt = shown->bottom;
		d->step_least = AB_NONE;
		c->window = ab_max(ab_times(c->window, AB_DEEPER), 2 * AB_ONE);
		return AB_GOES_ON;
	}
	if (shown->is_floor && shown->is_empty)
		m->shown = m->base;
	return ab_returns(c, p, d, shown) ? AB_GOES_ON : AB_SHOWN;
}

#endif
