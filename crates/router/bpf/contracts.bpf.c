/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Contracts in the kernel: at the ingress hook of each of two ports a frame is read, given to its customer, metered, given the DSCP of its
 * colour or dropped, counted, and sent by the other port. The laws are those of crates/router/src/policy and crates/live/src/datapath:
 * tests/kernel gives both the same frames. */
#include "charge.h"
#include "control.h"
#include "queue.h"
#include "write.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* What a step answers. */
enum { GO_ON, DROP };

static __always_inline void census(struct totals *t, const struct seen *p)
{
	__u32 i;
	if (p->control < KINDS)
		i = 8 + p->control;
	else if (p->why == IP_PACKET)
		i = p->transport + (p->family == 4 ? 0 : 4);
	else
		i = 16 + p->why - NOT_IP;
	t->census[at_most(i, CENSUS - 1)]++;
}

static __always_inline int refuse(struct totals *t, __u32 reason, __u32 packets)
{
	t->refused[at_most(reason, REFUSALS - 1)] += packets;
	return DROP;
}

static __always_inline int leave(struct __sk_buff *skb, const struct state *s, struct totals *t, int direction)
{
	__u32 out = s->out[direction & 1];
	if (!out) {
		t->no_port++;
		return TC_ACT_SHOT;
	}
	skb->mark = s->mark;
	return bpf_redirect(out, 0);
}

static __always_inline struct terms *terms_of(const struct work *w, __u32 account)
{
	__u32 i = w->set * w->capacity + account;
	return bpf_map_lookup_elem(&terms, &i);
}

/* The treatment of what nobody has bought: best effort, for which its owner answers, by his terms. */
static __always_inline void unsold(struct work *w, const struct rules *r, __u32 customer, const struct terms *m)
{
	struct treatment *t = &w->what;

	t->customer = customer;
	t->meter = m && m->policed ? customer : 0;
	t->class = r->best_effort;
	t->colour = YELLOW;
	t->by_colour = 0;
	t->dscp = KEEP;
	t->clear_link = r->bleach;
}

static __always_inline struct terms *terms_of_customer(const struct work *w, __u32 customer)
{
	return customer ? terms_of(w, customer - 1) : 0;
}

/* The law of src/policy/rules.rs. */
static __always_inline void treat(struct work *w, const struct rules *r)
{
	__u32 dscp = w->seen.octet >> 2 & 63, colour = 3, customer = w->owner.account;
	struct terms *m = terms_of_customer(w, customer);
	struct treatment *t = &w->what;

	unsold(w, r, customer, m);
	if (!w->owner.entitled)
		m = 0;
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

/* A step: the control frame's, as long as its sender has not sent too many. */
__noinline int treat_control(struct __sk_buff *skb, struct work *w, struct rules *r, struct totals *t)
{
	if (!w || !r || !t)
		return DROP;
	__u32 kind = w->seen.control & (KINDS - 1);

	if (!admits(skb, w, r, kind)) {
		t->excess[kind] += w->charge.packets;
		t->policed += w->charge.packets;
		return DROP;
	}
	unsold(w, r, 0, 0);
	if (w->seen.why == IP_PACKET)
		w->what.dscp = r->becomes[w->seen.octet >> 2 & 63];
	w->what.class = 0;
	w->what.colour = GREEN;
	w->what.meter = r->control + kind + 1;
	w->what.clear_link = 0;
	return GO_ON;
}

/* That of what is no control frame, by whose it is. */
static __always_inline int treat_packet(struct work *w, struct rules *r, struct totals *t)
{
	struct seen *p = &w->seen;
	__u32 customer;

	if (p->why != IP_PACKET) {
		if (p->why == MAC_CONTROL || r->drop_unreadable)
			return refuse(t, p->why - NOT_IP, w->charge.packets);
		customer = in_circuit(p, r) ? holder_of(w) : 0;
		customer = customer ? customer : r->rest;
		unsold(w, r, customer, terms_of_customer(w, customer));
		return GO_ON;
	}
	if (p->disagrees && r->drop_mismatch)
		return refuse(t, R_LENGTH_MISMATCH, w->charge.packets);
	find_owner(w, r, p->has_ports);
	t->without_first += w->owner.without_first;
	treat(w, r);
	return GO_ON;
}

/* The customer's account, where it is not counted with his meter: where that is his own, and no queue comes behind it, all of his is
 * counted there. */
static __always_inline struct account *counted_apart(const struct work *w, int own)
{
	__u32 i = w->direction * w->capacity + w->what.customer - 1;

	return w->what.customer && !own ? bpf_map_lookup_elem(&accounts, &i) : 0;
}

/* What a customer sent is lost. */
static __always_inline void count_loss(const struct work *w, int own, __u32 verdict)
{
	struct account *his = counted_apart(w, own);

	if (!his)
		return;
	bpf_spin_lock(&his->lock);
	count(&his->came, w->charge.packets, w->charge.bytes);
	if (verdict == POLICED)
		his->policed += w->charge.packets;
	else if (verdict == EARLY)
		his->early += w->charge.packets;
	else
		his->forced += w->charge.packets;
	bpf_spin_unlock(&his->lock);
}

/* In a test run the frame's mark. */
static __always_inline __u32 random_of(struct __sk_buff *skb, const struct work *w)
{
	return w->clock ? skb->mark : bpf_get_prandom_u32();
}

/* The meter; the colour that it gives, in w->what. */
static __always_inline int police(struct __sk_buff *skb, struct work *w, struct totals *t, int own)
{
	__u32 i = w->direction * w->capacity + w->what.meter - 1, colour = w->what.colour;
	struct terms *m = terms_of(w, w->what.meter - 1);
	struct account *a = bpf_map_lookup_elem(&accounts, &i);

	if (!m || !a) {
		t->dropped += w->charge.packets;
		return DROP;
	}
	__u32 random = m->law >= TSW2CM ? random_of(skb, w) : 0;
	if (!meter(a, m, w->now, random, w->charge.packets, w->charge.bytes, colour, &colour, own, w->what.by_colour)) {
		t->policed += w->charge.packets;
		count_loss(w, own, POLICED);
		return DROP;
	}
	if (w->what.by_colour)
		w->what.colour = colour;
	return GO_ON;
}

/* A step: the virtual queue of the class; its verdict. */
__noinline int join(struct __sk_buff *skb, struct work *w)
{
	if (!w)
		return FORCED;
	__u32 ecn = w->seen.why == IP_PACKET && w->seen.octet & 3;
	struct arrival a = { w->now, w->charge.bytes, w->what.colour, ecn, random_of(skb, w) };

	return queued(w->set, w->what.class, w->charge.packets, &a);
}

/* A step: false where it failed. */
__noinline int clear_link(struct __sk_buff *skb, struct work *w)
{
	return w && !clear_link_classes(skb, &w->seen);
}

/* What it leaves with is written; false where that failed. */
static __always_inline int write(struct __sk_buff *skb, struct work *w, const struct rules *r, int mark)
{
	struct seen *p = &w->seen;
	__u32 dscp = w->what.by_colour ? r->points[w->what.colour & 3] : w->what.dscp;
	__u32 octet = (dscp == KEEP ? p->octet & 0xfc : dscp << 2) | (mark ? 3 : p->octet & 3);

	if (p->why == IP_PACKET && octet != p->octet && set_octet(skb, p, octet))
		return 0;
	return !w->what.clear_link || !(p->tags || p->labels) || clear_link(skb, w);
}

/* It leaves, and is counted with its customer and class. */
static __always_inline void sent(struct work *w, struct totals *t, int own)
{
	__u32 class = w->what.class, is = w->what.colour;
	struct account *his = counted_apart(w, own);

	if (his) {
		bpf_spin_lock(&his->lock);
		count(&his->came, w->charge.packets, w->charge.bytes);
		count(&his->sent[at_most(is, RED)], w->charge.packets, w->charge.bytes);
		bpf_spin_unlock(&his->lock);
	}
	count(&t->class[at_most(class, CLASSES - 1)][at_most(is, RED)], w->charge.packets, w->charge.bytes);
	t->sent += w->charge.packets;
}

static __always_inline int forward(struct __sk_buff *skb, __u32 direction)
{
	__u32 zero = 0, set, verdict = ADMIT;
	struct state *s = bpf_map_lookup_elem(&state, &zero);
	struct totals *t = bpf_map_lookup_elem(&totals, &direction);
	struct work *w = bpf_map_lookup_elem(&scratch, &zero);
	struct rules *r;

	if (!s || !t || !w || !s->on)
		return TC_ACT_SHOT;
	set = (s->bank & 1) * 2 + direction;
	r = bpf_map_lookup_elem(&rules, &set);
	if (!r)
		return TC_ACT_SHOT;
	read_frame(skb, &w->seen);
	w->now = s->clock ? skb->tstamp : bpf_ktime_get_ns();
	w->direction = direction;
	w->set = set;
	w->capacity = s->capacity;
	w->clock = s->clock;
	weigh(skb, w, r);
	t->came += w->charge.packets;
	census(t, &w->seen);
	t->length_disagrees += w->seen.disagrees;
	if (!fits(skb, &w->seen, w->charge.longest, s->mtu[direction & 1])) {
		refuse(t, R_TOO_LONG, w->charge.packets);
		return TC_ACT_SHOT;
	}
	if (s->bypass || !r->configured) {
		t->passed += w->charge.packets;
		t->bypassed += s->bypass ? w->charge.packets : 0;
		return leave(skb, s, t, direction);
	}
	if ((w->seen.control < KINDS ? treat_control(skb, w, r, t) : treat_packet(w, r, t)) == DROP)
		return TC_ACT_SHOT;
	__u32 virtual = r->queued >> (w->what.class & 31) & 1, own = w->what.meter == w->what.customer && !virtual;
	if (w->what.meter && police(skb, w, t, own) == DROP)
		return TC_ACT_SHOT;
	if (virtual)
		verdict = join(skb, w);
	/* No memory to write: as if there were none for the frame. */
	if (verdict <= MARK && !write(skb, w, r, verdict == MARK))
		verdict = FORCED;
	if (verdict > MARK) {
		t->dropped += w->charge.packets;
		count_loss(w, own, verdict);
		return TC_ACT_SHOT;
	}
	sent(w, t, own);
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
