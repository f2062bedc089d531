/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Writes what may be written of a frame: DSCP and IPv4's checksum, the classes of tags and labels. Each answers 0, or that it could not: a
 * frame that would leave with what it came with, or without its tag, has to be dropped then. Headers in one piece are written where they are,
 * for which the kernel makes them the frame's own before the program begins, or drops it where there is no memory. */
#pragma once

#include "maps.h"

/* DSCP and ECN. A checksum that was wrong stays wrong by as much (RFC 1624 Eq. 3). */
static __always_inline long set_octet(struct __sk_buff *skb, struct seen *p, __u32 octet)
{
	__u32 at = p->at - p->shift;
	__u8 *here = (void *)(long)skb->data + (at & MOST_HEADERS), *h = p->head;
	int direct = at <= MOST_HEADERS && here + 12 <= (__u8 *)(long)skb->data_end;

	if (p->family == 4) {
		__u32 sum = h[10] << 8 | h[11];
		__u32 new = (~sum & 0xffff) + (~(h[0] << 8 | h[1]) & 0xffff) + (h[0] << 8 | octet);
		new = ~fold(new) & 0xffff;
		h[1] = octet;
		h[10] = new >> 8;
		h[11] = new;
		/* The checksum of the whole stays as it was: no need to tell the kernel. */
		if (!direct)
			return bpf_skb_store_bytes(skb, at + 1, h + 1, 11, 0);
		here[1] = h[1];
		here[10] = h[10];
		here[11] = h[11];
		return 0;
	}
	__u16 old = *(__u16 *)h;
	h[0] = (h[0] & 0xf0) | octet >> 4;
	h[1] = (h[1] & 0x0f) | octet << 4;
	/* Bytes at an odd place count the other way round in a checksum of the whole. */
	if (!direct || at & 1)
		return bpf_skb_store_bytes(skb, at, h, 2, BPF_F_RECOMPUTE_CSUM);
	here[0] = h[0];
	here[1] = h[1];
	/* Most frames have none, and then it answers so. */
	bpf_csum_update(skb, (__u16)~old + *(__u16 *)h);
	return 0;
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
