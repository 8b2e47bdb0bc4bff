/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The law `anabranch` as a congestion control of the Linux kernel (BPF struct_ops).
 *
 *   every ACK          the law sets the window and the pacing rate         cong_control
 *   entry to Recovery, CWR, Loss: the law is told of a loss                set_state
 *   after idle time    the window restarts                                 cwnd_event
 *
 * It has `cong_control`, so it hears every ACK in fast recovery, too; the reduction is ours:
 * nothing leaves until the flight is below the window, but for one segment when a recovery
 * begins. The kernel paces with or without fq. Needs Linux 6.10 for the arguments of
 * `cong_control`.
 *
 * Differs from crates/cc's driver in:
 *   - time and RTT have microseconds, and an RTT contains the peer's delay of an ACK;
 *   - the size of a segment is not known: no sample counts as that of a short segment;
 *   - the kernel does not store the flight at a departure. It is what has been delivered and
 *     lost since then; what was lost by then is known for eight moments of a round trip, and
 *     in proportion between them;
 *   - outside of the start the pace is 1.25 windows in a smoothed RTT, as our transport's,
 *     but segments leave in bursts of a millisecond (TSO);
 *   - a loss that a tail loss probe repairs comes as CWR: the law is told of a mark.
 */
#include "anabranch/law.h"
#include "driver.h"

/* Windows in a round trip, in quarters: a window and what it grows by; the rule of RFC 9002. */
#define AB_PACE_DOUBLING 8
#define AB_PACE 5

/* How much was delivered and lost at some time. */
struct ab_mark {
	u32 delivered;
	u32 lost;
};

enum { AB_MARKS = 16, AB_MARKS_A_ROUND = 8 };

/* What is kept of a socket. */
struct ab_socket {
	struct ab_state law;
	struct ab_mark marks[AB_MARKS];
	u64 marked_at;			/* ns; the latest of them */
	u32 marked;			/* their number so far */
	u32 lost;			/* what the law knows of the kernel's count */
	u32 begins_recovery;		/* with this ACK */
	u32 ticks;
};

/* icsk_ca_priv has 104 bytes; the law needs nine times as many. */
struct ab_map states SEC("maps") = {
	.type = BPF_MAP_TYPE_SK_STORAGE,
	.key_size = sizeof(u32),
	.value_size = sizeof(struct ab_socket),
};

/* 0 if there is no memory: the socket then keeps its window until there is. */
AB_INLINE struct ab_socket *find(struct tcp_sock *tp)
{
	return bpf_sk_storage_get(&states, tp, 0, 0);
}

AB_INLINE struct ab_socket *begin(struct tcp_sock *tp)
{
	struct ab_socket *k = bpf_sk_storage_get(&states, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!k)
		return 0;
	ab_init(&k->law, (const struct ab_settings *)&settings);
	/* A socket that changes its law keeps its window. */
	k->law.core.window = ab_max(k->law.core.window, (u64)tp->snd_cwnd << AB_POINT);
	k->marks[0].delivered = tp->delivered;
	k->marks[0].lost = tp->lost;
	k->marked = 1;
	k->marked_at = now_of(tp);
	k->lost = tp->lost;
	k->begins_recovery = 0;
	return k;
}

AB_INLINE void report(struct tcp_sock *tp, const struct ab_state *s)
{
	const struct ab_model *m = &s->core.model;
	struct ab_report now = {};

	if (m->mean) {
		now.base = ab_ns(m->base);
		now.average = ab_ns(m->mean);
	}
	now.window = ab_window(s);
	now.flight = m->old >> AB_POINT;
	now.mode = AB_MODE_GROW + s->mode;
	now.reroutes = m->reroutes;
	store_report(tp, &now);
}

AB_INLINE u32 in_flight(struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

AB_INLINE void set_window(struct tcp_sock *tp, const struct ab_state *s)
{
	u32 window = ab_max(ab_min(ab_window(s) >> AB_POINT, tp->snd_cwnd_clamp), 1);

	tp->snd_cwnd = window;
	/* Where the kernel asks if it is in slow start: for is_window_full(). */
	tp->snd_ssthresh = s->mode == AB_GROW ? TCP_INFINITE_SSTHRESH : ab_max(window, 2);
}

/* 2^44 segments in 2^-24 * 2^14 bytes * 10^9 < 2^88, over ns. */
AB_INLINE void set_pace(struct tcp_sock *tp, const struct ab_state *s)
{
	int is_doubling = ab_is_doubling(s) && is_window_full(tp);
	u64 rtt = is_doubling ? ab_ns(s->core.model.rtt) : (u64)(tp->srtt_us >> 3) * 1000;
	u64 second = (u64)tp->mss_cache * 1000000000;
	u64 rate;

	if (!rtt)
		return;
	rate = ab_mul_div(ab_window(s), second, rtt) >> AB_POINT;
	rate = rate * (is_doubling ? AB_PACE_DOUBLING : AB_PACE) / 4;
	if (is_doubling && s->grow.known)
		rate = ab_min(rate, ab_mul_div(s->grow.known, second, ab_ns(s->core.model.base)) >> AB_POINT);
	tp->inet_conn.icsk_inet.sk.sk_pacing_rate = ab_max(rate, 1);
}

/* Stores what was delivered and lost until now. */
AB_INLINE void mark(struct tcp_sock *tp, struct ab_socket *k, u64 now)
{
	struct ab_mark *mark = &k->marks[k->marked % AB_MARKS];

	mark->delivered = tp->delivered;
	mark->lost = tp->lost;
	k->marked++;
	k->marked_at = now;
}

/* What was lost when `delivered` was delivered; both count modulo 2^32. */
AB_INLINE u32 lost_at(struct tcp_sock *tp, const struct ab_socket *k, u32 delivered)
{
	u32 after_delivered = tp->delivered, after_lost = tp->lost, marked = k->marked;

#pragma unroll
	for (u32 back = 1; back <= AB_MARKS; back++) {
		const struct ab_mark *before = &k->marks[(marked - back) % AB_MARKS];
		u32 since = delivered - before->delivered, all = after_delivered - before->delivered;

		if (back > marked)
			break;
		if ((int)since >= 0) {
			u64 lost = after_lost - before->lost;

			return before->lost + (all ? lost * since / all : 0);
		}
		after_delivered = before->delivered;
		after_lost = before->lost;
	}
	return after_lost;
}

SEC("struct_ops/init")
void init(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct ab_socket *k = begin(tp);

	if (tp->inet_conn.icsk_inet.sk.sk_pacing_status == SK_PACING_NONE)
		tp->inet_conn.icsk_inet.sk.sk_pacing_status = SK_PACING_NEEDED;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (k)
		report(tp, &k->law);
}

/* The kernel asks at each entry to a recovery. The law has no size at which one ends. */
SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	return tp->snd_ssthresh;
}

SEC("struct_ops/set_state")
void set_state(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct ab_socket *k = find(tp);
	const struct ab_settings *p = &settings;
	u8 before = ca_state_of(tp), after = ctx[1];

	if (!k || before == after || after < TCP_CA_CWR)
		return;
	k->begins_recovery = after == TCP_CA_Recovery;
	/* All that was in flight counts as lost from here on, without evidence. */
	if (after == TCP_CA_Loss)
		mark(tp, k, now_of(tp));
	ab_on_loss(&k->law, p, now_of(tp), after == TCP_CA_Loss ? AB_TIMEOUT : AB_DUP_ACKS);
	set_window(tp, &k->law);
	/* Without ACKs the old pace would stay, by which MPTCP chooses a subflow. */
	if (after == TCP_CA_Loss)
		set_pace(tp, &k->law);
	report(tp, &k->law);
}

SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct ab_socket *k = find(tp);

	if (!k)
		return tp->snd_cwnd;
	ab_on_undo(&k->law);
	return ab_max(tp->snd_cwnd, ab_window(&k->law) >> AB_POINT);
}

/* The kernel restarts only the windows of laws without `cong_control` after idle time. */
AB_INLINE void begin_to_send(struct tcp_sock *tp)
{
	struct ab_socket *k = find(tp);
	u32 idle = (u32)bpf_jiffies64() - tp->lsndtime;

	if (!k || idle <= tp->inet_conn.icsk_rto)
		return;
	ab_on_restart(&k->law, (const struct ab_settings *)&settings, now_of(tp), AB_IDLE);
	set_window(tp, &k->law);
	set_pace(tp, &k->law);
}

SEC("struct_ops/cwnd_event")
void cwnd_event(u64 *ctx)
{
	if ((u32)ctx[1] == CA_EVENT_TX_START)
		begin_to_send((void *)ctx[0]);
}

/* Linux 7.1 has a function of its own for this event; the loader leaves it out before. */
SEC("struct_ops/cwnd_event_tx_start")
void cwnd_event_tx_start(u64 *ctx)
{
	begin_to_send((void *)ctx[0]);
}

/* The share of alpha: all of it, unless the socket is a subflow that waits beside others. */
AB_INLINE u64 share_of_path(struct tcp_sock *tp, const struct ab_state *s)
{
	const struct ab_model *m = &s->core.model;
	ab_span queue = m->mean - m->base;

	if (!m->mean)
		return AB_WHOLE;
	return share_of(tp, ab_ns(ab_most(queue, 0)), ab_ns(m->mean), ab_window(s));
}

/* Comes last for every ACK: after the RTT, the losses and the state. */
SEC("struct_ops/cong_control")
void cong_control(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	const struct rate_sample *rs = (void *)ctx[3];
	struct ab_socket *k = find(tp);
	u32 acked = rs->acked_sacked, lost = tp->lost;

	if (!k)
		k = begin(tp);
	if (!k)
		return;
	if (acked) {
		struct ab_ack *ack = &k->law.ack;
		u32 old = rs->prior_in_flight, delivered = acked;

		if (rs->delivered > 0) {
			delivered = rs->delivered;
			old = delivered + lost - lost_at(tp, k, rs->prior_delivered);
		}
		k->law.core.model.share = share_of_path(tp, &k->law);
		ack->now = now_of(tp);
		ack->acked = (u64)acked << AB_POINT;
		ack->lost = (u64)(lost - k->lost) << AB_POINT;
		ack->old = (u64)ab_max(old, 1) << AB_POINT;
		ack->delivered = (u64)delivered << AB_POINT;
		ack->rtt = rs->rtt_us > 0 ? (u64)rs->rtt_us * 1000 : 0;
		ack->is_limited = !is_window_full(tp);
		ack->in_recovery = ca_state_of(tp) == TCP_CA_Recovery;
		k->lost = lost;
		if (ack->now - k->marked_at >= (u64)(tp->srtt_us >> 3) * 1000 / AB_MARKS_A_ROUND)
			mark(tp, k, ack->now);
		ab_on_ack(&k->law, (const struct ab_settings *)&settings);
	}
	set_window(tp, &k->law);
	if (k->begins_recovery) {
		k->begins_recovery = 0;
		tp->snd_cwnd = ab_max(tp->snd_cwnd, in_flight(tp) + 1);
	}
	set_pace(tp, &k->law);
	if (k->ticks++ % AB_REPORT_EVERY == 0)
		report(tp, &k->law);
}
