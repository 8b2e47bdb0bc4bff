/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The modes, and what leads from one to another: the policy (crates/cc:
 * law/anabranch/mode.rs, whose head has the table).
 *
 * Differs from the Rust in: the state of Cruise or Compete stays where it is during a drain,
 * instead of inside of the drain's.
 */
#ifndef AB_MODE_H
#define AB_MODE_H

#include "compete.h"
#include "cruise.h"
#include "drain.h"
#include "grow.h"

/* A rival needs so many drains as proof. */
#define AB_DOUBTS 2
/* A drain of fewer segments shortens the RTT by less than others do. */
#define AB_WINDOW_JUDGED (12 * AB_ONE)
/* The end of a rival, too. */
#define AB_RETURNS 2

enum ab_mode { AB_GROW, AB_CRUISE, AB_DRAIN, AB_COMPETE };

struct ab_state {
	struct ab_core core;
	ab_segments before_loss;	/* the window before the latest loss, for an undo */
	struct ab_grow grow;
	struct ab_cruise cruise;
	struct ab_compete compete;
	struct ab_drain drain;
	struct ab_ack ack;		/* the one at hand, and what a drain has shown with it */
	struct ab_shown shown;
	ab_flag mode;			/* enum ab_mode: its state owns the window */
	ab_flag outcome;		/* enum ab_outcome: of the drain, with the ACK at hand */
};

AB_INLINE void ab_to_grow(struct ab_state *s)
{
	AB_CLEAR(s->grow);
	s->mode = AB_GROW;
}

/* On a path that carries `rate`, if a drain has shown one. */
AB_INLINE void ab_to_known(struct ab_state *s, ab_rate rate)
{
	const struct ab_model *m = &s->core.model;

	ab_to_grow(s);
	if (m->rate_shown)
		s->grow.known = ab_max(ab_in(rate, m->base), s->core.window);
}

/* A drain has found a longer route, which carries the rate of before. */
AB_INLINE void ab_to_route(struct ab_state *s, const struct ab_shown *shown)
{
	struct ab_model *m = &s->core.model;
	ab_span before = m->base;

	ab_set_base(m, shown->bottom);
	s->core.window = s->drain.window;
	if (m->base > (ab_span)ab_times(before, AB_ROUTE_KNOWN))
		ab_to_known(s, m->rate_shown);
	else
		ab_to_grow(s);
}

AB_INLINE void ab_to_cruise(struct ab_state *s, ab_segments window)
{
	ab_cruise_enter(&s->core, &s->cruise, window);
	s->mode = AB_CRUISE;
}

AB_INLINE void ab_back_to_cruise(struct ab_state *s, ab_segments window)
{
	ab_cruise_resume(&s->core, &s->cruise, window);
	s->mode = AB_CRUISE;
}

AB_INLINE void ab_to_compete(struct ab_state *s, const struct ab_settings *p, ab_segments window)
{
	struct ab_core *c = &s->core;

	ab_clock_end(&c->clock, c->model.now, ab_beside_rival(c, p), 0);
	ab_compete_enter(c, &s->compete, window);
	s->mode = AB_COMPETE;
}

AB_INLINE void ab_back_to_compete(struct ab_state *s)
{
	ab_compete_resume(&s->core, &s->compete, s->drain.window, s->drain.began);
	s->mode = AB_COMPETE;
}

/* After a drain in Cruise. */
AB_INLINE void ab_after_cruise(struct ab_state *s, const struct ab_settings *p,
			       const struct ab_shown *shown)
{
	struct ab_core *c = &s->core;
	struct ab_model *m = &c->model;
	struct ab_clock *clock = &c->clock;
	struct ab_cruise *cruise = &s->cruise;
	ab_segments window = s->drain.window, fits;
	ab_span rtt = s->drain.rtt;
	ab_time now = m->now, interval = ab_of_own(p, m->mean);
	u32 is_in_phase = clock->is_in_phase;
	int is_ours, is_pushed_aside, is_ours_lately = cruise->is_share_shown;

	if (shown->is_floor && !shown->is_empty && shown->was_share_ours) {
		ab_set_base(m, shown->bottom);
		ab_clock_end(clock, now, interval, is_in_phase);
		cruise->doubts = 0;
		ab_back_to_cruise(s, ab_without_queue(c, window, rtt) + ab_alpha(m));
		return;
	}
	is_ours = shown->is_known && (shown->is_share_ours || shown->was_share_ours);
	/* Without a queue the application may have sent less. */
	is_pushed_aside = shown->is_known && shown->is_empty && !is_ours &&
			  s->drain.is_rate_taken;
	cruise->is_share_shown = is_ours || (is_ours_lately && !is_pushed_aside);
	if (is_pushed_aside && !is_ours_lately) {
		ab_to_compete(s, p, ab_window_most(m));
		return;
	}
	if (ab_is_ours(c, shown) || !shown->is_known) {
		/* On a long path alpha is a queue too short to tell. */
		m->rate_shown = s->drain.rate;
		m->own_delay = shown->is_known ? shown->delay : m->own_delay >> 1;
		ab_clock_end(clock, now, interval, 1);
		cruise->doubts = 0;
		fits = ab_without_queue(c, window, rtt) + ab_alpha(m) / 2;
		fits = ab_times(fits, AB_PART(1.0) - p->decrease);
		ab_back_to_cruise(s, shown->is_empty ? ab_min(window, fits) : window);
		return;
	}
	if (cruise->doubts && ab_is_route(c, shown, AB_PART(0.15))) {
		ab_clock_end(clock, now, interval, is_in_phase);
		ab_to_route(s, shown);
		return;
	}
	if (p->rival == AB_YIELD) {
		/* Known now: the window is not held for the sake of another look. */
		m->own_delay = shown->delay;
		ab_clock_end(clock, now, interval, 0);
		ab_back_to_cruise(s, window);
		return;
	}
	cruise->doubts++;
	if (cruise->doubts >= AB_DOUBTS) {
		ab_to_compete(s, p, window);
		ab_compete_enter_late(&s->compete, ab_fair(shown, window));
		return;
	}
	ab_clock_end(clock, now, ab_confirms_after(c), 0);
	ab_back_to_cruise(s, window);
}

/* After a drain in Compete that needs no return. */
AB_INLINE void ab_after_compete(struct ab_state *s, const struct ab_settings *p,
				const struct ab_shown *shown)
{
	struct ab_core *c = &s->core;
	struct ab_model *m = &c->model;
	ab_segments window = s->drain.window;

	if (shown->is_known && ab_is_ours(c, shown)) {
		ab_clock_end(&c->clock, m->now, p->drain_interval, 1);
		m->own_delay = shown->delay;
		m->shown = m->base;
		ab_to_cruise(s, ab_without_queue(c, window, s->drain.rtt) + ab_alpha(m));
		s->cruise.is_share_shown = shown->is_share_ours;
		return;
	}
	ab_clock_end(&c->clock, m->now, ab_beside_rival(c, p), c->clock.is_in_phase);
	if (shown->is_known) {
		s->compete.ours = 0;
		if (ab_is_route(c, shown, AB_PART(0.1))) {
			ab_to_route(s, shown);
			return;
		}
	}
	ab_back_to_compete(s);
}

/* After the window has come back from a drain in Compete that found the queue to be ours. */
AB_INLINE void ab_after_return(struct ab_state *s, int has_returned)
{
	struct ab_core *c = &s->core;
	struct ab_model *m = &c->model;
	ab_span rtt = s->drain.rtt;

	s->compete.ours = has_returned ? s->compete.ours + 1 : 0;
	if (s->compete.ours >= AB_RETURNS) {
		ab_segments fits = ab_mul_div(s->drain.window, ab_least(m->base, rtt), rtt);

		m->own_delay = rtt - m->base;
		m->shown = m->base;
		ab_to_cruise(s, fits + ab_alpha(m));
		s->cruise.is_share_shown = 1;
		return;
	}
	if (has_returned)
		c->clock.next = m->now + ab_confirms_after(c);
	ab_back_to_compete(s);
}

/* The mode after an ACK. */
AB_INLINE void ab_after_ack(struct ab_state *s, const struct ab_settings *p)
{
	const struct ab_ack *ack = &s->ack;
	struct ab_core *c = &s->core;
	u64 part = 0;

	if (s->mode == AB_GROW) {
		if (ab_grow_on_ack(c, p, &s->grow, ack))
			ab_to_cruise(s, c->window);
	} else if (s->mode == AB_CRUISE) {
		part = ab_cruise_on_ack(c, p, &s->cruise, ack);
	} else if (s->mode == AB_COMPETE && !ack->is_limited &&
		   ab_have_others_drained(&s->compete, &c->model)) {
		ab_pass(&c->clock, c->model.now, p->drain_interval, c->model.mean);
		ab_to_cruise(s, ab_without_queue(c, c->window, c->model.mean) + ab_alpha(&c->model));
		s->cruise.is_share_shown = 1;
	} else if (s->mode == AB_COMPETE) {
		part = ab_compete_on_ack(c, p, &s->compete, ack);
	} else {
		s->outcome = ab_drain_on_ack(c, p, &s->drain, &s->shown);
		if (s->outcome == AB_GOES_ON)
			return;
		if (s->outcome != AB_SHOWN)
			ab_after_return(s, s->outcome == AB_RETURNED);
		else if (s->drain.is_of_compete)
			ab_after_compete(s, p, &s->shown);
		else
			ab_after_cruise(s, p, &s->shown);
	}
	if (part) {
		ab_drain_begin(c, &s->drain, s->mode == AB_COMPETE, part);
		s->mode = AB_DRAIN;
	}
}

/* The mode after a loss or a mark. */
AB_INLINE void ab_after_loss(struct ab_state *s, const struct ab_settings *p)
{
	struct ab_core *c = &s->core;
	int is_draining = s->mode == AB_DRAIN;
	ab_segments left, window = is_draining ? s->drain.window : c->window;

	if (s->mode == AB_GROW) {
		if (ab_grow_on_loss(c, p))
			ab_to_cruise(s, c->window);
	} else if (s->mode == AB_COMPETE || (is_draining && s->drain.is_of_compete)) {
		if (ab_compete_on_loss(c, p, &s->compete, window) && is_draining) {
			ab_skip(&c->clock, c->model.now, ab_beside_rival(c, p));
			s->mode = AB_COMPETE;
		}
	} else {
		left = ab_cruise_on_loss(c, p, &s->cruise, window);
		if (is_draining) {
			if (left) {
				s->drain.window = left;
				c->window = ab_min(c->window, left);
			}
			return;
		}
		ab_lose(&c->model, ab_alpha_least(&s->cruise, c->model.now));
		if (left)
			c->window = left;
		if (p->rival == AB_CUBIC && c->window < AB_WINDOW_JUDGED && ab_is_pressed(&c->model))
			ab_to_compete(s, p, c->window);
	}
}

/* The mode after a timeout. */
AB_INLINE void ab_after_timeout(struct ab_state *s)
{
	ab_forget_losses(&s->core.model);
	if (s->mode == AB_COMPETE || (s->mode == AB_DRAIN && s->drain.is_of_compete)) {
		ab_compete_on_timeout(&s->core, &s->compete);
		s->mode = AB_COMPETE;
		return;
	}
	s->core.window = AB_ONE;
	ab_to_known(s, ab_max(s->core.model.rate_shown, s->core.model.rate_most));
}

#endif
