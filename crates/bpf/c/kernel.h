/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's types, as far as the laws read or write them. The loader finds each field
 * in the running kernel by its name (CO-RE), so order and distance here mean nothing.
 * A vmlinux.h would make the object fourteen times larger.
 */
#ifndef AB_KERNEL_H
#define AB_KERNEL_H

#include "fixed.h"

#define SEC(name) __attribute__((section(name), used))
#define AB_CORE __attribute__((preserve_access_index))

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
} AB_CORE;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	struct in6_addr skc_v6_daddr;	/* with CONFIG_IPV6 */
	struct in6_addr skc_v6_rcv_saddr;
} AB_CORE;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	u32 sk_pacing_status;
} AB_CORE;

struct inet_sock {
	struct sock sk;
} AB_CORE;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u32 icsk_rto;
	u8 icsk_ca_state : 5;
	void *icsk_ulp_data;		/* of a subflow: its mptcp_subflow_context */
	u64 icsk_ca_priv[13];
} AB_CORE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 mss_cache;
	u32 max_packets_out;
	u32 srtt_us;
	u32 lost_out;
	u32 sacked_out;
	u32 lost;
	u32 delivered;
	u32 packets_out;
	u32 retrans_out;
	u32 lsndtime;
	u64 tcp_mstamp;
	u8 is_cwnd_limited : 1;
	_Bool is_mptcp;			/* with CONFIG_MPTCP */
} AB_CORE;

struct mptcp_subflow_context {
	u32 token;
} AB_CORE;

struct ack_sample {
	u32 pkts_acked;
	int rtt_us;
	u32 in_flight;
} AB_CORE;

struct rate_sample {
	u32 prior_delivered;
	int delivered;
	long rtt_us;
	u32 acked_sacked;
	u32 prior_in_flight;
} AB_CORE;

/* The context of a program on a control group's sockets: a fixed layout, not CO-RE. */
struct bpf_sock_ops {
	u32 op;
};

/* include/net/tcp.h, include/uapi/linux/tcp.h */
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART };
enum { SK_PACING_NONE, SK_PACING_NEEDED };
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define AF_INET6 10
#define IPPROTO_TCP 6
#define TCP_CONGESTION 13
#define BPF_SOCK_OPS_TCP_CONNECT_CB 3
#define BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB 5

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_SK_STORAGE = 24 };
#define BPF_SK_STORAGE_GET_F_CREATE 1
#define BPF_NOEXIST 1

static void *(*const bpf_map_lookup_elem)(const void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(const void *map, const void *key, const void *value,
					 u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(const void *map, const void *key) = (void *)3;
static long (*const bpf_setsockopt)(void *ctx, int level, int name, const void *value,
				    int length) = (void *)49;

static void *(*const bpf_sk_storage_get)(const void *map, void *sk, const void *value,
					 u64 flags) = (void *)107;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;

/*
 * A bit-field: its bits lie at another offset in each kernel, so a plain read would take
 * the bits of this header (kinds of BPF_CORE_READ_BITFIELD: 0 offset, 1 size, 3 is signed,
 * 4 shift left, 5 shift right).
 */
#define AB_BITS(pointer, field)								\
	({										\
		const char *at = (const char *)(pointer) +				\
				 __builtin_preserve_field_info((pointer)->field, 0);	\
		u64 bits = 0;								\
		switch (__builtin_preserve_field_info((pointer)->field, 1)) {		\
		case 1: bits = *(const u8 *)at; break;					\
		case 2: bits = *(const u16 *)at; break;					\
		case 4: bits = *(const u32 *)at; break;					\
		case 8: bits = *(const u64 *)at; break;					\
		}									\
		bits <<= __builtin_preserve_field_info((pointer)->field, 4);		\
		bits >>= __builtin_preserve_field_info((pointer)->field, 5);		\
		bits;									\
	})

/*
 * Whether the kernel has a field (BPF_CORE_FIELD_EXISTS: kind 2). One that is asked for may be
 * missing; without that, the loader refuses the kernel.
 */
#define AB_HAS(pointer, field) __builtin_preserve_field_info((pointer)->field, 2)

/* Fixed numbers of a map, which the loader reads. */
struct ab_map {
	u32 type;
	u32 key_size;
	u32 value_size;
	u32 entries;
};

#endif
