/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The subflows of one connection that wait in one queue share alpha, in proportion to their
 * rates (crates/cc: law/mpfast.rs):
 *
 *   share = x / sum of x over this subflow and those that share its queue, x = w/RTT
 *   shares the queue:  the queueing delays differ by at most an eighth of the larger, or half
 *                      a millisecond, for 8 rounds
 *   and no longer:     8 rounds in which they differ by more
 *
 * Each subflow writes its own place alone, so no lock is needed: two that take one place at
 * once notice at the next ACK.
 *
 * Citation: wvegas-2012, rfc-6356 sec. 2.
 *
 * Differs from the Rust in: at most four subflows; one without an ACK for two seconds counts
 * no longer.
 */
#ifndef AB_COUPLED_H
#define AB_COUPLED_H

#include "fixed.h"

enum { AB_SUBFLOWS = 4, AB_ALIKE_ROUNDS = 8, AB_MEETS = 16 };
/* A share has 16 bits after the point. */
#define AB_SHARE 16
#define AB_WHOLE (1ULL << AB_SHARE)
#define AB_ALIKE_NS 500000ULL
#define AB_SILENT_NS 2000000000LL

#ifdef __bpf__
#define AB_UNROLL _Pragma("unroll")
#else
#define AB_UNROLL
#endif

struct ab_subflow {
	u64 owner;			/* 0: the place is free */
	u64 at;				/* ns; its last ACK */
	u64 queue;			/* ns */
	u64 rate;
	u64 judged;			/* ns; when it was last compared with the others */
	u8 alike[8];			/* for each other one: rounds, and AB_MEETS */
};

struct ab_group {
	struct ab_subflow subflows[AB_SUBFLOWS];
};

/* 2^-20 segments in a microsecond: 2^44 * 2^4, so a sum of them with 16 bits more fits. */
AB_INLINE u64 ab_rate_of(ab_segments window, u64 rtt_us)
{
	return (window << 4) / ab_max(rtt_us, 1);
}

AB_INLINE int ab_is_silent(const struct ab_subflow *subflow, u64 now)
{
	return !subflow->owner || (long long)(now - subflow->at) > AB_SILENT_NS;
}

/* What is known of another subflow after a round in which the delays were alike, or not. */
AB_INLINE u8 ab_judge(u8 known, int is_alike)
{
	u8 rounds = known & (AB_MEETS - 1);

	if (is_alike)
		rounds = ab_min(rounds + 1, AB_ALIKE_ROUNDS);
	else if (rounds)
		rounds--;
	if (known & AB_MEETS)
		return rounds ? rounds | AB_MEETS : 0;
	return rounds == AB_ALIKE_ROUNDS ? rounds | AB_MEETS : rounds;
}

/* The share of alpha of a subflow, `owner`, after an ACK. */
AB_INLINE u64 ab_share(struct ab_group *group, u64 owner, u64 now, u64 queue, u64 rtt, u64 rate)
{
	struct ab_subflow *own = 0, *unused = 0;
	u64 sum = rate;
	int is_round;

	AB_UNROLL
	for (u32 i = 0; i < AB_SUBFLOWS; i++) {
		struct ab_subflow *at = &group->subflows[i];

		if (at->owner == owner)
			own = at;
		else if (ab_is_silent(at, now))
			unused = at;
	}
	if (!own) {
		if (!unused)
			return AB_WHOLE;
		own = unused;
		own->owner = owner;
		own->judged = now;
	AB_UNROLL
		for (u32 i = 0; i < AB_SUBFLOWS; i++)
			own->alike[i] = 0;
	}
	own->at = now;
	own->queue = queue;
	own->rate = rate;
	is_round = now - own->judged >= rtt;
	if (is_round)
		own->judged = now;
	AB_UNROLL
	for (u32 i = 0; i < AB_SUBFLOWS; i++) {
		const struct ab_subflow *other = &group->subflows[i];
		u64 most = ab_max(queue, other->queue), least = ab_min(queue, other->queue);

		if (other->owner == owner)
			continue;
		if (ab_is_silent(other, now)) {
			own->alike[i] = 0;
			continue;
		}
		if (is_round)
			own->alike[i] = ab_judge(own->alike[i],
						 most - least <= ab_max(most / 8, AB_ALIKE_NS));
		if (own->alike[i] & AB_MEETS)
			sum += other->rate;
	}
	return sum ? (rate << AB_SHARE) / sum : AB_WHOLE;
}

#endif
