/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A virtual queue: what a link of a given rate would have waiting, which RED, RIO, WRED or a limit decides by. The law is that of
 * crates/core/src/aqm/virtual_queue/whole.rs, number by number; how far it may be from the law in floating point stands there. */
#pragma once

#include "meter.h"

#define BYTE GRAINS
#define ONE (1ULL << 32)

enum verdict { ADMIT, MARK, EARLY, FORCED, POLICED };

struct arrival {
	__u64 now;
	__u32 size;
	__u32 colour;
	__u32 ecn;
	__u32 random;
};

/* a * b / 2^32, for b up to 2^32 and a result of less than 2^64. */
static __always_inline __u64 mul_shr32(__u64 a, __u64 b)
{
	return (a >> 32) * b + (((a & (ONE - 1)) * b) >> 32);
}

/* v = max(0, v - C t), and the colours' parts in proportion. */
static __always_inline void drain(const struct queue *s, struct backlog *b, __u64 now)
{
	if (!b->level || now <= b->last)
		return;
	__u64 since = now - b->last, drained = since >= s->drains_in ? b->level : least(b->level, since * s->rate);
	/* After a reload there may be less room than is taken. */
	__u64 left = least(b->level - drained, s->most);
	if (!left) {
		b->empty_since = b->last + (b->level + s->rate - 1) / s->rate;
		b->parts[0] = b->parts[1] = b->parts[2] = 0;
	} else {
		__u64 before = b->level >> (s->shift & 63), after = left >> (s->shift & 63);
		__u64 kept = before ? (after << 32) / before : 0;
		for (int i = 0; i < 3; i++)
			b->parts[i] = mul_shr32(b->parts[i], kept);
	}
	b->level = left;
	b->last = now;
}

/* 2^-x for the fraction x with 56 binary digits: with 32 of them. */
static __always_inline __u64 exp2_neg(const struct powers *t, __u64 x)
{
	__u64 coarse = mul_shr32(t->eighth[x >> 48 & 255], t->sixteenth[x >> 40 & 255]);
	__u64 fine = mul_shr32(x & ((1ULL << 40) - 1), t->ln2) >> 24;
	return mul_shr32(coarse, ONE - fine);
}

/* avg = avg 2^-(fade t): as if packets had found an empty queue for so long. */
static __always_inline void age(const struct queue *s, struct backlog *b, const struct powers *t, __u64 now)
{
	__u64 from = b->empty_since > b->aged ? b->empty_since : b->aged, idle = now > from ? now - from : 0;

	/* Another CPU's arrival may have come before this one waited for the lock. */
	b->aged = now > b->aged ? now : b->aged;
	if (idle >= s->forgets_in) {
		b->avg[0] = b->avg[1] = b->avg[2] = 0;
	} else if (idle) {
		__u64 power = s->fade * idle, kept = exp2_neg(t, power);
		for (int i = 0; i < 3; i++)
			b->avg[i] = mul_shr32(b->avg[i], kept) >> (power >> 56 & 63);
	}
}

/* avg = avg + w (q - avg), for each average that an arrival of this colour is a sample of. */
static __always_inline void sample(const struct queue *s, struct backlog *b, __u32 colour)
{
	__u64 all = ((b->level / BYTE) << 16) + (((b->level % BYTE) << 16) / BYTE);

	for (int i = 0; i < 3; i++) {
		__u64 q = 0, avg = b->avg[i];
		if (!(s->takes[at_most(colour, RED)] >> i & 1))
			continue;
		if (s->of[i] == 7)
			q = all;
		else
			for (int c = 0; c < 3; c++)
				q += s->of[i] >> c & 1 ? b->parts[c] : 0;
		b->avg[i] = q >= avg ? avg + mul_shr32(q - avg, s->w) : avg - mul_shr32(avg - q, s->w);
	}
}

/* A probability s/2^k of so much. */
static __always_inline __u64 factor(const struct factor *f, __u64 x)
{
	__u64 product = mul_shr32(x, f->s);
	return f->k >= 32 ? product >> (f->k - 32 & 63) : product << (32 - f->k & 63);
}

static __always_inline __u64 probability(const struct curve *c, __u64 avg)
{
	__u64 p = avg < c->max_th ? factor(&c->slope, avg > c->min_th ? avg - c->min_th : 0) : c->max_p + factor(&c->gentle, avg - c->max_th);
	return p > 0xffffffff ? 0xffffffff : p;
}

/* u < p / (1 - count p); with `wait` u < p / (2 - count p), and not before count p is 1. */
static __always_inline int picked(const struct queue *s, __u64 p, __u64 count, __u32 random)
{
	__u64 due = count * p, room = s->wait ? 2 * ONE : ONE;

	if (s->wait && due < ONE)
		return 0;
	return due >= room || random * (room - due) < p << 32;
}

/* Early drops by the colour's curve, then the limit. */
static __always_inline __u32 test(const struct queue *s, struct backlog *b, const struct arrival *a)
{
	int room = b->level + a->size * BYTE <= s->most, marked = 0;
	__u32 row = at_most(s->row[at_most(a->colour, RED)], 2);

	if (!s->curves)
		return room ? ADMIT : POLICED;
	const struct curve *c = &s->curve[row];
	__u64 avg = b->avg[row];
	__s32 count = b->count[row];
	__u32 verdict = ADMIT;
	if (avg < c->min_th) {
		count = -1;
	} else if (avg >= c->end) {
		count = 0;
		verdict = FORCED;
	} else {
		if (count < 0x7fffffff)
			count++;
		if (picked(s, probability(c, avg), (__u32)count, a->random)) {
			count = 0;
			marked = s->ecn && a->ecn && avg < c->max_th;
			verdict = marked ? MARK : EARLY;
		}
	}
	if (verdict <= MARK && !room) {
		if (count > 0)
			count = 0;
		verdict = POLICED;
	}
	b->count[at_most(row, 2)] = count;
	return verdict;
}

/* What becomes of an arrival. */
static __always_inline __u32 arrive(const struct queue *s, struct backlog *b, const struct powers *t, const struct arrival *a)
{
	drain(s, b, a->now);
	if (s->curves) {
		if (b->level)
			sample(s, b, a->colour);
		else
			age(s, b, t, a->now);
	}
	__u32 verdict = test(s, b, a);
	if (verdict <= MARK) {
		if (a->now > b->last)
			b->last = a->now;
		b->level += a->size * BYTE;
		b->parts[at_most(a->colour, RED)] += (__u64)a->size << 16;
	}
	return verdict;
}

/* Packets of so many bytes together at the queue of a class, if it has one: they are one arrival. */
static __always_inline __u32 queued(__u32 set, __u32 class, __u32 packets, const struct arrival *a)
{
	__u32 zero = 0, i = set * CLASSES + class, verdict;
	struct queue *s = bpf_map_lookup_elem(&queues, &i);
	struct powers *t = bpf_map_lookup_elem(&powers, &zero);

	i = (set & 1) * CLASSES + class;
	struct backlog *b = bpf_map_lookup_elem(&backlogs, &i);
	if (!s || !t || !b || a->colour > RED)
		return ADMIT;
	bpf_spin_lock(&b->lock);
	verdict = arrive(s, b, t, a);
	if (verdict == MARK) {
		b->marked[at_most(a->colour, RED)] += packets;
	} else if (verdict != ADMIT) {
		b->lost[at_most(a->colour, RED)] += a->size;
		b->dropped[verdict == EARLY ? 0 : verdict == FORCED ? 1 : 2][at_most(a->colour, RED)] += packets;
	}
	bpf_spin_unlock(&b->lock);
	return verdict;
}
