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

static __always_inline int address_admits(struct __sk_buff *skb, const struct rules *r, __u32 direction, __u32 kind, __u64 need, __u64 now)
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
static __always_inline int admits(struct __sk_buff *skb, struct work *w, const struct rules *r, __u32 kind)
{
	__u32 direction = w->direction, holder = in_circuit(&w->seen, r) ? holder_of(w) : 0, passes;
	__u64 need = (__u64)w->charge.bytes * GRAINS, now = w->now;
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
	if (r->by_address && !address_admits(skb, r, direction, kind, need, now))
		return 0;
	all = bpf_map_lookup_elem(&together, &direction);
	if (!all)
		return 0;
	bpf_spin_lock(&all->lock);
	passes = take_any(&all->any, &all->kept[kind & (KINDS - 1)], r->addresses, need, now);
	bpf_spin_unlock(&all->lock);
	return passes;
}
