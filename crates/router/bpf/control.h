/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Control frames: whether their sender has not sent too many, the law of src/policy/senders.rs. */
#pragma once

#include "meter.h"
#include "owner.h"

/* All kinds together: a part is kept for each. */
static __always_inline int take_any(struct bucket *any, struct bucket *kept, const struct police *p, __u64 need, __u64 now)
{
	return take(kept, &p[1], need, now) || take(any, &p[0], need, now);
}

/* Whom no circuit tells: his Ethernet address has a limit, and so have all of them together. An address that is not known has all its
 * tokens; it is remembered when its frame is let through, so that a flood of forged ones takes nobody's place. */
static __always_inline int addresses_admit(struct __sk_buff *skb, const struct work *w, const struct rules *r, __u32 kind, __u64 need)
{
	__u32 direction = w->direction, passes;
	struct address_key key = { .direction = direction };
	struct all_kinds *all = bpf_map_lookup_elem(&together, &direction);
	struct address *his = 0;

	if (!all)
		return 0;
	if (r->by_address) {
		bpf_skb_load_bytes(skb, 6, key.address, 6);
		his = bpf_map_lookup_elem(&addresses, &key);
		if (his ? !take_any(&his->any, &his->kept[kind], r->address, need, w->now) : need > r->address[0].depth)
			return 0;
	}
	bpf_spin_lock(&all->lock);
	passes = take_any(&all->any, &all->kept[kind], r->addresses, need, w->now);
	bpf_spin_unlock(&all->lock);
	if (passes && r->by_address && !his) {
		struct address new = { .any = { r->address[0].depth, w->now } };
		for (int i = 0; i < KINDS; i++)
			new.kept[i] = (struct bucket){ r->address[1].depth, w->now };
		take_any(&new.any, &new.kept[kind], r->address, need, w->now);
		bpf_map_update_elem(&addresses, &key, &new, BPF_NOEXIST);
	}
	return passes;
}

/* Whether a control frame's sender has not sent too many: the law of src/policy/senders.rs. */
static __always_inline int admits(struct __sk_buff *skb, struct work *w, const struct rules *r, __u32 kind)
{
	__u32 direction = w->direction, holder = in_circuit(&w->seen, r) ? holder_of(w) : 0, passes;
	__u64 need = (__u64)w->charge.bytes * GRAINS, now = w->now;

	if (!holder)
		return addresses_admit(skb, w, r, kind, need);
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
