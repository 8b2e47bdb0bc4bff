/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a law is told, and one such event as a record: what tests feed to the law, on the
 * host and in the kernel (crates/bpf/src/event.rs has the same layout).
 */
#ifndef AB_EVENT_H
#define AB_EVENT_H

#include "coupled.h"

/* An ACK that acknowledged something new. */
struct ab_ack {
	u64 now;			/* ns */
	ab_segments acked;		/* newly acknowledged */
	ab_segments lost;		/* newly known to be lost */
	ab_segments old;		/* flight when the newest of them left */
	ab_segments delivered;		/* since the newest of them left */
	u64 rtt;			/* ns; 0: no sample */
	ab_flag is_short;		/* the newest is less than half a full segment */
	ab_flag is_limited;		/* by the application, not by the window */
	ab_flag in_recovery;		/* fast recovery, this ACK included */
	u64 share;			/* of alpha, for fast.h: AB_WHOLE but for coupled subflows */
};

enum ab_signal { AB_DUP_ACKS, AB_TIMEOUT, AB_ECN };
enum ab_restart { AB_ESTABLISHED, AB_IDLE, AB_AFTER_TIMEOUT, AB_PATH_CHANGED };

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
	AB_EVENT_SHARE,
};

#define AB_FLAG_SHORT 1
#define AB_FLAG_LIMITED 2
#define AB_FLAG_RECOVERY 4
#define AB_FLAG_RANDOM 8

struct ab_event {
	u32 kind;			/* enum ab_kind */
	u32 flags;
	u64 now;			/* ns */
	ab_segments acked;		/* of AB_EVENT_SHARE: the share */
	ab_segments lost;
	ab_segments old;
	ab_segments delivered;
	u64 rtt;			/* ns; 0: no sample */
};

AB_INLINE void ab_read_ack(const struct ab_event *event, struct ab_ack *ack)
{
	ack->now = event->now;
	ack->acked = event->acked;
	ack->lost = event->lost;
	ack->old = event->old;
	ack->delivered = event->delivered;
	ack->rtt = event->rtt;
	ack->is_short = event->flags & AB_FLAG_SHORT;
	ack->is_limited = event->flags & AB_FLAG_LIMITED;
	ack->in_recovery = event->flags & AB_FLAG_RECOVERY;
	ack->share = AB_WHOLE;
}

#endif
