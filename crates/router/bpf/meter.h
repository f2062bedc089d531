/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The meters of crates/core/src/marker: tests/kernel/parity.rs and meters.rs compare them. Token buckets are in whole numbers and nothing is
 * rounded; the loader refuses depths that could overflow (2^30 bytes together). Customers' and policers' accounts are behind a spin lock: a
 * customer's packets may come in on any CPU, and he has one bucket. */
#pragma once

#include "maps.h"

/* Grains that come in so long, but no more than the most that is of use. */
static __always_inline __u64 inflow(const struct police *b, __u64 time)
{
	return time >= b->full ? b->depth : b->rate * time;
}

/* The same at a rate that is in force no more. */
static __always_inline __u64 slow_inflow(__u64 rate, __u64 time, __u64 most)
{
	if (!rate)
		return 0;
	return time > most / rate ? most : rate * time;
}

static __always_inline __u64 least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __always_inline int take(struct bucket *b, const struct police *p, __u64 need, __u64 now)
{
	__u64 time = now > b->at ? now - b->at : 0;
	__u64 tokens = least(b->tokens + inflow(p, time), p->depth);

	b->at += time;
	b->tokens = tokens;
	if (tokens < need)
		return 0;
	b->tokens = tokens - need;
	return 1;
}

/* RFC 2697 3: what the committed bucket cannot hold goes to the excess bucket. There bucket[1].full is that of both. */
static __always_inline void fill(struct account *a, const struct terms *m, __u64 now)
{
	__u64 since, time, c, e, most = m->bucket[0].depth + m->bucket[1].depth;

	/* An estimate of before is no bucket. */
	if (a->rate[0] == ESTIMATE) {
		a->tokens[0] = a->tokens[1] = 0;
		a->rate[0] = m->bucket[0].rate;
		a->rate[1] = m->bucket[1].rate;
	}
	since = a->at;
	int slow = a->rate[0] != m->bucket[0].rate || a->rate[1] != m->bucket[1].rate;

	if (now < since)
		now = since;
	if (slow && m->since > since) {
		/* Another rate until then. */
		__u64 until = least(m->since, now);
		c = slow_inflow(a->rate[0], until - since, most);
		e = slow_inflow(a->rate[1], until - since, most);
		since = until;
	} else {
		c = e = 0;
	}
	time = now - since;
	if (m->law == SRTCM)
		c += time >= m->bucket[1].full ? most : m->bucket[0].rate * time;
	else
		c += inflow(&m->bucket[0], time);
	if (m->law == TRTCM || m->law == RFC4115)
		e += inflow(&m->bucket[1], time);
	c += a->tokens[0];
	if (m->law == SRTCM && c > m->bucket[0].depth)
		e = c - m->bucket[0].depth;
	a->tokens[0] = least(c, m->bucket[0].depth);
	a->tokens[1] = least(a->tokens[1] + e, m->bucket[1].depth);
	a->at = now;
	a->rate[0] = m->bucket[0].rate;
	a->rate[1] = m->bucket[1].rate;
}

/* RFC 2859 3: the estimate after a packet, in bits per second with 16 binary digits after the point. The law is that of
 * crates/core/src/marker/tsw_whole.rs, number by number. */
static __always_inline __u64 estimate(struct account *a, const struct terms *m, __u64 now, __u32 bytes)
{
	__u64 window = m->bucket[0].full, gap = now > a->at ? now - a->at : 0, whole = gap + window, bits = bytes * GRAINS;
	__u64 high, middle, low, rate;

	if (a->rate[0] != ESTIMATE) {
		a->rate[0] = ESTIMATE;
		a->tokens[0] = m->bucket[0].rate << 16;
		a->tokens[1] = 0;
	}
	rate = a->tokens[0];
	a->at += gap;
	/* So many digits that the division is exact in 64 bits. */
	for (int far = 16; far; far >>= 1)
		if (whole >> (33 + far)) {
			whole >>= far;
			window >>= far;
			bits >>= far;
		}
	if (!whole)
		return rate;
	high = (rate >> 48) * window;
	middle = ((high % whole) << 24) + (rate >> 24 & 0xffffff) * window + (bits >> 8);
	low = ((middle % whole) << 24) + (rate & 0xffffff) * window + (bits << 16 & 0xffffff);
	rate = least((high / whole << 48) + (middle / whole << 24) + low / whole, 1ULL << 62);
	a->tokens[0] = rate;
	return rate;
}

/* RFC 2859 4: by a random number, as far as the estimate is above the target rates. */
static __always_inline __u32 by_chance(const struct terms *m, __u64 rate, __u32 random)
{
	__u64 ctr = m->bucket[0].rate << 16, ptr = m->bucket[1].rate << 16;
	__u64 drawn = (rate >> 32) * random + (((rate & 0xffffffff) * random) >> 32);

	if (m->law == TSW3CM && rate > ptr && drawn < rate - ptr)
		return RED;
	if (rate > ctr && (m->more || drawn < rate - ctr))
		return YELLOW;
	return GREEN;
}

/* The colour of a packet of this size in grains; its tokens are taken. */
static __always_inline __u32 judge(struct account *a, const struct terms *m, __u32 came, __u64 need)
{
	__u64 *c = &a->tokens[0], *e = &a->tokens[1];

	if (!m->aware)
		came = GREEN;
	if (m->law == TRTCM) {
		/* RFC 2698 3: the peak first, and red takes nothing. */
		if (came == RED || *e < need)
			return RED;
		*e -= need;
		if (came == YELLOW || *c < need)
			return YELLOW;
		*c -= need;
		return GREEN;
	}
	if (came == GREEN && *c >= need + m->more) {
		*c -= need;
		return GREEN;
	}
	if (m->law == TOKEN_BUCKET)
		return YELLOW;
	if (came != RED && *e >= need + m->more) {
		*e -= need;
		return YELLOW;
	}
	return RED;
}

static __always_inline void count(struct colours *c, __u32 packets, __u32 bytes)
{
	c->packets += packets;
	c->bytes += bytes;
}

/* Meters packets of so many bytes together, counted by the colour they came with; false: dropped. Where the account is the customer's
 * own (`his`), what he sent is counted in one go: a lock is half of what a meter costs. */
static __always_inline int meter(struct account *a, const struct terms *m, __u64 now, __u32 random, __u32 packets, __u32 bytes, __u32 came, __u32 *colour, int his, int by_colour)
{
	__u32 is, sent;

	came = at_most(came, RED);
	bpf_spin_lock(&a->lock);
	if (m->law >= TSW2CM) {
		is = by_chance(m, estimate(a, m, now, bytes), random);
	} else {
		fill(a, m, now);
		is = judge(a, m, came, (__u64)bytes * GRAINS);
	}
	count(&a->arrived[at_most(came, RED)], packets, bytes);
	if (his)
		count(&a->came, packets, bytes);
	if (is >= m->drop_from) {
		a->dropped[at_most(came, RED)] += packets;
		if (his)
			a->policed += packets;
		bpf_spin_unlock(&a->lock);
		return 0;
	}
	count(&a->left[at_most(is, RED)], packets, bytes);
	if (his) {
		sent = by_colour ? is : came;
		count(&a->sent[at_most(sent, RED)], packets, bytes);
	}
	bpf_spin_unlock(&a->lock);
	*colour = is;
	return 1;
}
