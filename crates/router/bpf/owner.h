/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Which customer answers for a frame: the law of src/policy/owners.rs. Customers are their accounts plus 1; 0 is nobody. */
#pragma once

#include "fragments.h"

/* Of a group of prefixes, the one that contains the address on the inside and has an owner for the port there, if the packet has ports. */
static __always_inline __u32 by_address(struct work *w, __u32 group, __u32 has_ports)
{
	struct prefix_key key = { .bits = 32 + 128, .group = group };
	struct seen *p = &w->seen;
	__u32 side = w->direction & 1;
	struct prefix *found;

	if (p->family == 4)
		key.bits = 32 + 32;
	else
		key.group |= 1u << 29;
	__builtin_memcpy(key.address, p->address[side], 16);
	found = bpf_map_lookup_elem(&prefixes, &key);
	if (!found)
		return 0;
	/* A fragment's ports are asked where they may tell, and nowhere else. */
	if (found->list && p->transport == FRAGMENT) {
		has_ports = ports_of_first(w);
		w->owner.without_first = !has_ports;
	}
	if (found->list && has_ports) {
		struct port_key named = { .list = found->list, .port = p->port[side] };
		__u32 *owner = bpf_map_lookup_elem(&owners, &named);
		if (owner)
			return *owner;
	}
	return found->any;
}

static __always_inline struct circuit *circuit_of(const struct seen *p, __u32 set, int i)
{
	struct circuit_key key = { .bank = set, .vlan = { NO_VLAN, NO_VLAN }, .session = NO_SESSION };

	if (i & 1 && p->session == NO_SESSION)
		return 0;
	if (!(i & 1))
		key.session = p->session;
	if (i < 4)
		key.vlan[0] = p->vlan[0];
	if (i < 2)
		key.vlan[1] = p->vlan[1];
	return bpf_map_lookup_elem(&circuits, &key);
}

static __always_inline int in_circuit(const struct seen *p, const struct rules *r)
{
	return r->circuits && (p->vlan[0] != NO_VLAN || p->session != NO_SESSION);
}

/* A step: the holder of the circuit that a frame came in, of the most specific that has one. */
__noinline int holder_of(struct work *w)
{
	if (!w)
		return 0;
	for (int i = 0; i < 6; i++) {
		struct circuit *c = circuit_of(&w->seen, w->set, i);
		if (c && c->holder)
			return c->holder;
	}
	return 0;
}

/* A step: the owner of a packet by the circuit it came in, in w->owner; false where nobody knows the circuit. */
__noinline int by_circuit(struct work *w, struct rules *r, __u32 has_ports)
{
	__u32 known = 0, holder = 0;

	if (!w || !r)
		return 0;
	w->owner.entitled = 1;
	for (int i = 0; i < 6; i++) {
		struct circuit *c = circuit_of(&w->seen, w->set, i);
		if (!c)
			continue;
		known = 1;
		if (!holder)
			holder = c->holder;
		w->owner.account = by_address(w, c->group, has_ports);
		if (w->owner.account)
			return 1;
	}
	w->owner.account = holder ? holder : r->rest;
	w->owner.entitled = !holder;
	return known;
}

/* The owner of a packet, in w->owner. */
static __always_inline void find_owner(struct work *w, struct rules *r, __u32 has_ports)
{
	w->owner.without_first = 0;
	if (in_circuit(&w->seen, r) && by_circuit(w, r, has_ports))
		return;
	w->owner.account = by_address(w, w->set << 30, has_ports);
	w->owner.entitled = 1;
}
