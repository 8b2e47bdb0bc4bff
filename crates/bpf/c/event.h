/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * One event as a record: what tests feed to the law, on the host and in the kernel
 * (crates/bpf/src/event.rs has the same layout).
 */
#ifndef AB_EVENT_H
#define AB_EVENT_H

#include "law.h"

enum ab_kind {
	AB_EVENT_ACK,
	AB_EVENT_DUP_ACKS,
	AB_EVENT_TIMEOUT,
	AB_EVENT_ECN,
	AB_EVENT_RECOVERED,
	AB_EVENT_UNDO,
	AB_EVENT_IDLE,
	AB_EVENT_AFTER_TIMEOUT,
	AB_EVENT_PATH_CHANGED,
};

#define AB_FLAG_SHORT 1
#define AB_FLAG_LIMITED 2
#define AB_FLAG_RECOVERY 4
#define AB_FLAG_RANDOM 8

struct ab_event {
	u32 kind;			/* enum ab_kind */
	u32 flags;
	u64 now;			/* ns */
	ab_segments acked;
	ab_segments old;
	u64 rtt;			/* ns; 0: no sample */
};

AB_INLINE void ab_handle(struct ab_state *s, const struct ab_settings *p,
			 const struct ab_event *event)
{
	struct ab_ack ack = {};
	u32 kind = event->kind, flags = event->flags;

	if (kind == AB_EVENT_ACK) {
		ack.now = event->now;
		ack.acked = event->acked;
		ack.old = event->old;
		ack.rtt = event->rtt;
		ack.is_short = flags & AB_FLAG_SHORT;
		ack.is_limited = flags & AB_FLAG_LIMITED;
		ack.in_recovery = flags & AB_FLAG_RECOVERY;
		ab_on_arrival(s, ack.now);
		ab_on_ack(s, p, &ack);
	} else if (kind == AB_EVENT_DUP_ACKS) {
		ab_on_loss(s, p, AB_DUP_ACKS, flags & AB_FLAG_RANDOM);
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
