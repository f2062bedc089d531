/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The maps. `inprofiled` sets how many entries those have that grow with the file; else there is room for so many accounts of a direction. */
#pragma once

#include "read.h"

/* Who answers for a frame. */
struct owner {
	__u32 account;       /* plus 1 */
	__u32 entitled;      /* it is his by address too */
	__u32 without_first; /* a fragment, whose ports would tell, and they are not known */
};

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

/* A frame at work; one for each CPU, as a frame is handled to its end before the next. The steps are functions that are verified by
 * themselves, whatever came before: what one leaves to the next is here, where the verifier follows no value. */
struct work {
	struct seen seen;
	struct charge charge;
	struct owner owner;
	struct treatment what;
	__u64 now;
	__u32 direction;
	__u32 set;           /* bank * 2 + direction */
	__u32 capacity;
	__u32 clock;
};

#define MAP(name, kind, keys, values, entries, how)    \
	struct {                                       \
		__uint(type, kind);                    \
		__uint(max_entries, entries);          \
		__uint(map_flags, how);                \
		__type(key, keys);                     \
		__type(value, values);                 \
	} name SEC(".maps")

#define ACCOUNTS 4096

MAP(state, BPF_MAP_TYPE_ARRAY, __u32, struct state, 1, 0);
MAP(totals, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct totals, 2, 0);
MAP(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct work, 1, 0);
/* bank * 2 + direction. */
MAP(rules, BPF_MAP_TYPE_ARRAY, __u32, struct rules, 4, 0);
/* (bank * 2 + direction) * capacity + account. */
MAP(terms, BPF_MAP_TYPE_ARRAY, __u32, struct terms, 4 * ACCOUNTS, 0);
/* direction * capacity + account. Mappable ones begin a page: an account is four cache lines, none of which is another's too. */
MAP(accounts, BPF_MAP_TYPE_ARRAY, __u32, struct account, 2 * ACCOUNTS, BPF_F_MMAPABLE);
/* (bank * 2 + direction) * CLASSES + class; direction * CLASSES + class. */
MAP(queues, BPF_MAP_TYPE_ARRAY, __u32, struct queue, 4 * CLASSES, 0);
MAP(backlogs, BPF_MAP_TYPE_ARRAY, __u32, struct backlog, 2 * CLASSES, 0);
MAP(powers, BPF_MAP_TYPE_ARRAY, __u32, struct powers, 1, 0);
MAP(circuits, BPF_MAP_TYPE_HASH, struct circuit_key, struct circuit, 1 << 17, BPF_F_NO_PREALLOC);
MAP(prefixes, BPF_MAP_TYPE_LPM_TRIE, struct prefix_key, struct prefix, 1 << 20, BPF_F_NO_PREALLOC);
MAP(owners, BPF_MAP_TYPE_HASH, struct port_key, __u32, 1 << 20, BPF_F_NO_PREALLOC);
MAP(senders, BPF_MAP_TYPE_HASH, struct sender_key, struct sender, 1 << 18, BPF_F_NO_PREALLOC);
MAP(together, BPF_MAP_TYPE_ARRAY, __u32, struct all_kinds, 2, 0);
MAP(addresses, BPF_MAP_TYPE_LRU_HASH, struct address_key, struct address, 4096, 0);
MAP(fragments, BPF_MAP_TYPE_ARRAY, __u32, struct fragments, FRAGMENT_SETS, BPF_F_MMAPABLE);
/* direction * capacity + account: whose it is, for the next process. No program looks. */
MAP(names, BPF_MAP_TYPE_ARRAY, __u32, struct name, 2 * ACCOUNTS, 0);
