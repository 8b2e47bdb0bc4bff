/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the law knows of its path. Every ACK updates it in one order; it decides nothing
 * (crates/cc: law/anabranch/model.rs).
 *
 * Differs from the Rust in: alpha without losses and the queueing delay of it are computed
 * once an ACK, and stored; alpha is at most 2^20 segments.
 */
#ifndef AB_MODEL_H
#define AB_MODEL_H

#include "../event.h"
#include "recent.h"
#include "settings.h"

/* Segments a second at 75 Mbit/s; alpha is that of the settings at this rate. */
#define AB_RATE_OF_ALPHA 6250
#define AB_BASE_SPAN AB_SPAN(30.0)
#define AB_RATE_SPAN AB_SPAN(5.0)
#define AB_RATE_LATELY AB_SPAN(1.0)
/* Others have taken so much of the rate, and it falls. */
#define AB_RATE_TAKEN AB_PART(0.5)
#define AB_RATE_FALLING AB_PART(0.97)
#define AB_BURST AB_SPAN(0.001)
/* ACKs are held for less; longer is a silence of the path. So noise is at most that, too. */
#define AB_HELD_MOST AB_SPAN(0.1)
#define AB_TOLERANCE AB_SPAN(0.0005)
#define AB_STEADY AB_SPAN(0.6)
#define AB_DOUBTED AB_SECONDS(60.0)
#define AB_LOSSES_LONG AB_COUNT(150.0)
#define AB_ALPHA_AFTER_LOSS AB_PART(0.7)
/* Growth of alpha in a second after a loss, in thousandths. */
#define AB_ALPHA_GROWTH 100ULL
#define AB_PRESSED AB_PART(0.4)
#define AB_ALPHA_LEAST AB_COUNT(0.25)

/* alpha_most has 12 more bits than segments, as it grows by 10^-7 in a microsecond. */
#define AB_ALPHA_BITS 12

/* Segments with a known fate. */
struct ab_count {
	ab_segments lost;
	ab_segments acked;
};

/* The estimates of a path; the words are those of the Rust, where each is explained. */
struct ab_model {
	ab_time now;			/* of the latest ACK or loss */
	u64 share;			/* of the rates of coupled subflows, AB_SHARE bits */
	ab_span rtt;			/* the least of a millisecond or so */
	ab_span base;			/* the propagation delay; AB_NONE: not known */
	ab_span mean;			/* 0: not known */
	ab_span standing;
	ab_span peak;
	ab_span peak_long;
	ab_span low;
	ab_segments old;		/* the flight a round trip ago */
	ab_rate rate;
	ab_rate rate_most;
	ab_rate rate_lately;
	ab_rate rate_shown;		/* before a drain last found the queue to be ours; 0: none */
	ab_segments carried;
	ab_span tolerance;
	ab_span noise;
	ab_segments alpha_full;		/* alpha without losses */
	ab_span expected;		/* the queueing delay of alpha at rate_most */
	u64 alpha_most;			/* 2^-36 segments; AB_INFINITE without losses */
	ab_span own_delay;		/* 0: no drain has shown it */
	ab_span shown;			/* the base that a drain has shown; 0: none, or it fell */
	ab_span route;			/* the base of the latest longer route; 0: none */
	ab_time doubted_until;
	ab_span measured;		/* of the noise; at most a second */
	ab_time last_at;		/* of the latest sample; 0: none */
	ab_span last_rtt;
	ab_time losses_since;
	struct ab_count round, round_before, losses_long;
	u32 is_anew;			/* the next ACK tells what was lost before a timeout */
	struct ab_recent high, least;	/* how much RTTs vary */
	struct ab_recent of_rtt, of_base, of_standing, of_peak, of_peak_long, of_low;
	struct ab_recent of_old, of_rate, of_rate_lately, of_carried;
	u32 reroutes;
	u32 reserved;
};

/*
 * The alpha at a rate: by_rate^2 = alpha^2 share rate/6250, by_noise = rate * noise.
 * share rate/6250 has 36 bits after the point (2^16 * 2^45 < 2^61), so its root has 18, and
 * 31 from ab_root.
 */
AB_INLINE ab_segments ab_alpha_at(const struct ab_model *m, const struct ab_settings *p, ab_rate rate)
{
	u64 root = ab_root(ab_max(rate, AB_RATE_ONE) * m->share / AB_RATE_OF_ALPHA);
	ab_segments by_rate = ab_product(p->alpha, root, 31 + 18);
	ab_segments by_noise = ab_in(rate, ab_most(m->noise, AB_BURST));

	return ab_min(ab_max(ab_hypot(by_rate, by_noise), AB_ONE), AB_WINDOW_MAX);
}

AB_INLINE void ab_remember_alpha(struct ab_model *m, const struct ab_settings *p)
{
	ab_rate most = ab_max(m->rate_most, AB_RATE_ONE);

	m->alpha_full = ab_alpha_at(m, p, m->rate);
	m->expected = ab_time_of(ab_alpha_at(m, p, m->rate_most), most);
}

AB_INLINE void ab_model_init(struct ab_model *m, const struct ab_settings *p)
{
	m->base = AB_NONE;
	m->share = AB_WHOLE;
	m->alpha_most = AB_INFINITE;
	m->alpha_full = ab_alpha_at(m, p, 0);
}

/* What losses leave of alpha, in segments. */
AB_INLINE ab_segments ab_alpha_left(const struct ab_model *m)
{
	return m->alpha_most >> AB_ALPHA_BITS;
}

/* Segments to keep queued. */
AB_INLINE ab_segments ab_alpha(const struct ab_model *m)
{
	if (m->alpha_most == AB_INFINITE)
		return m->alpha_full;
	/* What passes while ACKs are held back does not queue, so losses say nothing of it. */
	return ab_min(m->alpha_full, ab_hypot(ab_alpha_left(m), ab_in(m->rate, m->noise)));
}

/* The standing queueing delay. */
AB_INLINE ab_span ab_queue(const struct ab_model *m)
{
	return m->standing - m->base;
}

/* The largest standing queueing delay of four round trips. */
AB_INLINE ab_span ab_queue_most(const struct ab_model *m)
{
	return m->peak - m->base;
}

/* Whether others have taken half of the rate of the last 5 to 10 s, and go on taking it. */
AB_INLINE int ab_is_rate_taken(const struct ab_model *m)
{
	return m->rate < ab_times(m->rate_most, AB_RATE_TAKEN) &&
	       m->rate < ab_times(m->rate_lately, AB_RATE_FALLING);
}

/* The window that carries the largest rate of 5 s without a queue. */
AB_INLINE ab_segments ab_window_most(const struct ab_model *m)
{
	return ab_in(m->rate_most, m->base);
}

/* Our segments in the queue, if its delay is `delay`. */
AB_INLINE ab_segments ab_queued(const struct ab_model *m, ab_span delay)
{
	return delay > 0 ? ab_mul_div(m->old, delay, m->base + delay) : 0;
}

/* Whether the queue becomes shorter. */
AB_INLINE int ab_is_falling(const struct ab_model *m)
{
	return m->rtt < m->standing + ab_stimes(ab_queue(m), AB_PART(0.01));
}

/* Whether a longer route is likely: the base is shown, no doubt, and the RTT stands still. */
AB_INLINE int ab_may_be_route(const struct ab_model *m)
{
	s64 high = -ab_least(m->high.least, m->high.before);
	s64 least = ab_least(m->least.least, m->least.before);

	return m->shown && m->now > m->doubted_until && high - least <= 2 * m->tolerance;
}

/* Whether more than `part` of the segments, or of `least` if that is more, were lost. */
AB_INLINE int ab_exceeds(struct ab_count count, ab_segments least, u64 part)
{
	return count.lost > ab_times(ab_max(count.lost + count.acked, least), part);
}

/* Of the last one to two round trips. */
AB_INLINE int ab_loses_more(const struct ab_model *m, u64 part)
{
	struct ab_count both = {
		.lost = m->round.lost + m->round_before.lost,
		.acked = m->round.acked + m->round_before.acked,
	};

	return ab_exceeds(both, AB_COUNT(60.0), part);
}

/* The part of `window` that is not lost, by the losses of the last one to two round trips. */
AB_INLINE ab_segments ab_without_losses(const struct ab_model *m, ab_segments window)
{
	u64 lost = m->round.lost + m->round_before.lost;
	u64 all = ab_max(lost + m->round.acked + m->round_before.acked, AB_COUNT(60.0));

	return ab_excess(window, ab_mul_div(window, lost, all));
}

/* Of the last window or more. */
AB_INLINE int ab_loses_more_long(const struct ab_model *m, u64 part)
{
	return ab_exceeds(m->losses_long, AB_COUNT(50.0), part);
}

/* Whether a round with an ACK is over. */
AB_INLINE int ab_has_round(const struct ab_model *m)
{
	return m->round_before.acked > 0;
}

/* A loss: alpha becomes less, but `least` of it is left. 2^20 * 2^36 = 2^56. */
AB_INLINE void ab_lose(struct ab_model *m, u64 least)
{
	ab_segments own = ab_max(ab_queued(m, ab_queue_most(m)), AB_ALPHA_LEAST);
	u64 full = m->alpha_full << AB_ALPHA_BITS;
	u64 most = ab_min(ab_min(full, m->alpha_most), own << AB_ALPHA_BITS);

	most = ab_max(ab_times(most, AB_ALPHA_AFTER_LOSS), ab_times(full, least));
	m->alpha_most = ab_max(most, AB_ALPHA_LEAST << AB_ALPHA_BITS);
}

/* alpha_most < 3 * 2^56, and grows to at most 8 times that in 68 s. */
AB_INLINE void ab_recover_alpha(struct ab_model *m, ab_time passed)
{
	u64 thousandths;

	if (m->alpha_most == AB_INFINITE)
		return;
	thousandths = AB_ALPHA_GROWTH * ab_clamp(passed, 0, AB_RTT_MAX);
	m->alpha_most += ab_mul_div(m->alpha_most, thousandths, 1000ULL * 1000000000);
	if (m->alpha_most > (3 * m->alpha_full) << AB_ALPHA_BITS)
		m->alpha_most = AB_INFINITE;
}

/* Whether losses at a queue have taken most of alpha. */
AB_INLINE int ab_is_pressed(const struct ab_model *m)
{
	return ab_alpha(m) < ab_times(m->alpha_full, AB_PRESSED) && ab_queue_most(m) > m->tolerance;
}

/* The base stays what it is: a queue that does not become empty hides it. */
AB_INLINE void ab_keep_base(struct ab_model *m)
{
	ab_recent_least(&m->of_base, m->now, m->base, AB_BASE_SPAN);
}

/* The route is longer: `rtt` is its propagation delay. */
AB_INLINE void ab_set_base(struct ab_model *m, ab_span rtt)
{
	m->of_base.since = 0;
	m->base = ab_recent_least(&m->of_base, m->now, rtt, AB_BASE_SPAN);
	m->route = rtt;
	m->shown = m->base;
	m->reroutes++;
	m->of_peak.since = 0;
	m->own_delay = 0;
}

/* A time that ACKs are held back is one in which the RTT rises by as much as passes. */
AB_INLINE void ab_hear_noise(struct ab_model *m, ab_span rtt)
{
	if (m->last_at) {
		ab_span passed = ab_clamp(m->now - m->last_at, 0, AB_RTT_MAX) * 65536;
		ab_span jump = ab_clamp(rtt - m->last_rtt, 0, passed);
		ab_span held = ab_least(2 * jump > passed ? passed : jump, AB_HELD_MOST);

		m->measured = ab_least(m->measured + passed, AB_SPAN(1.0));
		if (m->measured > 0) {
			u64 older = ab_mul_div(m->noise, passed, m->measured);

			m->noise = ab_excess(m->noise, older) + ab_mul_div(held, held, m->measured);
		}
	}
	m->last_at = m->now;
	m->last_rtt = rtt;
}

AB_INLINE void ab_hear_rtt(struct ab_model *m, ab_span sample, ab_segments acked, ab_segments window)
{
	ab_time now = m->now;

	m->rtt = ab_recent_least(&m->of_rtt, now, sample,
				 ab_most(ab_times(m->noise, AB_PART(1.5)), AB_BURST));
	m->base = ab_recent_least(&m->of_base, now, m->rtt, AB_BASE_SPAN);
	if (m->base < m->shown - m->tolerance)
		m->shown = 0;
	if (m->base < m->route - m->tolerance) {
		/* It was a queue. */
		m->route = 0;
		m->doubted_until = now + AB_DOUBTED;
	}
	if (m->mean > 0) {
		ab_segments twice = 2 * acked, over = ab_max(window, 2 * AB_ONE);
		s64 distance = m->rtt - m->mean;
		u64 step = ab_mul_div(ab_size(distance), ab_min(twice, over), over);

		m->mean += distance < 0 ? -(s64)step : (s64)step;
	} else {
		m->mean = m->rtt;
	}
	m->standing = ab_recent_least(&m->of_standing, now, m->rtt, ab_times(m->mean, AB_PART(0.75)));
	m->low = ab_recent_least(&m->of_low, now, m->rtt, ab_times(m->mean, AB_PART(0.1)));
	m->peak = ab_recent_most(&m->of_peak, now, m->standing, 4 * m->mean);
	m->peak_long = ab_recent_most(&m->of_peak_long, now, m->standing, 8 * m->mean);
}

/* What was lost until a timeout is its reason, and says nothing of the losses after it. */
AB_INLINE void ab_forget_losses(struct ab_model *m)
{
	m->losses_since = 0;
	m->round.lost = m->round.acked = 0;
	m->round_before = m->losses_long = m->round;
	m->is_anew = 1;
}

AB_INLINE void ab_count_ack(struct ab_model *m, const struct ab_ack *ack, ab_segments window)
{
	ab_segments lost = m->is_anew ? 0 : ack->lost;
	ab_segments all = lost + ack->acked, over = ab_max(window, AB_LOSSES_LONG);
	struct ab_count *longer = &m->losses_long;

	m->is_anew = 0;
	m->round.lost += lost;
	m->round.acked += ack->acked;
	all = ab_min(all, over);
	longer->lost = ab_excess(longer->lost, ab_mul_div(longer->lost, all, over)) + lost;
	longer->acked = ab_excess(longer->acked, ab_mul_div(longer->acked, all, over)) + ack->acked;
	if (ab_since(m->now, m->losses_since) > m->mean) {
		m->losses_since = m->now;
		m->round_before = m->round;
		m->round.lost = 0;
		m->round.acked = 0;
	}
}

/* Updates the estimates; 0 while there is no RTT. */
AB_INLINE int ab_model_on_ack(struct ab_model *m, const struct ab_settings *p,
			      const struct ab_ack *ack, ab_segments window)
{
	ab_time now = ack->now + AB_EPOCH, passed = now - m->now;
	ab_span base, mean, tolerance;

	m->now = now;
	if (ack->rtt) {
		ab_span rtt = (ab_span)ab_min(ack->rtt, AB_RTT_MAX) * 65536;

		ab_hear_noise(m, rtt);
		AB_FORGET();
		/* Small segments are faster on slow links. */
		if (!ack->is_short)
			ab_hear_rtt(m, rtt, ack->acked, window);
	}
	AB_FORGET();
	if (!m->mean)
		return 0;
	mean = m->mean;
	base = m->base;
	m->old = ab_recent_most(&m->of_old, now, ack->old,
				ab_most(ab_times(mean, AB_PART(0.25)), ab_times(m->noise, AB_PART(1.5))));
	m->carried = ab_recent_most(&m->of_carried, now,
				    ab_mul_div(ack->delivered, ab_least(base, m->rtt), m->rtt), 3 * mean);
	/* 2^-24 segments in 2^-16 ns: AB_PER_RATE. */
	m->rate = ab_mul_div(m->old, AB_PER_RATE, mean);
	m->rate_most = ab_recent_most(&m->of_rate, now, m->rate, AB_RATE_SPAN);
	m->rate_lately = ab_recent_most(&m->of_rate_lately, now, m->rate, AB_RATE_LATELY);
	tolerance = ab_time_of(AB_ONE, ab_max(m->rate, AB_RATE_ONE));
	tolerance = ab_clamp(tolerance, ab_over(base, 50), ab_over(base, 20));
	tolerance = ab_most(tolerance, ab_most(m->noise, AB_TOLERANCE));
	m->tolerance = ab_least(tolerance, ab_over(base, 4));
	ab_recent_most(&m->high, now, m->standing, ab_most(AB_STEADY, 3 * mean));
	ab_recent_least(&m->least, now, m->standing, ab_most(AB_STEADY, 3 * mean));
	AB_FORGET();
	ab_count_ack(m, ack, window);
	AB_FORGET();
	ab_remember_alpha(m, p);
	AB_FORGET();
	ab_recover_alpha(m, passed);
	return 1;
}

#endif
