/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Numbers of the law `anabranch`: integers with a fixed point. BPF has no floats, and no
 * signed division. Times and differences have signs.
 *
 *   quantity            unit                 range           type
 *   time                ns                   below 2^62      ab_time
 *   span, RTT           2^-16 ns             below 2^53      ab_span     (137 s)
 *   window, segments    2^-24 segments       below 2^45      ab_segments (at most 2^20 segments)
 *   their difference    2^-24 segments       below 2^45      ab_change
 *   rate                2^-20 segments/s     below 2^45      ab_rate     (at least 2^-20)
 *   part                2^-32                below 2^36      u64, s64    (below 16)
 *
 * The law compares much and often, and one other answer is another mode. So quotients and
 * roots have 31 bits and more of precision, whatever their size: ab_mul_div, ab_hypot.
 */
#ifndef AB_NUMBER_H
#define AB_NUMBER_H

#include "../fixed.h"

typedef long long s64;
typedef s64 ab_time;
typedef s64 ab_span;
typedef s64 ab_change;
typedef u64 ab_rate;

/* Constants as they are written in the Rust; the compiler computes them. */
#define AB_PART(part) ((u64)((part) * 4294967296.0 + 0.5))
#define AB_SECONDS(seconds) ((ab_time)((seconds) * 1e9 + 0.5))
#define AB_SPAN(seconds) (AB_SECONDS(seconds) * 65536)
#define AB_COUNT(segments) ((ab_segments)((segments) * 16777216.0 + 0.5))

/* No least value, and no largest one if it is negative. Two of them fit an s64. */
#define AB_NONE (1LL << 62)

/*
 * Times begin at AB_EPOCH, 19 h, so that zero is longer ago than any span. What comes
 * never has AB_NEVER.
 */
#define AB_EPOCH (1LL << 46)
#define AB_NEVER (1LL << 62)

/* Rates are at least one segment a second where they divide. */
#define AB_RATE_ONE (1ULL << 20)
/* ns in 2^-16 and segments in 2^-24, over segments/s in 2^-20: 10^9 * 2^12 < 2^42. */
#define AB_PER_RATE (1000000000ULL << 12)

/*
 * Clears an object of whole words, word by word: BPF has no function that clears more than a
 * few. Objects are filled field by field: clang 14 for BPF copies a constant initializer and
 * forgets stores before the copy.
 */
#define AB_CLEAR(object)								\
	do {										\
		volatile u64 *words = (volatile u64 *)&(object);			\
											\
		_Static_assert(sizeof(object) % 8 == 0, "words");			\
		_Pragma("GCC unroll 256")						\
		for (u32 at = 0; at < sizeof(object) / 8; at++)				\
			words[at] = 0;							\
	} while (0)

AB_INLINE s64 ab_least(s64 a, s64 b)
{
	return b < a ? b : a;
}

AB_INLINE s64 ab_most(s64 a, s64 b)
{
	return b > a ? b : a;
}

AB_INLINE s64 ab_clamp(s64 value, s64 least, s64 most)
{
	return ab_least(ab_most(value, least), most);
}

AB_INLINE u64 ab_size(s64 value)
{
	return value < 0 ? -(u64)value : (u64)value;
}

/* now - at as a span; at most 19 h, so zero is long ago: 2^46 * 2^16. */
AB_INLINE ab_span ab_since(ab_time now, ab_time at)
{
	return ab_clamp(now - at, -AB_EPOCH, AB_EPOCH) * 65536;
}

AB_INLINE ab_time ab_ns(ab_span span)
{
	return span >> 16;
}

/* A part of a span that is not negative. */
AB_INLINE ab_span ab_over(ab_span span, u32 parts)
{
	return (u64)span / parts;
}

/* The zero bits before the first one of x: all below it are set, and those above counted. */
AB_INLINE u32 ab_zeros(u64 x)
{
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	x |= x >> 32;
	x = ~x;
	x -= x >> 1 & 0x5555555555555555;
	x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return x * 0x0101010101010101 >> 56;
}

/* value * part. */
AB_INLINE u64 ab_times(u64 value, u64 part)
{
	return ab_product(value, part, 32);
}

AB_INLINE s64 ab_stimes(s64 value, u64 part)
{
	u64 size = ab_times(ab_size(value), part);

	return value < 0 ? -(s64)size : (s64)size;
}

/*
 * a * b / c. b gets 64 significant bits and c 32, so their quotient has 31 to 33; then
 * b/c = quotient / 2^(32 + bits of b - bits of c).
 */
AB_INLINE u64 ab_mul_div(u64 a, u64 b, u64 c)
{
	u32 of_b, of_c, shift;
	u64 quotient;

	if (!b || !c)
		return 0;
	of_b = ab_zeros(b);
	of_c = ab_zeros(c);
	c <<= of_c;
	quotient = (b << of_b) / ((c >> 32) + (c >> 31 & 1));
	shift = 32 + of_b;
	if (shift > of_c)
		return ab_product(a, quotient, shift - of_c);
	return a * quotient << (of_c - shift);
}

/* a / b as a part; with a sign if a has one. */
AB_INLINE s64 ab_part(s64 a, u64 b)
{
	u64 size = ab_mul_div(1ULL << 32, ab_size(a), b);

	return a < 0 ? -(s64)size : (s64)size;
}

/*
 * The root of x * 2^62, so below 2^63; x is not 0. With y = x 4^k from 2^62 the first guess,
 * (y/2^31 + 2^32)/3, is right to 6 %, and each of Newton's steps squares that: 0.2 %, 2 in
 * 10^6, below 2^-32. y < 2^64, so each sum is below 2^33.
 */
AB_INLINE u64 ab_root(u64 x)
{
	u32 shift = ab_zeros(x) & ~1u;
	u64 y = x << shift, root = ((y >> 31) + (1ULL << 32)) / 3;

	root = (root + y / root) >> 1;
	root = (root + y / root) >> 1;
	root = (root + y / root) >> 1;
	return root << 31 >> (shift / 2);
}

/* The root of a^2 + b^2: both are shifted below 2^31, and the root of the sum back. */
AB_INLINE u64 ab_hypot(u64 a, u64 b)
{
	u64 both = a | b;
	u32 room;

	if (!both)
		return 0;
	room = ab_zeros(both);
	if (room > 33) {
		a <<= room - 33;
		b <<= room - 33;
	} else {
		a >>= 33 - room;
		b >>= 33 - room;
	}
	/* ab_root is 2^31 times the root: 2^(31 - (33 - room)). */
	return ab_root(a * a + b * b) >> (room - 2);
}

/* Segments in `span` at `rate`. */
AB_INLINE ab_segments ab_in(ab_rate rate, ab_span span)
{
	return span > 0 ? ab_mul_div(rate, span, AB_PER_RATE) : 0;
}

/* The time of `segments` at `rate`, which is at least 2^-20. */
AB_INLINE ab_span ab_time_of(ab_segments segments, ab_rate rate)
{
	return ab_mul_div(segments, AB_PER_RATE, rate);
}

#endif
