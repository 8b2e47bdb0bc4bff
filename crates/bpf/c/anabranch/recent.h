/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The least and the largest value of a recent time (crates/cc: recent.rs). */
#ifndef AB_RECENT_H
#define AB_RECENT_H

#include "number.h"

/* The least value of the last one to two spans. All zero: none. */
struct ab_recent {
	ab_time since;			/* begin of the present span */
	s64 least;
	s64 before;			/* the least of the span before */
};

/* Adds `value` and returns the least value. */
AB_INLINE s64 ab_recent_least(struct ab_recent *r, ab_time now, s64 value, ab_span span)
{
	ab_span age = ab_since(now, r->since);

	if (age >= span) {
		r->before = age < 2 * span ? r->least : AB_NONE;
		r->since = now;
		r->least = AB_NONE;
	}
	r->least = ab_least(r->least, value);
	return ab_least(r->least, r->before);
}

/* The same for the largest value; `least` and `before` then hold negative ones. */
AB_INLINE s64 ab_recent_most(struct ab_recent *r, ab_time now, s64 value, ab_span span)
{
	return -ab_recent_least(r, now, -value, span);
}

#endif
