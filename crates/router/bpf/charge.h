/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* How many packets and bytes a frame is charged as. */
#pragma once

#include "maps.h"

/* gso_size where packets are the super-packet's fragments, each of its own length. */
#define BY_FRAGMENTS 0xffff
/* Headers that were not read are no longer than this. */
#define UNREAD 256

static __always_inline __u32 at_least(__u32 bytes, const struct rules *r)
{
	bytes += r->overhead;
	return bytes > r->mpu ? bytes : r->mpu;
}

/* The headers before the packet that leave with each, beyond those that all links have. */
static __always_inline __u32 beyond_usual(const struct seen *p)
{
	__u32 usual = 4 * (p->tags < 2 ? p->tags : 2) + (p->session == NO_SESSION ? 0 : 8), before = p->at - ETHERNET_HEADER;

	return p->why == IP_PACKET && before > usual ? before - usual : 0;
}

/* A step: a super-packet. As much as leaves, or more where the headers that each packet gets were not read: those inside a tunnel, or of
 * what is no IP packet. */
__noinline int weigh_all(struct __sk_buff *skb, struct work *w, struct rules *r)
{
	if (!w || !r)
		return 0;
	struct charge *c = &w->charge;
	const struct seen *p = &w->seen;
	__u32 beyond = beyond_usual(p), each = skb->gso_size, segments = skb->gso_segs;
	__u32 least = p->why == IP_PACKET ? p->body_at : 0, most = least;

	if (each == BY_FRAGMENTS && segments) {
		/* SCTP: each packet has a common header of 12 bytes, and a length of its own. */
		least += 12;
		c->packets = segments;
		c->bytes = segments * (at_least(least, r) + beyond) + (p->size > least ? p->size - least : 0);
		c->longest = 0;
		return 0;
	}
	if (p->why != IP_PACKET || (p->transport != TCP && p->transport != UDP))
		most += UNREAD;
	if (!each || p->size <= least + each)
		return 0;
	__u32 payload = p->size - least, whole = payload / each, rest = payload % each;
	c->packets = whole + !!rest;
	c->bytes = whole * (at_least(most + each, r) + beyond) + (rest ? at_least(most + rest, r) + beyond : 0);
	c->longest = least + each + (p->why == IP_PACKET ? p->at : ETHERNET_HEADER);
	return 0;
}

/* Linux sends one tag of IEEE 802.1Q beside the MTU, and no other. */
static __always_inline int fits(struct __sk_buff *skb, const struct seen *p, __u32 length, __u32 mtu)
{
	__u32 kind = 0;

	if (!mtu || length <= mtu + ETHERNET_HEADER)
		return 1;
	if (p->shift)
		kind = bpf_ntohs(skb->vlan_proto);
	else
		word(skb, p, 12, &kind);
	return kind == 0x8100 && length <= mtu + ETHERNET_HEADER + 4;
}

/* What a frame is charged as, in w->charge. */
static __always_inline void weigh(struct __sk_buff *skb, struct work *w, struct rules *r)
{
	w->charge = (struct charge){ 1, at_least(w->seen.size, r) + beyond_usual(&w->seen), w->seen.length };
	if (skb->gso_size)
		weigh_all(skb, w, r);
}
