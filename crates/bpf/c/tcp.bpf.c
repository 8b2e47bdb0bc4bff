/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The laws as a congestion control of the Linux kernel (BPF struct_ops).
 *
 *   in Open, Disorder and Loss   the law sets the window                   cong_avoid
 *   in Recovery and CWR          the kernel reduces the flight (PRR)       ssthresh
 *   entry to one of the three    the law is told of the loss               set_state
 *   the reduction is over        the law is told                           set_state
 *
 * Subflows of an MPTCP connection share alpha where they share a queue (coupled.h).
 *
 * It has `cong_avoid` and not `cong_control`: PRR and pacing stay the kernel's, so that
 * what differs from its own laws is the window alone.
 *
 * Differs from crates/cc's driver in:
 *   - time and RTT have microseconds;
 *   - the size of a segment is not known: no sample counts as that of a short segment;
 *   - an ACK that only selects (SACK) grows the window only where the kernel asks;
 *   - a loss looks random if one segment is marked lost as recovery begins, and the last
 *     RTT is at most SRTT; later losses of the same recovery tell the law of congestion.
 */
#include "law.h"
#include "driver.h"

AB_INLINE struct ab_state *state_of(struct tcp_sock *tp)
{
	return (struct ab_state *)tp->inet_conn.icsk_ca_priv;
}

AB_INLINE u32 mode_of(const struct ab_state *s, u32 ca_state)
{
	if (ca_state == TCP_CA_Recovery || ca_state == TCP_CA_CWR)
		return AB_MODE_RECOVERY;
	if (s->is_increasing)
		return AB_MODE_INCREASE;
	if (s->mode == AB_FIRST_SERIES)
		return AB_MODE_FIRST_SERIES;
	return s->mode == AB_FILLING ? AB_MODE_FILLING : AB_MODE_HOLD;
}

AB_INLINE void report(struct tcp_sock *tp, const struct ab_state *s)
{
	struct ab_report now = {};

	if (settings.base == AB_FAST) {
		now.base = s->base;
		now.average = ab_average_rtt(s);
	}
	now.window = s->window;
	now.flight = s->flight;
	now.mode = mode_of(s, ca_state_of(tp));
	now.reroutes = s->reroutes;
	store_report(tp, &now);
}

/* Multiplicative increase is the kernel's slow start: it paces at two windows a round trip. */
AB_INLINE void set_window(struct tcp_sock *tp, const struct ab_state *s)
{
	u32 window = s->window >> AB_POINT;

	tp->snd_cwnd = ab_max(ab_min(window, tp->snd_cwnd_clamp), 1);
	tp->snd_ssthresh = s->is_increasing ? TCP_INFINITE_SSTHRESH : ab_max(window, 2);
}

SEC("struct_ops/init")
void init(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct ab_state *s = state_of(tp);

	ab_init(s, (const struct ab_settings *)&settings);
	/* A socket that changes its law keeps its window. */
	s->window = ab_max(s->window, (u64)tp->snd_cwnd << AB_POINT);
	s->is_increasing = 1;
	report(tp, s);
}

/* The size at which the kernel's reduction ends: called once, before set_state. */
SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct ab_state *s = state_of(tp);
	u32 ca_state = ca_state_of(tp);

	s->seems_random = settings.composite && ca_state <= TCP_CA_Disorder &&
			  tp->sacked_out && tp->lost_out == 1 && s->rtt_us &&
			  s->rtt_us <= tp->srtt_us >> 3;
	s->lost = tp->lost;
	if (s->seems_random)
		return ab_max(s->window >> AB_POINT, 2);
	return ab_max(ab_halved(s, (const struct ab_settings *)&settings) >> AB_POINT, 2);
}

SEC("struct_ops/set_state")
void set_state(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct ab_state *s = state_of(tp);
	const struct ab_settings *p = &settings;
	u8 before = ca_state_of(tp), after = ctx[1];

	if (before == after)
		return;
	if (after == TCP_CA_Recovery) {
		ab_on_loss(s, p, AB_DUP_ACKS, s->seems_random);
	} else if (after == TCP_CA_CWR) {
		ab_on_loss(s, p, AB_ECN, 0);
	} else if (after == TCP_CA_Loss) {
		ab_on_loss(s, p, AB_TIMEOUT, 0);
	} else if (before == TCP_CA_Recovery && s->latest != AB_NO_LOSS) {
		ab_on_recovered(s, p);
	}
	report(tp, s);
}

SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct ab_state *s = state_of(tp);

	ab_on_undo(s, (const struct ab_settings *)&settings);
	return ab_max(tp->snd_cwnd, s->window >> AB_POINT);
}

SEC("struct_ops/cwnd_event")
void cwnd_event(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	if ((u32)ctx[1] == CA_EVENT_CWND_RESTART)
		ab_on_restart(state_of(tp), (const struct ab_settings *)&settings, AB_IDLE);
}

/* Comes before cong_avoid, for every ACK. */
SEC("struct_ops/pkts_acked")
void pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	const struct ack_sample *sample = (void *)ctx[1];
	struct ab_state *s = state_of(tp);
	const struct ab_settings *p = &settings;
	u32 mss = tp->mss_cache;

	ab_on_arrival(s, now_of(tp));
	s->rtt_us = sample->rtt_us > 0 ? sample->rtt_us : 0;
	if (mss)
		s->flight = (sample->in_flight + mss - 1) / mss;
	/* A second loss in the same recovery is congestion; the reduction then ends lower. */
	if (s->repair == AB_RANDOM && ca_state_of(tp) == TCP_CA_Recovery &&
	    tp->lost - s->lost > 0 && tp->lost_out > 1) {
		ab_on_loss(s, p, AB_DUP_ACKS, 0);
		tp->snd_ssthresh = ab_max(s->window >> AB_POINT, 2);
	}
}

SEC("struct_ops/cong_avoid")
void cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct ab_state *s = state_of(tp);
	struct ab_ack ack = {};

	ack.now = now_of(tp);
	ack.acked = (u64)(u32)ctx[2] << AB_POINT;
	ack.old = (u64)s->flight << AB_POINT;
	ack.rtt = (u64)s->rtt_us * 1000;
	ack.is_limited = !is_window_full(tp);
	ack.share = AB_WHOLE;
	if (settings.base == AB_FAST && ab_is_known(s))
		ack.share = share_of(tp, ab_excess(ab_average_rtt(s), s->base),
				     ab_average_rtt(s), s->window);
	ab_on_ack(s, (const struct ab_settings *)&settings, &ack);
	set_window(tp, s);
	if (s->ticks++ % AB_REPORT_EVERY == 0)
		report(tp, s);
}
