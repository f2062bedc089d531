/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Contracts in the kernel: at the ingress hook of each of two ports a frame is read, given to its customer, metered, given the DSCP of its
 * colour or dropped, counted, and sent by the other port. The laws are those of crates/router/src/policy and crates/live/src/datapath:
 * tests/kernel gives both the same frames. */
#include "meter.h"
#include "owner.h"
#include "queue.h"
#include "write.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* gso_size where packets are the super-packet's fragments, each of its own length. */
#define BY_FRAGMENTS 0xffff
/* Headers that were not read are no longer than this. */
#define UNREAD 256

/* What becomes of a frame. */
struct treatment {
	__u32 customer;      /* account plus 1 */
	__u32 meter;         /* account plus 1 */
	__u32 class;
	__u32 colour;
	__u32 by_colour;     /* its DSCP becomes its colour's */
	__u32 dscp;          /* else this; KEEP: it stays */
	__u32 clear_link;
};

/* A frame as it is charged. A super-packet is several of the same flow, and charged for each one's headers. */
struct charge {
	__u32 packets;
	__u32 bytes;
	__u32 longest;       /* the longest of their frames */
};

static __always_inline __u32 at_least(__u32 bytes, const struct rules *r)
{
	bytes += r->overhead;
	return bytes > r->mpu ? bytes : r->mpu;
}

/* As much as leaves, or more where the headers that each packet gets were not read: those inside a tunnel, or of what is no IP packet. */
static __always_inline struct charge charge_of(struct __sk_buff *skb, const struct seen *p, const struct rules *r)
{
	struct charge c = { 1, at_least(p->size, r), p->length };
	__u32 usual = 4 * (p->tags < 2 ? p->tags : 2) + (p->session == NO_SESSION ? 0 : 8);
	__u32 before = p->at - ETHERNET_HEADER, each = skb->gso_size, segments = skb->gso_segs;
	__u32 beyond = p->why == IP_PACKET && before > usual ? before - usual : 0;
	__u32 least = p->why == IP_PACKET ? p->body_at : 0, most = least;

	c.bytes += beyond;
	if (each == BY_FRAGMENTS && segments) {
		/* SCTP: each packet has a common header of 12 bytes, and a length of its own. */
		least += 12;
		c.packets = segments;
		c.bytes = segments * (at_least(least, r) + beyond) + (p->size > least ? p->size - least : 0);
		c.longest = 0;
		return c;
	}
	if (p->why != IP_PACKET || (p->transport != TCP && p->transport != UDP))
		most += UNREAD;
	if (!each || p->size <= least + each)
		return c;
	__u32 payload = p->size - least, whole = payload / each, rest = payload % each;
	c.packets = whole + !!rest;
	c.bytes = whole * (at_least(most + each, r) + beyond) + (rest ? at_least(most + rest, r) + beyond : 0);
	c.longest = least + each + (p->why == IP_PACKET ? p->at : ETHERNET_HEADER);
	return c;
}

/* Linux sends one tag of IEEE 802.1Q beside the MTU, and no other. */
static __always_inline int fits(const struct frame *f, const struct seen *p, __u32 length, __u32 mtu)
{
	__u32 kind = 0;
	if (!mtu || length <= mtu + ETHERNET_HEADER)
		return 1;
	if (p->shift)
		kind = bpf_ntohs(f->skb->vlan_proto);
	else
		word(f->skb, p, 12, &kind);
	return kind == 0x8100 && length <= mtu + ETHERNET_HEADER + 4;
}

static __always_inline void census(struct totals *t, const struct seen *p)
{
	__u32 i;
	if (p->control < KINDS)
		i = 8 + p->control;
	else if (p->why == IP_PACKET)
		i = p->transport + (p->family == 4 ? 0 : 4);
	else
		i = 16 + p->why - NOT_IP;
	if (i < CENSUS)
		t->census[i]++;
}

static __always_inline int refuse(struct totals *t, __u32 reason, __u32 packets)
{
	if (reason < REFUSALS)
		t->refused[reason] += packets;
	return TC_ACT_SHOT;
}

static __always_inline int leave(struct __sk_buff *skb, const struct state *s, struct totals *t, int direction)
{
	__u32 out = s->out[direction];
	if (!out) {
		t->no_port++;
		return TC_ACT_SHOT;
	}
	skb->mark = s->mark;
	return bpf_redirect(out, 0);
}

/* All kinds together: a part is kept for each. */
static __always_inline int take_any(struct bucket *any, struct bucket *kept, const struct police *p, __u64 need, __u64 now)
{
	return take(kept, &p[1], need, now) || take(any, &p[0], need, now);
}

static __always_inline int address_admits(struct __sk_buff *skb, const struct seen *p, const struct rules *r, __u32 direction, __u32 kind, __u64 need, __u64 now)
{
	struct address_key key = { .direction = direction };
	struct address *found;

	bpf_skb_load_bytes(skb, 6, key.address, 6);
	found = bpf_map_lookup_elem(&addresses, &key);
	if (!found) {
		struct address new = {};
		new.any.tokens = r->address[0].depth;
		new.any.at = now;
		for (int i = 0; i < KINDS; i++) {
			new.kept[i].tokens = r->address[1].depth;
			new.kept[i].at = now;
		}
		bpf_map_update_elem(&addresses, &key, &new, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&addresses, &key);
		if (!found)
			return 0;
	}
	return take_any(&found->any, &found->kept[kind & (KINDS - 1)], r->address, need, now);
}

/* Whether a control frame's sender has not sent too many: the law of src/policy/senders.rs. */
static __always_inline int admits(struct __sk_buff *skb, const struct seen *p, const struct rules *r, __u32 set, __u32 kind, __u32 bytes, __u64 now)
{
	__u32 direction = set & 1, holder = holder_of(p, r, set), passes;
	__u64 need = (__u64)bytes * GRAINS;
	struct all_kinds *all;

	if (holder) {
		struct sender_key key = { .kind = direction * KINDS + kind, .account = holder - 1 };
		struct sender *his = bpf_map_lookup_elem(&senders, &key);
		if (!his) {
			struct sender new = { .bucket = { r->each.depth, now } };
			bpf_map_update_elem(&senders, &key, &new, BPF_NOEXIST);
			his = bpf_map_lookup_elem(&senders, &key);
			if (!his)
				return 0;
		}
		bpf_spin_lock(&his->lock);
		passes = take(&his->bucket, &r->each, need, now);
		bpf_spin_unlock(&his->lock);
		return passes;
	}
	if (r->by_address && !address_admits(skb, p, r, direction, kind, need, now))
		return 0;
	all = bpf_map_lookup_elem(&together, &direction);
	if (!all)
		return 0;
	bpf_spin_lock(&all->lock);
	passes = take_any(&all->any, &all->kept[kind & (KINDS - 1)], r->addresses, need, now);
	bpf_spin_unlock(&all->lock);
	return passes;
}

static __always_inline struct terms *terms_of(const struct state *s, __u32 set, __u32 account)
{
	__u32 i = set * s->capacity + account;
	return bpf_map_lookup_elem(&terms, &i);
}

/* The treatment of what nobody has bought: best effort, for which its owner answers. */
static __always_inline void unsold(struct treatment *t, const struct state *s, const struct rules *r, __u32 set, __u32 customer)
{
	struct terms *m = customer ? terms_of(s, set, customer - 1) : 0;

	t->customer = customer;
	t->meter = m && m->policed ? customer : 0;
	t->class = r->best_effort;
	t->colour = YELLOW;
	t->by_colour = 0;
	t->dscp = KEEP;
	t->clear_link = r->bleach;
}

/* The law of src/policy/rules.rs. */
static __always_inline void treat(struct treatment *t, const struct seen *p, const struct state *s, const struct rules *r, __u32 set, struct owner owner)
{
	__u32 dscp = p->octet >> 2 & 63, colour = 3, customer = owner.entitled ? owner.account : 0;
	struct terms *m = customer ? terms_of(s, set, customer - 1) : 0;

	unsold(t, s, r, set, owner.account);
	t->dscp = r->becomes[dscp];
	for (int i = 0; i < 3; i++)
		if (r->points[i] == dscp)
			colour = i;
	if (m && m->metered >> dscp & 1) {
		t->class = r->assured;
		t->colour = colour < 3 ? colour : GREEN;
		t->meter = customer;
		t->by_colour = 1;
		t->clear_link = r->edge && r->bleach;
		return;
	}
	if (colour < 3 && !r->edge) {
		t->class = r->assured;
		t->colour = colour;
		t->meter = 0;
		t->dscp = KEEP;
		t->clear_link = 0;
		return;
	}
	__u32 class = r->class_of[dscp];
	if (class >= r->assured)
		return;
	__u32 policer = m ? m->policer[class & 15] : 0;
	if (!policer && r->edge)
		return;
	t->class = class;
	t->meter = policer;
	t->dscp = KEEP;
	t->clear_link = 0;
}

static __noinline int forward(struct __sk_buff *skb, __u32 direction)
{
	direction &= 1;
	__u32 zero = 0, way = direction, set, customer;
	struct state *s = bpf_map_lookup_elem(&state, &zero);
	struct totals *t = bpf_map_lookup_elem(&totals, &way);
	struct seen *p = bpf_map_lookup_elem(&scratch, &zero);
	struct account *his = 0;
	struct frame f = { skb, (void *)(long)skb->data, (void *)(long)skb->data_end };
	struct treatment what = {};
	struct rules *r;
	__u64 now;

	if (!s || !t || !p || !s->on)
		return TC_ACT_SHOT;
	now = s->clock ? skb->tstamp : bpf_ktime_get_ns();
	set = (s->bank & 1) * 2 + direction;
	r = bpf_map_lookup_elem(&rules, &set);
	if (!r)
		return TC_ACT_SHOT;
	read_frame(&f, p);
	struct charge charge = charge_of(skb, p, r);
	t->came += charge.packets;
	census(t, p);
	t->length_disagrees += p->disagrees;
	if (!fits(&f, p, charge.longest, s->mtu[direction]))
		return refuse(t, R_TOO_LONG, charge.packets);
	if (s->bypass || !r->configured) {
		t->passed += charge.packets;
		t->bypassed += s->bypass ? charge.packets : 0;
		return leave(skb, s, t, direction);
	}
	if (p->control < KINDS) {
		if (!admits(skb, p, r, set, p->control, charge.bytes, now)) {
			t->excess[p->control & (KINDS - 1)] += charge.packets;
			t->policed += charge.packets;
			return TC_ACT_SHOT;
		}
		unsold(&what, s, r, set, 0);
		if (p->why == IP_PACKET)
			what.dscp = r->becomes[p->octet >> 2 & 63];
		what.class = 0;
		what.colour = GREEN;
		what.meter = r->control + p->control + 1;
		what.clear_link = 0;
	} else if (p->why == IP_PACKET) {
		__u16 port[2] = { p->port[0], p->port[1] };
		__u32 has_ports = p->has_ports;
		int side = direction == 0 ? 0 : 1;
		if (p->disagrees && r->drop_mismatch)
			return refuse(t, R_LENGTH_MISMATCH, charge.packets);
		if (p->transport == FRAGMENT) {
			has_ports = r->ports && ports_of(p, direction, now, port);
			t->without_first += r->ports && !has_ports;
		}
		treat(&what, p, s, r, set, owner_of(p, r, set, side, has_ports, port[side]));
	} else {
		if (p->why == MAC_CONTROL || r->drop_unreadable)
			return refuse(t, p->why - NOT_IP, charge.packets);
		customer = holder_of(p, r, set);
		unsold(&what, s, r, set, customer ? customer : r->rest);
	}
	/* Where he is metered by his own account, and no queue comes behind it, all of his is counted there. */
	__u32 virtual = r->queued >> (what.class & 31) & 1, own = what.meter == what.customer && !virtual;
	if (what.customer && !own) {
		__u32 i = direction * s->capacity + what.customer - 1;
		his = bpf_map_lookup_elem(&accounts, &i);
	}
	if (what.meter) {
		__u32 i = direction * s->capacity + what.meter - 1, colour = what.colour;
		struct terms *m = terms_of(s, set, what.meter - 1);
		struct account *a = bpf_map_lookup_elem(&accounts, &i);
		if (!m || !a) {
			t->dropped += charge.packets;
			return TC_ACT_SHOT;
		}
		if (!meter(a, m, now, charge.packets, charge.bytes, what.colour, &colour, own, what.by_colour)) {
			t->policed += charge.packets;
			if (his) {
				bpf_spin_lock(&his->lock);
				count(&his->came, charge.packets, charge.bytes);
				his->policed += charge.packets;
				bpf_spin_unlock(&his->lock);
			}
			return TC_ACT_SHOT;
		}
		if (what.by_colour)
			what.colour = colour;
	}
	__u32 is = what.colour < 3 ? what.colour : RED, verdict = ADMIT;
	if (virtual) {
		struct arrival a = { now, charge.bytes, is, p->why == IP_PACKET && p->octet & 3, s->clock ? skb->mark : bpf_get_prandom_u32() };
		verdict = queued(set, what.class, charge.packets, &a);
	}
	if (verdict <= MARK) {
		__u32 dscp = what.by_colour ? r->points[is] : what.dscp;
		__u32 octet = (dscp == KEEP ? p->octet & 0xfc : dscp << 2) | (verdict == MARK ? 3 : p->octet & 3);
		long failed = p->why == IP_PACKET ? set_octet(skb, p, octet) : 0;
		if (what.clear_link && (p->tags || p->labels))
			failed |= clear_link_classes(skb, p);
		/* No memory to write: as if there were none for the frame. */
		verdict = failed ? FORCED : verdict;
	}
	if (verdict > MARK) {
		t->dropped += charge.packets;
		if (his) {
			bpf_spin_lock(&his->lock);
			count(&his->came, charge.packets, charge.bytes);
			if (verdict == POLICED)
				his->policed += charge.packets;
			else if (verdict == EARLY)
				his->early += charge.packets;
			else
				his->forced += charge.packets;
			bpf_spin_unlock(&his->lock);
		}
		return TC_ACT_SHOT;
	}
	if (his) {
		bpf_spin_lock(&his->lock);
		count(&his->came, charge.packets, charge.bytes);
		count(&his->sent[is], charge.packets, charge.bytes);
		bpf_spin_unlock(&his->lock);
	}
	if (what.class < CLASSES)
		count(&t->class[what.class][is], charge.packets, charge.bytes);
	t->sent += charge.packets;
	return leave(skb, s, t, direction);
}

SEC("classifier") int inside(struct __sk_buff *skb)
{
	return forward(skb, 0);
}

SEC("classifier") int outside(struct __sk_buff *skb)
{
	return forward(skb, 1);
}

/* At egress: what is forwarded leaves, and all else is for who comes next, who has the port closed. */
SEC("classifier") int leaving(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct state *s = bpf_map_lookup_elem(&state, &zero);

	return s && skb->mark == s->mark ? TC_ACT_OK : TC_ACT_UNSPEC;
}
