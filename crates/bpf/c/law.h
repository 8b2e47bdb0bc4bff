/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The laws `fast`, `emfast`, `rrfast` and `composite`: one set of functions, told apart
 * by their settings (crates/bpf/src/settings.rs has the defaults of each).
 *
 * Composite TCP is a decorator, as in crates/cc/src/composite.rs: a random loss is
 * repaired, and the base law is told neither of it nor of the fast recovery.
 *
 * This header and those that it includes have no types of the kernel and compile for BPF
 * and for the host, so that the Rust and the C laws can be given the same events
 * (crates/bpf/tests/same_law.rs).
 *
 * Citation: ctcp-2019 sec. 3.
 */
#ifndef AB_LAW_H
#define AB_LAW_H

#include "fast.h"
#include "reno.h"

AB_INLINE void ab_init(struct ab_state *s, const struct ab_settings *p)
{
	struct ab_state empty = {};

	*s = empty;
	s->window = p->initial_window;
	if (p->base == AB_RENO)
		s->ssthresh = AB_INFINITE;
}

/* To be called after ab_on_arrival for an ACK that acknowledged something new. */
AB_INLINE void ab_on_ack(struct ab_state *s, const struct ab_settings *p, struct ab_ack *ack)
{
	/* [ctcp-2019] sec. 3: for the base law there is no fast recovery from a random loss. */
	if (s->repair == AB_RANDOM)
		ack->in_recovery = 0;
	if (p->base == AB_RENO)
		ab_reno_on_ack(s, ack);
	else
		ab_fast_on_ack(s, p, ack);
}

/* A loss that is congestion. */
AB_INLINE void ab_base_on_loss(struct ab_state *s, const struct ab_settings *p,
			       enum ab_signal signal)
{
	if (p->base == AB_RENO)
		ab_reno_on_loss(s, signal);
	else
		ab_fast_on_loss(s, signal);
}

AB_INLINE void ab_on_loss(struct ab_state *s, const struct ab_settings *p, enum ab_signal signal,
			  int is_random)
{
	s->latest = AB_TOLD;
	if (p->composite && signal == AB_DUP_ACKS && is_random) {
		s->latest = AB_KEPT;
		if (s->repair == AB_NO_REPAIR)
			s->repair = AB_RANDOM;
		return;
	}
	if (signal == AB_TIMEOUT)
		s->repair = AB_NO_REPAIR;
	else if (signal == AB_DUP_ACKS)
		s->repair = AB_CONGESTION;
	ab_base_on_loss(s, p, signal);
}

AB_INLINE void ab_on_recovered(struct ab_state *s, const struct ab_settings *p)
{
	if (s->repair != AB_RANDOM && p->base == AB_FAST)
		ab_fast_on_recovered(s, p);
	s->repair = AB_NO_REPAIR;
}

AB_INLINE void ab_on_undo(struct ab_state *s, const struct ab_settings *p)
{
	/* A loss that the base law was not told of leaves nothing to undo. */
	if (s->latest == AB_TOLD) {
		if (p->base == AB_RENO)
			ab_reno_on_undo(s);
		else
			ab_fast_on_undo(s);
	}
	s->latest = AB_NO_LOSS;
	s->repair = AB_NO_REPAIR;
}

AB_INLINE void ab_on_restart(struct ab_state *s, const struct ab_settings *p,
			     enum ab_restart restart)
{
	if (restart == AB_PATH_CHANGED)
		ab_init(s, p);
	else if (restart == AB_IDLE && p->base == AB_RENO)
		s->window = ab_min(s->window, p->initial_window);
	else if (restart == AB_IDLE)
		ab_fast_on_idle(s, p);
}

/* The window after a loss by duplicate ACKs. */
AB_INLINE ab_segments ab_halved(const struct ab_state *s, const struct ab_settings *p)
{
	return p->base == AB_RENO ? ab_reno_halved(s->window) : ab_fast_halved(s->window);
}

AB_INLINE ab_segments ab_window(const struct ab_state *s)
{
	return s->window;
}

/* Tells the law of an event, for tests. */
AB_INLINE void ab_handle(struct ab_state *s, const struct ab_settings *p,
			 const struct ab_event *event)
{
	u32 kind = event->kind;
	struct ab_ack ack = {};

	if (kind == AB_EVENT_ACK) {
		ab_read_ack(event, &ack);
		ab_on_arrival(s, ack.now);
		ab_on_ack(s, p, &ack);
	} else if (kind == AB_EVENT_DUP_ACKS) {
		ab_on_loss(s, p, AB_DUP_ACKS, event->flags & AB_FLAG_RANDOM);
	} else if (kind == AB_EVENT_TIMEOUT) {
		ab_on_loss(s, p, AB_TIMEOUT, 0);
	} else if (kind == AB_EVENT_ECN) {
		ab_on_loss(s, p, AB_ECN, 0);
	} else if (kind == AB_EVENT_RECOVERED) {
		ab_on_recovered(s, p);
	} else if (kind == AB_EVENT_UNDO) {
		ab_on_undo(s, p);
	} else if (kind == AB_EVENT_IDLE) {
		ab_on_restart(s, p, AB_IDLE);
	} else if (kind == AB_EVENT_AFTER_TIMEOUT) {
		ab_on_restart(s, p, AB_AFTER_TIMEOUT);
	} else if (kind == AB_EVENT_PATH_CHANGED) {
		ab_on_restart(s, p, AB_PATH_CHANGED);
	}
}

#endif
