/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the maps hold. src/kernel/layout.rs says the same in Rust; a test compares the sizes. */
#pragma once

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>

/* A token is a byte, counted in grains of 1/8,000,000,000 of one: bits per second times nanoseconds is a whole number of them. */
#define GRAINS 8000000000ULL

/* linux/if_ether.h, IEEE 802, RFC 4861: what is read of a frame, and why no more of it. The order is that of Census::NAMES. */
enum why { IP_PACKET, CONTROL, NOT_IP, TOO_DEEP, TRUNCATED, MALFORMED, MAC_CONTROL };
enum control { ARP, NEIGHBOUR_DISCOVERY, LLDP, SPANNING_TREE, SLOW_PROTOCOLS, EAPOL, PPPOE_DISCOVERY, PPP, KINDS };
enum transport { TCP, UDP, OTHER, FRAGMENT };
enum colour { GREEN, YELLOW, RED };
enum law { TOKEN_BUCKET, SRTCM, TRTCM, RFC4115, TSW2CM, TSW3CM };
/* The order of Refusal::NAMES. */
enum refusal { R_NOT_IP, R_TOO_DEEP, R_TRUNCATED, R_MALFORMED, R_MAC_CONTROL, R_LENGTH_MISMATCH, R_TOO_LONG, REFUSALS };

#define NO_VLAN 0xffffU
#define NO_SESSION 0xffffffffU
#define KEEP 0xffU
#define ESTIMATE 0xffffffffffffffffULL
#define CENSUS 21
#define CLASSES 19
/* Packets whose fragments are under way: in each set, and sets. */
#define WAYS 8
#define FRAGMENT_SETS 1024
#define MOST_TAGS 4
#define MOST_LABELS 8
#define MOST_EXTENSIONS 10
#define ETHERNET_HEADER 14
#define SHORTEST_PAYLOAD 46

/* What all programs share: one entry. */
struct state {
	__u32 bank;      /* which of two sets of rules is in force */
	__u32 on;        /* 0: nothing is forwarded, as it is being set up or taken down */
	__u32 bypass;
	__u32 clock;     /* 1: the time is the frame's own stamp, for test runs */
	__u32 capacity;  /* accounts of a direction */
	__u32 mark;      /* of what is forwarded: the closed egress lets it pass */
	__u32 out[2];    /* the interface that frames leave by, by the port that they came in at; 0: away */
	__u32 mtu[2];    /* of that interface */
	__u64 secret[2]; /* the key of hashes */
};

/* A rate in bits per second, a depth in grains, and the nanoseconds after which an empty bucket is full. */
struct police {
	__u64 rate;
	__u64 depth;
	__u64 full;
};

/* One direction, in one bank. */
struct rules {
	__u32 configured;
	__u32 edge;
	__u32 bleach;
	__u32 drop_unreadable;
	__u32 drop_mismatch;
	__u32 circuits;
	__u32 by_address;
	__u32 overhead;
	__u32 mpu;
	__u32 assured;
	__u32 best_effort;
	__u32 rest;           /* the account of who has all addresses outside circuits, plus 1 */
	__u32 control;        /* the account of the first kind's policer */
	__u32 queued;         /* a bit for each class that has a virtual queue */
	__u32 pad;
	__u8 points[4];
	__u8 class_of[64];
	__u8 becomes[64];     /* a code point that nobody has bought; KEEP: it stays */
	struct police each;               /* a customer's control frames of a kind */
	struct police address[2];         /* an Ethernet address: all kinds, and what is kept for each */
	struct police addresses[2];       /* all addresses together, the same */
};

/* How a customer's packets, or a policer's, are metered. */
struct terms {
	__u64 metered;        /* a bit for each DSCP */
	struct police bucket[2];      /* of TSW2CM and TSW3CM: the target rates, and as the first's `full` the window */
	__u64 since;          /* when the rates came into force */
	__u32 law;
	__u32 aware;
	__u32 more;           /* 1: a packet conforms if it leaves tokens; of TSW2CM: all is OUT above the rate */
	__u32 drop_from;      /* this colour and worse are dropped */
	__u32 policed;
	__u32 starts_empty;   /* of the loader's: no program looks */
	__u32 policer[16];    /* the account of the policer of each class that was bought, plus 1 */
};

struct colours {
	__u64 packets;
	__u64 bytes;
};

/* What lasts as long as the customer: the buckets, and every count. Names are kept beside it. */
struct account {
	struct bpf_spin_lock lock;
	__u32 pad;
	__u64 tokens[2];      /* or, with ESTIMATE, the rate as TSW2CM and TSW3CM estimate it */
	__u64 at;
	__u64 rate[2];        /* those by which the tokens have come since then; or ESTIMATE */
	/* Of the meter. */
	struct colours arrived[3];
	struct colours left[3];
	__u64 dropped[3];
	/* Of the customer, whatever the class. */
	struct colours came;
	struct colours sent[3];
	__u64 policed;
	__u64 early;
	__u64 forced;
};

/* s/2^k. */
struct factor {
	__u32 s;
	__u32 k;
};

/* Lengths are in bytes with 16 binary digits after the point, probabilities have 32. */
struct curve {
	__u64 min_th;
	__u64 max_th;
	__u64 end;
	__u64 max_p;
	struct factor slope;
	struct factor gentle;
};

/* The virtual queue of a class, as the core's `whole::Settings`. */
struct queue {
	__u64 rate;
	__u64 most;
	__u64 drains_in;
	__u64 w;
	__u64 fade;
	__u64 forgets_in;
	struct curve curve[3];
	__u32 curves;
	__u32 shift;
	__u8 row[3];
	__u8 takes[3];
	__u8 of[3];
	__u8 wait;
	__u8 ecn;
	__u8 pad[5];
};

/* What lasts of it, as the core's `whole::State`, and its counts; of drops by cause: early, forced, policed. What came is what was sent and
 * what was dropped. */
struct backlog {
	struct bpf_spin_lock lock;
	__u32 pad;
	__u64 level;
	__u64 last;
	__u64 empty_since;
	__u64 aged;
	__u64 parts[3];
	__u64 avg[3];
	__s32 count[3];
	__u32 pad_count;
	__u64 lost[3];        /* bytes */
	__u64 marked[3];
	__u64 dropped[3][3];
};

/* 2^(-i/256), 2^(-i/65536) and ln 2, with 32 binary digits after the point. */
struct powers {
	__u64 eighth[256];
	__u64 sixteenth[256];
	__u64 ln2;
};

struct name {
	__u8 text[136];
};

/* One direction, on one CPU. */
struct totals {
	__u64 came;
	__u64 passed;
	__u64 bypassed;
	__u64 policed;
	__u64 sent;
	__u64 dropped;        /* by virtual queues */
	__u64 length_disagrees;
	__u64 without_first;
	__u64 no_port;
	__u64 refused[REFUSALS];
	__u64 census[CENSUS];
	__u64 excess[KINDS];
	struct colours class[CLASSES][3];
};

struct circuit_key {
	__u32 bank;           /* bank * 2 + direction */
	__u16 vlan[2];
	__u32 session;
};

struct circuit {
	__u32 group;          /* of prefixes */
	__u32 holder;         /* account plus 1 */
};

struct prefix_key {
	__u32 bits;
	__u32 group;
	__u8 address[16];
};

struct prefix {
	__u32 any;            /* account plus 1, whatever the port */
	__u32 list;           /* of owners by port; 0: none */
};

struct port_key {
	__u32 list;
	__u32 port;
};

struct sender_key {
	__u32 kind;           /* direction * 8 + kind */
	__u32 account;
};

struct bucket {
	__u64 tokens;
	__u64 at;
};

struct sender {
	struct bpf_spin_lock lock;
	__u32 pad;
	struct bucket bucket;
};

/* All kinds of control frames: any, and what is kept for each. */
struct all_kinds {
	struct bpf_spin_lock lock;
	__u32 pad;
	struct bucket any;
	struct bucket kept[KINDS];
};

/* The same of an Ethernet address, of which the longest silent is forgotten. Two frames of one at the same moment on two CPUs may both
 * find its tokens; what all addresses have together is exact. */
struct address {
	struct bucket any;
	struct bucket kept[KINDS];
};

struct address_key {
	__u32 direction;
	__u8 address[8];
};

/* The ports of packets of which the first fragment was seen, and when: a set of them. */
struct fragments {
	struct bpf_spin_lock lock;
	__u32 ports[WAYS];
	__u32 pad[7];
	__u64 hash[WAYS];
	__u64 at[WAYS];
};
