/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The law `anabranch` (crates/cc: law/anabranch.rs, with the description and the limits).
 * Each file here is the one of the same name there:
 *
 *   recent.h, model.h   what is known of the path
 *   mode.h              the modes, and what leads from one to another
 *   grow.h, cruise.h, drain.h, compete.h, clock.h
 *   ../coupled.h        the share of one of several subflows, which the driver asks for
 *
 * These headers have no types of the kernel and compile for BPF and for the host, so that
 * the Rust and the C can be given the same events (crates/bpf/tests/same_law.rs).
 *
 * Differs from the Rust in: a window is at most 2^20 segments, an RTT at most 68 s; settings
 * change for existing connections, too. Each file says what else.
 */
#ifndef AB_LAW_H
#define AB_LAW_H

#include "mode.h"

/* After so long without an ACK the path is unknown: five minutes, as in RFC 7661 sec. 4.4.3. */
#define AB_KNOWN AB_SECONDS(300.0)

AB_INLINE void ab_init(struct ab_state *s, const struct ab_settings *p)
{
	AB_CLEAR(*s);
	s->core.window = p->initial_window;
	ab_model_init(&s->core.model, p);
	ab_clock_init(&s->core.clock);
}

/* The window in segments. */
AB_INLINE ab_segments ab_window(const struct ab_state *s)
{
	return ab_max(s->core.window, AB_ONE);
}

/* Whether the law wants two windows a round trip as its pace, and not the sender's own. */
AB_INLINE int ab_is_doubling(const struct ab_state *s)
{
	return s->mode == AB_GROW && !s->grow.check_at;
}

/* To be called with the ACK in s->ack. */
AB_INLINE void ab_on_ack(struct ab_state *s, const struct ab_settings *p)
{
	struct ab_core *c = &s->core;

	if (!ab_model_on_ack(&c->model, p, &s->ack, c->window))
		return;
	AB_FORGET();
	ab_clock_on_ack(&c->clock, &c->model, p->drain_interval, s->mode == AB_DRAIN);
	AB_FORGET();
	ab_after_ack(s, p);
	AB_FORGET();
	c->window = ab_min(c->window, AB_WINDOW_MAX);
}

AB_INLINE void ab_on_loss(struct ab_state *s, const struct ab_settings *p, u64 now,
			  enum ab_signal signal)
{
	s->before_loss = s->core.window;
	s->core.model.now = now + AB_EPOCH;
	if (signal == AB_TIMEOUT)
		ab_after_timeout(s);
	else
		ab_after_loss(s, p);
	s->core.window = ab_min(s->core.window, s->before_loss);
}

AB_INLINE void ab_on_undo(struct ab_state *s)
{
	s->core.window = ab_max(s->core.window, s->before_loss);
	if (s->mode == AB_GROW && s->grow.known)
		s->grow.known = ab_max(s->grow.known, s->core.window);
}

AB_INLINE void ab_on_restart(struct ab_state *s, const struct ab_settings *p, u64 now,
			     enum ab_restart restart)
{
	struct ab_model *m = &s->core.model;
	ab_segments carried = 0;

	if (restart == AB_PATH_CHANGED)
		ab_init(s, p);
	if (restart != AB_IDLE)
		return;
	/* What the path has carried without a queue; its sender is paced. */
	if (m->mean > 0 && (ab_time)now + AB_EPOCH - m->now < AB_KNOWN)
		carried = ab_window_most(m);
	s->core.window = ab_min(s->core.window, ab_max(carried, p->initial_window));
}

/* Tells the law of an event, for tests. */
AB_INLINE void ab_handle(struct ab_state *s, const struct ab_settings *p,
			 const struct ab_event *event)
{
	u32 kind = event->kind;

	if (kind == AB_EVENT_ACK) {
		ab_read_ack(event, &s->ack);
		ab_on_ack(s, p);
	} else if (kind == AB_EVENT_DUP_ACKS || kind == AB_EVENT_ECN) {
		ab_on_loss(s, p, event->now, AB_DUP_ACKS);
	} else if (kind == AB_EVENT_TIMEOUT) {
		ab_on_loss(s, p, event->now, AB_TIMEOUT);
	} else if (kind == AB_EVENT_UNDO) {
		ab_on_undo(s);
	} else if (kind == AB_EVENT_IDLE) {
		ab_on_restart(s, p, event->now, AB_IDLE);
	} else if (kind == AB_EVENT_PATH_CHANGED) {
		ab_on_restart(s, p, event->now, AB_PATH_CHANGED);
	} else if (kind == AB_EVENT_SHARE) {
		s->core.model.share = event->acked >> (AB_POINT - AB_SHARE);
		/* In the kernel an ACK follows at once; here a loss may. */
		ab_remember_alpha(&s->core.model, p);
	}
}

#endif
