/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Reads a frame's headers: the law of crates/live/src/packet. Offsets are those of the frame on the wire; its outermost VLAN tag may stand
 * beside it, as the kernel takes it off on receipt. */
#pragma once

#include "layout.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* What was read. */
struct seen {
	__u32 length;        /* of the frame */
	__u32 shift;         /* bytes of it that stand beside it */
	__u32 at;            /* where the IP header begins; how far it was read, if there is none */
	__u32 tags;
	__u32 labels;
	__u32 labels_at;
	__u32 vlan[2];
	__u32 session;
	__u32 size;
	__u32 body_at;       /* of the IP header: where what the transport carries begins */
	__u32 left;          /* bytes from there on, while headers are read */
	__u32 why;
	__u32 control;       /* a kind, or KINDS */
	__u32 version;       /* that the IP header should be of; 0: either */
	__u32 family;
	__u32 transport;
	__u32 protocol;
	__u32 octet;         /* DSCP and ECN */
	__u32 disagrees;
	__u32 has_ports;
	__u32 is_first;
	__u32 id;
	__u16 port[2];
	__u8 address[2][16];
	__u8 head[40];       /* the IP header's fixed part */
};

/* So far the verifier follows. */
#define MOST_HEADERS 1023
#define TAG(kind) ((kind) == 0x8100 || (kind) == 0x88a8 || (kind) == 0x9100)

/* The verifier follows values on the stack, not those in maps: what it may forget it need not try with every path that follows. What is no
 * common frame's is a function that is verified by itself, once: a call costs 5 ns (10 with a helper inside). */
static __always_inline __u32 forget(__u32 *in, __u32 value)
{
	*(volatile __u32 *)in = value;
	return *(volatile __u32 *)in;
}

/* An index, but no more than that: of Linux before 6.8 the verifier sees a bound only in the very register that was compared. */
static __always_inline __u32 at_most(__u32 i, __u32 most)
{
	asm volatile("" : "+r"(i));
	return i > most ? most : i;
}

/* A frame before anything of it is written. Its headers are in one piece as drivers deliver them, and then no function is called. */
struct frame {
	struct __sk_buff *skb;
	void *data;
	void *end;
};

static __always_inline struct frame frame_of(struct __sk_buff *skb)
{
	return (struct frame){ skb, (void *)(long)skb->data, (void *)(long)skb->data_end };
}

/* Bytes of a frame; false beyond its end. */
static __always_inline int load(struct __sk_buff *skb, const struct seen *p, __u32 at, void *to, __u32 bytes)
{
	if (at + bytes > p->length)
		return 0;
	return bpf_skb_load_bytes(skb, at - p->shift, to, bytes) == 0;
}

static __always_inline int get(const struct frame *f, const struct seen *p, __u32 at, void *to, __u32 bytes)
{
	__u32 from = at - p->shift;

	if (from <= MOST_HEADERS && f->data + from + bytes <= f->end) {
		__builtin_memcpy(to, f->data + from, bytes);
		return 1;
	}
	return load(f->skb, p, at, to, bytes);
}

static __always_inline int word(struct __sk_buff *skb, const struct seen *p, __u32 at, __u32 *to)
{
	__u16 w = 0;
	if (!load(skb, p, at, &w, 2))
		return 0;
	*to = bpf_ntohs(w);
	return 1;
}

static __always_inline int may_be_padded(const struct seen *p)
{
	return p->length <= ETHERNET_HEADER + SHORTEST_PAYLOAD + 4 * p->tags;
}

static __always_inline void note_tag(struct seen *p, __u32 tci)
{
	if (p->tags == 0)
		p->vlan[0] = tci & 0xfff;
	else if (p->tags == 1)
		p->vlan[1] = tci & 0xfff;
	p->tags++;
	p->at += 4;
}

/* RFC 3032 2.1. */
static __always_inline int mpls(struct __sk_buff *skb, struct seen *p)
{
	p->labels_at = p->at;
	for (int i = 0; i < MOST_LABELS; i++) {
		__u8 entry[4] = {};
		if (!load(skb, p, p->at, entry, 4))
			return TRUNCATED;
		p->labels++;
		p->at += 4;
		if (entry[2] & 1)
			return IP_PACKET;
	}
	return TOO_DEEP;
}

/* RFC 2516 4 and 6, RFC 1661 2. *labelled: labels follow. */
static __always_inline int pppoe(struct __sk_buff *skb, struct seen *p, int *labelled)
{
	__u8 h[6] = {}, first = 0;
	__u32 protocol = 0;

	if (!load(skb, p, p->at, h, 6))
		return TRUNCATED;
	if (h[0] != 0x11 || h[1] != 0)
		return MALFORMED;
	p->session = h[2] << 8 | h[3];
	p->at += 6;
	__u32 length = h[4] << 8 | h[5], there = p->length - p->at;
	p->disagrees = length > there || (length < there && !may_be_padded(p));
	if (!load(skb, p, p->at, &first, 1))
		return TRUNCATED;
	if (first & 1) {
		p->at += 1;
		protocol = first;
	} else {
		p->at += 2;
		if (!word(skb, p, p->at - 2, &protocol))
			return TRUNCATED;
	}
	if (protocol == 0x0021) {
		p->version = 4;
		return IP_PACKET;
	}
	if (protocol == 0x0057) {
		p->version = 6;
		return IP_PACKET;
	}
	if (protocol == 0x0281) {
		*labelled = 1;
		return IP_PACKET;
	}
	if (protocol >= 0x8000) {
		p->control = PPP;
		return CONTROL;
	}
	return NOT_IP;
}

/* IEEE 802.2: a spanning tree's frames, also behind SNAP. */
static __always_inline int llc(struct __sk_buff *skb, struct seen *p)
{
	__u8 h[8] = {};
	int tree = load(skb, p, p->at, h, 3) && h[0] == 0x42 && h[1] == 0x42 && h[2] == 3;
	if (!tree && load(skb, p, p->at, h, 8))
		tree = h[0] == 0xaa && h[1] == 0xaa && h[2] == 3 && h[3] == 0 && h[4] == 0 && h[5] == 0x0c && h[6] == 1 && h[7] == 0x0b;
	if (!tree)
		return NOT_IP;
	p->control = SPANNING_TREE;
	return CONTROL;
}

static __always_inline int control_kind(struct seen *p, __u32 kind)
{
	p->control = kind;
	return CONTROL;
}

/* The version of IP that is of this EtherType; 0: none is. */
static __always_inline __u32 version_of(__u32 kind)
{
	return kind == 0x0800 ? 4 : kind == 0x86dd ? 6 : 0;
}

/* A step: up to the IP header, where that does not stand behind the first EtherType. */
__noinline int read_until_ip(struct __sk_buff *skb, struct seen *p, __u32 kind)
{
	__u32 tci = 0;
	int labelled = 0, why;

	if (!p)
		return MALFORMED;
	for (int i = 0; i <= MOST_TAGS && TAG(kind); i++) {
		if (p->tags >= MOST_TAGS)
			return TOO_DEEP;
		if (!word(skb, p, p->at, &tci))
			return TRUNCATED;
		note_tag(p, tci);
		if (!word(skb, p, p->at - 2, &kind))
			return TRUNCATED;
	}
	p->version = version_of(kind);
	if (p->version)
		return IP_PACKET;
	switch (kind) {
	case 0x8864:
		why = pppoe(skb, p, &labelled);
		return labelled ? mpls(skb, p) : why;
	case 0x8847:
	case 0x8848:
		return mpls(skb, p);
	case 0x0806:
	case 0x8035:
		return control_kind(p, ARP);
	case 0x8863:
		return control_kind(p, PPPOE_DISCOVERY);
	case 0x8809:
		return control_kind(p, SLOW_PROTOCOLS);
	case 0x888e:
		return control_kind(p, EAPOL);
	case 0x88cc:
		return control_kind(p, LLDP);
	case 0x8808:
		return MAC_CONTROL;
	}
	return kind < 0x0600 ? llc(skb, p) : NOT_IP;
}

static __always_inline __u32 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* A step: the checksum of an IPv4 header of so many bytes is right. */
__noinline int right_checksum(struct __sk_buff *skb, struct seen *p, __u32 header)
{
	__u32 sum = 0;

	if (!p)
		return 0;
	for (__u32 i = 0; i < 30; i++) {
		__u32 w = 0;
		if (2 * i >= header)
			break;
		if (!word(skb, p, p->at + 2 * i, &w))
			return 0;
		sum += w;
	}
	return fold(sum) == 0xffff;
}

/* TCP's and UDP's ports, where their header can be one: RFC 9293 3.1, RFC 768. */
static __always_inline void read_transport(const struct frame *f, struct seen *p, __u32 body, __u32 bytes)
{
	__u8 h[14] = {};

	p->body_at = body;
	p->transport = OTHER;
	if (p->protocol == 6 && bytes >= 20 && get(f, p, p->at + body, h, 14)) {
		__u32 header = (h[12] >> 4) * 4;
		if (header < 20 || header > bytes)
			return;
		p->transport = TCP;
		p->body_at += header;
	} else if (p->protocol == 17 && bytes >= 8 && get(f, p, p->at + body, h, 4)) {
		p->transport = UDP;
		p->body_at += 8;
	} else {
		return;
	}
	p->has_ports = 1;
	p->port[0] = h[0] << 8 | h[1];
	p->port[1] = h[2] << 8 | h[3];
}

/* A fragment has no ports of its own; the first one shows its packet's. */
static __always_inline void read_fragment(struct __sk_buff *skb, struct seen *p, __u32 body, __u32 bytes)
{
	__u8 h[4] = {};

	p->body_at = body;
	p->transport = FRAGMENT;
	if (!p->is_first || (p->protocol != 6 && p->protocol != 17) || bytes < 4 || !load(skb, p, p->at + body, h, 4))
		return;
	p->has_ports = 1;
	p->port[0] = h[0] << 8 | h[1];
	p->port[1] = h[2] << 8 | h[3];
}

/* How long the packet is, and whether its length field says so: what is there counts, but for the padding of a short frame. */
static __always_inline void set_size(struct seen *p, __u32 says, __u32 header, __u32 there)
{
	if (may_be_padded(p) && says >= header && says < there) {
		p->size = says;
	} else {
		p->size = there;
		p->disagrees |= says != there;
	}
}

/* RFC 791 3.1. */
static __always_inline int ipv4(const struct frame f, struct seen *p, __u32 there)
{
	if (!get(&f, p, p->at, p->head, 20))
		return TRUNCATED;
	__u32 header = (p->head[0] & 15) * 4, says = p->head[2] << 8 | p->head[3];
	if (header < 20)
		return MALFORMED;
	if (header > there)
		return TRUNCATED;
	__u32 bytes = says >= header && says <= there ? says - header : there - header;
	__u32 place = (p->head[6] << 8 | p->head[7]) & 0x3fff;

	p->family = 4;
	p->octet = p->head[1];
	p->protocol = p->head[9];
	__builtin_memcpy(p->address[0], p->head + 12, 4);
	__builtin_memcpy(p->address[1], p->head + 16, 4);
	p->id = p->head[4] << 8 | p->head[5];
	p->is_first = (place & 0x1fff) == 0;
	set_size(p, says, header, there);
	if (place)
		read_fragment(f.skb, p, header, bytes);
	else
		read_transport(&f, p, header, bytes);
	/* Behind labels only what is IPv4 beyond doubt is taken for it (RFC 4928 3). */
	if (p->labels && (says > there || !right_checksum(f.skb, p, header)))
		return NOT_IP;
	return IP_PACKET;
}

/* RFC 8200 3 and 4. */
static __always_inline int ipv6(const struct frame f, struct seen *p, __u32 there)
{
	__u32 fragment = 0, link_disagrees = p->disagrees;

	if (!get(&f, p, p->at, p->head, 40))
		return TRUNCATED;
	__u32 says = 40 + (p->head[4] << 8 | p->head[5]);
	__u32 body = 40, bytes = (says <= there ? says : there) - 40;
	__u32 next = p->head[6];

	p->family = 6;
	p->octet = (p->head[0] << 4 | p->head[1] >> 4) & 0xff;
	__builtin_memcpy(p->address[0], p->head + 8, 16);
	__builtin_memcpy(p->address[1], p->head + 24, 16);
	p->disagrees = 0;
	set_size(p, says, 40, there);
	if (p->labels && p->disagrees)
		return NOT_IP;
	p->disagrees |= link_disagrees;
	for (int i = 0; i < MOST_EXTENSIONS; i++) {
		__u8 h[8] = {};
		__u32 length = 8;
		body = forget(&p->body_at, body);
		bytes = forget(&p->left, bytes);
		if (next == 0 || next == 43 || next == 60 || next == 135 || next == 51) {
			if (bytes < 2 || !load(f.skb, p, p->at + body, h, 2))
				break;
			length = 8 + (next == 51 ? 4 : 8) * h[1];
		} else if (next == 44) {
			if (bytes < 4 || !load(f.skb, p, p->at + body, h, 4))
				break;
			__u32 place = (h[2] << 8 | h[3]) & 0xfff9;
			if (!fragment && place) {
				fragment = 1;
				p->is_first = (place & 0xfff8) == 0;
				p->id = 0;
				if (bytes >= 8 && load(f.skb, p, p->at + body, h, 8))
					p->id = (__u32)h[4] << 24 | h[5] << 16 | h[6] << 8 | h[7];
			}
		} else {
			break;
		}
		int middle = fragment && !p->is_first;
		if (length > bytes && !middle)
			break;
		next = h[0];
		body += length <= bytes ? length : bytes;
		bytes -= length <= bytes ? length : bytes;
		if (middle)
			break;
	}
	p->protocol = next;
	body = forget(&p->body_at, body);
	bytes = forget(&p->left, bytes);
	if (fragment) {
		read_fragment(f.skb, p, body, bytes);
	} else {
		__u8 h[2] = {};
		read_transport(&f, p, body, bytes);
		/* RFC 4861 6.1, 7.1: of a neighbour and of no one further away. */
		if (next == 58 && p->head[7] == 255 && bytes >= 2 && load(f.skb, p, p->at + body, h, 2) && h[0] >= 133 && h[0] <= 137 && h[1] == 0)
			p->control = NEIGHBOUR_DISCOVERY;
	}
	return IP_PACKET;
}

static __always_inline int read_ip(struct __sk_buff *skb, struct seen *p)
{
	struct frame f = frame_of(skb);
	__u8 first = 0;

	if (!get(&f, p, p->at, &first, 1))
		return TRUNCATED;
	if ((first >> 4) != 4 && (first >> 4) != 6)
		return p->labels ? NOT_IP : MALFORMED;
	if (p->version && p->version != first >> 4)
		return MALFORMED;
	return first >> 4 == 4 ? ipv4(frame_of(skb), p, p->length - p->at) : ipv6(frame_of(skb), p, p->length - p->at);
}

/* Reads a frame: sets p->why, and the kind of a control frame. */
static __always_inline void read_frame(struct __sk_buff *skb, struct seen *p)
{
	struct frame f = frame_of(skb);
	__u32 why = TRUNCATED, kind;
	__u16 type;

	__builtin_memset(p, 0, sizeof(*p));
	p->control = KINDS;
	p->vlan[0] = p->vlan[1] = NO_VLAN;
	p->session = NO_SESSION;
	p->at = ETHERNET_HEADER;
	p->length = skb->len;
	if (skb->vlan_present) {
		/* The tag stands beside the frame: all that follows is four bytes nearer than on the wire. */
		note_tag(p, skb->vlan_tci);
		p->shift = 4;
		p->length += 4;
	}
	if (get(&f, p, p->at - 2, &type, 2)) {
		kind = bpf_ntohs(type);
		p->version = version_of(kind);
		why = p->version ? IP_PACKET : read_until_ip(skb, p, kind);
	}
	if (why == IP_PACKET)
		why = read_ip(skb, p);
	if (why != IP_PACKET) {
		p->size = p->length > ETHERNET_HEADER + SHORTEST_PAYLOAD ? p->length - ETHERNET_HEADER : SHORTEST_PAYLOAD;
		p->disagrees = 0;
	}
	p->why = why;
}
