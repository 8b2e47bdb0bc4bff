/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What all modes share (crates/cc: law/anabranch.rs). */
#ifndef AB_CORE_STATE_H
#define AB_CORE_STATE_H

#include "clock.h"

/* A rival is confirmed so much later, or ten round trips: the queue has returned by then. */
#define AB_CONFIRM AB_SPAN(1.25)

struct ab_core {
	ab_segments window;		/* only the present mode changes it */
	struct ab_model model;
	struct ab_clock clock;
};

/* The time after which a drain that found a rival is repeated. */
AB_INLINE ab_time ab_confirms_after(const struct ab_core *c)
{
	return ab_ns(ab_most(AB_CONFIRM, 10 * c->model.mean));
}

AB_INLINE ab_time ab_beside_rival(const struct ab_core *c, const struct ab_settings *p)
{
	return ab_doubled(p->drain_interval, ab_ns(AB_ROUNDS_BESIDE_RIVAL * c->model.mean));
}

AB_INLINE ab_time ab_of_own(const struct ab_settings *p, ab_span round)
{
	return ab_doubled(p->drain_interval, ab_ns(AB_ROUNDS_OF_OWN * round));
}

/* The flight without the queue: `window * base/rtt`. */
AB_INLINE ab_segments ab_without_queue(const struct ab_core *c, ab_segments window, ab_span rtt)
{
	return ab_mul_div(window, c->model.base, rtt);
}

#endif
