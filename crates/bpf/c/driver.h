/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the congestion controls have in common: settings, reports, the end of a socket, and
 * the programs that are no functions of tcp_congestion_ops. To be included after the header
 * of a law.
 */
#ifndef AB_DRIVER_H
#define AB_DRIVER_H

#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The map of one element that holds the settings; the loader fills it. */
struct ab_settings settings SEC(".data.settings");

/* What `anabranch kernel status` shows of a socket; written every 16 ACKs. */
struct ab_report {
	u64 base;			/* ns */
	u64 average;			/* ns */
	ab_segments window;
	u32 source[4], destination[4];	/* as on the wire; IPv4 has the first word */
	u32 source_port, destination_port;
	u32 family;
	u32 flight;			/* segments */
	u32 mode;			/* enum ab_report_mode */
	u32 reroutes;
	u32 token;			/* of the MPTCP connection, for a subflow; or 0 */
	u32 unused;
};

enum { AB_REPORTS = 4096, AB_REPORT_EVERY = 16 };
enum ab_report_mode {
	AB_MODE_INCREASE,
	AB_MODE_HOLD,
	AB_MODE_FIRST_SERIES,
	AB_MODE_FILLING,
	AB_MODE_RECOVERY,
	AB_MODE_GROW,
	AB_MODE_CRUISE,
	AB_MODE_DRAIN,
	AB_MODE_COMPETE,
};

/* By the socket's address. The oldest makes room for the newest. */
struct ab_map sockets SEC("maps") = {
	.type = BPF_MAP_TYPE_LRU_HASH,
	.key_size = sizeof(u64),
	.value_size = sizeof(struct ab_report),
	.entries = AB_REPORTS,
};

AB_INLINE u32 ca_state_of(struct tcp_sock *tp)
{
	return AB_BITS(&tp->inet_conn, icsk_ca_state);
}

AB_INLINE u64 now_of(struct tcp_sock *tp)
{
	return tp->tcp_mstamp * 1000;
}

/* As the kernel's tcp_is_cwnd_limited(). */
AB_INLINE int is_window_full(struct tcp_sock *tp)
{
	if (tp->snd_cwnd < tp->snd_ssthresh)
		return tp->snd_cwnd < 2 * tp->max_packets_out;
	return AB_BITS(tp, is_cwnd_limited);
}

/*
 * The number of the MPTCP connection that a socket is a subflow of, which its peer knows, too,
 * and `ss` shows; 0 if it is none.
 */
AB_INLINE u32 token_of(struct tcp_sock *tp)
{
	struct mptcp_subflow_context *subflow;
	u32 token = 0;

	if (!AB_HAS(tp, is_mptcp) || !tp->is_mptcp)
		return 0;
	/* The kernel has no type for what this points to, so it is read by a function. */
	subflow = tp->inet_conn.icsk_ulp_data;
	if (AB_HAS(subflow, token) && subflow)
		bpf_probe_read_kernel(&token, sizeof(token), &subflow->token);
	return token;
}

/* What the subflows of a connection know of each other, by its token. */
struct ab_map groups SEC("maps") = {
	.type = BPF_MAP_TYPE_LRU_HASH,
	.key_size = sizeof(u32),
	.value_size = sizeof(struct ab_group),
	.entries = AB_REPORTS,
};

/* The share of alpha of a socket: all of it, unless it is a subflow beside others. Times in ns. */
AB_INLINE u64 share_of(struct tcp_sock *tp, u64 queue, u64 rtt, ab_segments window)
{
	u32 token = token_of(tp);
	struct ab_group *group;

	if (!token || !rtt)
		return AB_WHOLE;
	group = bpf_map_lookup_elem(&groups, &token);
	if (!group) {
		struct ab_group empty = {};

		bpf_map_update_elem(&groups, &token, &empty, BPF_NOEXIST);
		group = bpf_map_lookup_elem(&groups, &token);
		if (!group)
			return AB_WHOLE;
	}
	return ab_share(group, (u64)tp, now_of(tp), queue, rtt, ab_rate_of(window, rtt / 1000));
}

/* Adds what the connection is, and stores the report. */
AB_INLINE void store_report(struct tcp_sock *tp, struct ab_report *now)
{
	struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	u64 key = (u64)tp;

	if (AB_HAS(common, skc_v6_daddr) && common->skc_family == AF_INET6) {
#pragma unroll
		for (u32 word = 0; word < 4; word++) {
			now->source[word] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[word];
			now->destination[word] = common->skc_v6_daddr.in6_u.u6_addr32[word];
		}
	} else {
		now->source[0] = common->skc_rcv_saddr;
		now->destination[0] = common->skc_daddr;
	}
	now->token = token_of(tp);
	now->source_port = common->skc_num;
	now->destination_port = common->skc_dport;
	now->family = common->skc_family;
	bpf_map_update_elem(&sockets, &key, now, 0);
}

SEC("struct_ops/release")
void release(u64 *ctx)
{
	u64 key = ctx[0];

	bpf_map_delete_elem(&sockets, &key);
}

/* For `anabranch kernel run`: a new connection of the control group gets the law. */
SEC("sockops")
int steer(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_TCP_CONNECT_CB || ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		bpf_setsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, settings.name, sizeof(settings.name));
	return 1;
}

/* For tests: the law of no socket, which gets one event at a time by BPF_PROG_TEST_RUN. */
struct ab_map steps SEC("maps") = {
	.type = BPF_MAP_TYPE_ARRAY,
	.key_size = sizeof(u32),
	.value_size = sizeof(struct ab_state),
	.entries = 1,
};

struct ab_step {
	struct ab_event event;
	ab_segments window;		/* after it */
};

SEC("syscall")
int step(struct ab_step *step)
{
	struct ab_event event;
	u32 key = 0;
	struct ab_state *s = bpf_map_lookup_elem(&steps, &key);

	if (!s)
		return 1;
	/* The verifier takes a context only at constant offsets, so it is copied word by word. */
#pragma unroll
	for (u32 word = 0; word < sizeof(event) / 8; word++)
		((volatile u64 *)&event)[word] = ((volatile u64 *)&step->event)[word];
	ab_handle(s, (const struct ab_settings *)&settings, &event);
	step->window = ab_window(s);
	return 0;
}

#endif
