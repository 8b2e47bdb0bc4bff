/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Numbers of the laws: unsigned integers with a fixed point. BPF has no floats.
 *
 *   quantity            unit                 range           type
 *   window, segments    2^-24 segments       below 2^44      ab_segments (at most 2^20 segments)
 *   time, RTT           ns                   RTT below 2^36  u64         (68 s)
 *   average RTT, IPD    2^-16 ns             below 2^52      u64
 *   ratio of two RTTs   2^-27                at most 2^27    u64         (at most 1)
 *   weight              2^-32                at most 2^32    u64         (at most 1)
 *
 * 24 bits after the point make 1/w exact to 0.4 % at 10^5 segments. 16 bits below the
 * nanosecond let an average with weight 1/2000 come within a thirtieth of one of its samples.
 *
 * No product below leaves 64 bits; each has its bound beside it.
 */
#ifndef AB_FIXED_H
#define AB_FIXED_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

/* Segments with 24 bits after the point. */
typedef u64 ab_segments;

/*
 * A flag that is asked for more than once. The verifier follows each value of one that it
 * knows through all that comes after; one that is read from a map again it does not know.
 */
typedef volatile u32 ab_flag;

/* What was computed before is read from memory again, for the same reason. */
#define AB_FORGET() __asm__ volatile("" ::: "memory")

#define AB_INLINE static inline __attribute__((always_inline))

#define AB_POINT 24
#define AB_ONE (1ULL << AB_POINT)
#define AB_WINDOW_MAX (AB_ONE << 20)
#define AB_INFINITE (~0ULL)

#define AB_RTT_MAX ((1ULL << 36) - 1)
#define AB_SUB_NS 16
#define AB_RATIO 27
#define AB_WEIGHT 32
#define AB_GAMMA 16

AB_INLINE u64 ab_min(u64 a, u64 b)
{
	return b < a ? b : a;
}

AB_INLINE u64 ab_max(u64 a, u64 b)
{
	return b > a ? b : a;
}

/* a - b, or 0 if b is greater. */
AB_INLINE u64 ab_excess(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

AB_INLINE u64 ab_distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* a * b / 2^shift, rounded; shift is at least 1. The product has 128 bits, the result 63. */
AB_INLINE u64 ab_product(u64 a, u64 b, u32 shift)
{
	u64 low = (a & 0xffffffff) * (b & 0xffffffff);
	u64 left = (a >> 32) * (b & 0xffffffff), right = (a & 0xffffffff) * (b >> 32);
	u64 middle = (low >> 32) + (left & 0xffffffff) + (right & 0xffffffff);
	u64 high = (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) + (middle >> 32);

	low = middle << 32 | (low & 0xffffffff);
	if (shift > 64)
		low = high >> (shift - 65);
	else if (shift > 1)
		low = low >> (shift - 1) | high << (65 - shift);
	return (low >> 1) + (low & 1);
}

/* base/rtt, at most 1. base < 2^36, so base << 27 < 2^63. */
AB_INLINE u64 ab_ratio(u64 base, u64 rtt)
{
	if (base >= rtt)
		return 1ULL << AB_RATIO;
	return (base << AB_RATIO) / rtt;
}

/* segments * ratio, in two parts: 2^24 * 2^27 and 2^20 * 2^27. */
AB_INLINE ab_segments ab_scale(ab_segments segments, u64 ratio)
{
	u64 high = segments >> 20, low = segments & ((1ULL << 20) - 1);

	return (high * ratio >> (AB_RATIO - 20)) + (low * ratio >> AB_RATIO);
}

/* segments / window. Segments of one ACK are cut at 2^15: 2^39 << 24 < 2^63. */
AB_INLINE ab_segments ab_quotient(ab_segments segments, ab_segments window)
{
	return (ab_min(segments, AB_ONE << 15) << AB_POINT) / ab_max(window, AB_ONE);
}

/* average + (sample - average) * weight. */
AB_INLINE u64 ab_average(u64 average, u64 sample, u64 weight)
{
	u64 step = ab_product(ab_distance(sample, average), weight, AB_WEIGHT);

	return sample > average ? average + step : average - step;
}

#endif
