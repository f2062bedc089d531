/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Which customer answers for a frame: the law of src/policy/owners.rs. Customers are their accounts plus 1; 0 is nobody. */
#pragma once

#include "maps.h"

struct owner {
	__u32 account;       /* plus 1 */
	__u32 entitled;      /* it is his by address too */
};

/* Of a group of prefixes, the one that contains the address on the inside and has an owner for this port. */
__noinline int by_address(struct seen *p, __u32 group, int side, __u32 has_port, __u32 port)
{
	struct prefix_key key = { .bits = 32 + 128, .group = group };
	struct prefix *found;

	if (!p)
		return 0;
	if (p->family == 4)
		key.bits = 32 + 32;
	else
		key.group |= 1u << 29;
	__builtin_memcpy(key.address, p->address[side & 1], 16);
	found = bpf_map_lookup_elem(&prefixes, &key);
	if (!found)
		return 0;
	if (found->list && has_port) {
		struct port_key named = { .list = found->list, .port = port };
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

/* The holder of the circuit that a frame came in: of the most specific that has one. */
static __always_inline __u32 holder_of(const struct seen *p, const struct rules *r, __u32 set)
{
	if (!in_circuit(p, r))
		return 0;
	for (int i = 0; i < 6; i++) {
		struct circuit *c = circuit_of(p, set, i);
		if (c && c->holder)
			return c->holder;
	}
	return 0;
}

/* The owner of a packet. */
static __always_inline struct owner owner_of(struct seen *p, const struct rules *r, __u32 set, int side, __u32 has_port, __u32 port)
{
	struct owner mine = { 0, 1 };
	__u32 known = 0, holder = 0, anywhere = set << 30;

	if (in_circuit(p, r)) {
		for (int i = 0; i < 6; i++) {
			struct circuit *c = circuit_of(p, set, i);
			if (!c)
				continue;
			known = 1;
			if (!holder)
				holder = c->holder;
			mine.account = by_address(p, c->group, side, has_port, port);
			if (mine.account)
				return mine;
		}
	}
	if (!known) {
		mine.account = by_address(p, anywhere, side, has_port, port);
		return mine;
	}
	if (holder) {
		mine.account = holder;
		mine.entitled = 0;
	} else {
		mine.account = r->rest;
	}
	return mine;
}

/* The ports of a packet or, where customers are known by some, of the one that a fragment belongs to. */
static __always_inline __u32 ports_of(const struct seen *p, __u32 direction, __u64 now, __u16 *port)
{
	struct fragment_key key = { .id = p->id, .session = p->session, .direction = direction, .family = p->family };
	struct fragment *found;

	__builtin_memcpy(key.addresses, p->address, 32);
	key.vlan[0] = p->vlan[0];
	key.vlan[1] = p->vlan[1];
	key.protocol = p->family == 4 ? p->protocol : 0;
	if (p->has_ports) {
		struct fragment first = { .ports = (__u32)p->port[0] << 16 | p->port[1], .at = now };
		bpf_map_update_elem(&fragments, &key, &first, BPF_ANY);
		port[0] = p->port[0];
		port[1] = p->port[1];
		return 1;
	}
	found = bpf_map_lookup_elem(&fragments, &key);
	/* RFC 791 3.2: for as long as its receiver may wait. */
	if (!found || (now > found->at && now - found->at > 15000000000ULL))
		return 0;
	port[0] = found->ports >> 16;
	port[1] = found->ports & 0xffff;
	return 1;
}
