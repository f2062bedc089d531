/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Writes what may be written of a frame: DSCP and IPv4's checksum, the classes of tags and labels. Each answers 0, or that it could not: a
 * frame that would leave with what it came with, or without its tag, has to be dropped then. */
#pragma once

#include "maps.h"

/* DSCP and ECN. A checksum that was wrong stays wrong by as much (RFC 1624 Eq. 3). */
static __always_inline long set_octet(struct __sk_buff *skb, struct seen *p, __u32 octet)
{
	__u32 at = p->at - p->shift;

	if (octet == p->octet)
		return 0;
	if (p->family == 4) {
		__u32 sum = p->head[10] << 8 | p->head[11];
		__u32 new = (~sum & 0xffff) + (~(p->head[0] << 8 | p->head[1]) & 0xffff) + (p->head[0] << 8 | octet);
		new = ~fold(new) & 0xffff;
		p->head[1] = octet;
		p->head[10] = new >> 8;
		p->head[11] = new;
		/* The checksum of the whole stays as it was: no need to tell the kernel. */
		return bpf_skb_store_bytes(skb, at + 1, p->head + 1, 11, 0);
	} else {
		__u8 h[2] = { (p->head[0] & 0xf0) | octet >> 4, (p->head[1] & 0x0f) | octet << 4 };
		return bpf_skb_store_bytes(skb, at, h, 2, BPF_F_RECOMPUTE_CSUM);
	}
}

/* IEEE 802.1Q 6.9.3, RFC 5462: the drop-eligible bit stays. */
static __always_inline long clear_link_classes(struct __sk_buff *skb, struct seen *p)
{
	__u8 octet = 0;
	long failed = 0;

	for (__u32 i = 0; i < MOST_TAGS; i++) {
		__u32 at = ETHERNET_HEADER + 4 * i;
		if (i >= p->tags)
			break;
		if (at < ETHERNET_HEADER + p->shift || !load(skb, p, at, &octet, 1) || !(octet & 0xe0))
			continue;
		octet &= 0x1f;
		failed |= bpf_skb_store_bytes(skb, at - p->shift, &octet, 1, BPF_F_RECOMPUTE_CSUM);
	}
	for (__u32 i = 0; i < MOST_LABELS; i++) {
		__u32 at = p->labels_at + 4 * i + 2;
		if (i >= p->labels)
			break;
		if (!load(skb, p, at, &octet, 1) || !(octet & 0x0e))
			continue;
		octet &= 0xf1;
		failed |= bpf_skb_store_bytes(skb, at - p->shift, &octet, 1, BPF_F_RECOMPUTE_CSUM);
	}
	/* Last, as it moves the others: the tag that stands beside. */
	if (p->shift && skb->vlan_tci & 0xe000) {
		__u32 tci = skb->vlan_tci & 0x1fff, proto = skb->vlan_proto;
		failed |= bpf_skb_vlan_pop(skb);
		failed |= bpf_skb_vlan_push(skb, proto, tci);
	}
	return failed;
}
