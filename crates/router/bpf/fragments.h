/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The ports of packets whose fragments are under way: the law of src/policy/lookups.rs. A packet is remembered by a keyed hash of what its
 * fragments have in common, in a set of few; in a full one it takes the oldest one's place, so that a new packet costs what a known one
 * does. Nobody can choose packets that share a set or a hash. */
#pragma once

#include "maps.h"

/* RFC 791 3.2: for as long as its receiver may wait. */
#define REASSEMBLY 15000000000ULL

static __always_inline __u64 rotated(__u64 x, int by)
{
	return x << by | x >> (64 - by);
}

/* SipHash-1-3 (Aumasson and Bernstein, 2012). */
static __always_inline void sip_round(__u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotated(v[1], 13) ^ v[0];
	v[3] = rotated(v[3], 16) ^ v[2];
	v[0] = rotated(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotated(v[1], 17) ^ v[2];
	v[3] = rotated(v[3], 21) ^ v[0];
	v[2] = rotated(v[2], 32);
}

static __always_inline __u64 keyed_hash(const __u64 secret[2], const __u64 *words, int count)
{
	__u64 v[4] = { secret[0] ^ 0x736f6d6570736575, secret[1] ^ 0x646f72616e646f6d, secret[0] ^ 0x6c7967656e657261, secret[1] ^ 0x7465646279746573 };

	for (int i = 0; i <= count; i++) {
		__u64 word = i < count ? words[i] : (__u64)count << 59;
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* What all fragments of a packet have: RFC 791 3.2 tells packets by identification, addresses and protocol, RFC 8200 4.5 without the last. */
static __always_inline __u64 hash_of_packet(const struct state *s, const struct work *w)
{
	const struct seen *p = &w->seen;
	__u64 words[6];

	__builtin_memcpy(words, p->address, 32);
	words[4] = (__u64)p->session << 32 | p->id;
	words[5] = (__u64)p->vlan[0] << 48 | (__u64)p->vlan[1] << 32 | w->direction << 16 | p->family << 8 | (p->family == 4 ? p->protocol : 0);
	/* 0 is nobody's. */
	return keyed_hash(s->secret, words, 6) | 1;
}

/* A step: the ports of a fragment's packet, in w->seen, where its first fragment shows them or has shown them; else false. */
__noinline int ports_of_first(struct work *w)
{
	__u32 zero = 0, i, way = WAYS, oldest = 0, found = 0, ports;
	struct state *s = bpf_map_lookup_elem(&state, &zero);
	struct fragments *of;
	__u64 hash, least = ~0ULL;

	if (!w || !s)
		return 0;
	struct seen *p = &w->seen;
	hash = hash_of_packet(s, w);
	i = hash >> 32 & (FRAGMENT_SETS - 1);
	of = bpf_map_lookup_elem(&fragments, &i);
	if (!of)
		return 0;
	ports = (__u32)p->port[0] << 16 | p->port[1];
	bpf_spin_lock(&of->lock);
	for (i = 0; i < WAYS; i++) {
		if (of->hash[i] == hash)
			way = i;
		if (of->at[i] < least) {
			least = of->at[i];
			oldest = i;
		}
	}
	if (p->has_ports) {
		way = at_most(way < WAYS ? way : oldest, WAYS - 1);
		of->hash[way] = hash;
		of->at[way] = w->now;
		of->ports[way] = ports;
		found = 1;
	} else if (way < WAYS) {
		way = at_most(way, WAYS - 1);
		ports = of->ports[way];
		found = w->now <= of->at[way] || w->now - of->at[way] <= REASSEMBLY;
	}
	bpf_spin_unlock(&of->lock);
	p->port[0] = ports >> 16;
	p->port[1] = ports & 0xffff;
	return found;
}
