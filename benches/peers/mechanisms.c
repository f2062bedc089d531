/*
 * DPDK's meter and RED on the stream of packets that bench-mechanisms wrote: mechanisms-dpdk FILE BURST.
 *
 * Prints, for each mechanism, nanoseconds of CPU time a decision and the share of packets passed.
 *   token_bucket  rte_meter_srtcm_color_blind_check without an excess burst
 *   red           rte_red_enqueue
 *   rio           two rte_red: IN packets ask both and go by IN's, OUT packets ask the other
 * Packets come in bursts: the objects of a burst are prefetched, then decided on.
 * One profile for all objects, as DPDK has it; a state and two counters each, aligned so that none straddles
 * two cache lines.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_meter.h>
#include <rte_prefetch.h>
#include <rte_red.h>

#define CONTRACT 1000000 /* bits a second */
#define DEPTH 15000      /* bytes */
#define PACKETS_PER_SECOND 1250.0
#define LOG2_WEIGHT 9 /* w_q = 1/512 */

struct record {
	uint64_t at; /* picoseconds */
	uint32_t idle_ns;
	uint32_t object;
	uint16_t size, waiting, waiting_in, out;
};
_Static_assert(sizeof(struct record) == 24, "as bench-mechanisms writes it");

/* The time stamps that the peer's functions want, made before the clock runs. */
struct stamps {
	uint64_t at, idle_since;
};

struct bucket {
	struct rte_meter_srtcm meter;
	uint64_t in, out;
} __attribute__((aligned(64)));

struct one {
	struct rte_red red;
	uint64_t forced, early;
} __attribute__((aligned(32)));

struct two {
	struct rte_red in, all;
	uint64_t forced[2], early[2];
} __attribute__((aligned(64)));

static uint32_t objects, packets;
static size_t burst;
static struct record *records;
static struct stamps *stamps;

static void die(const char *what)
{
	fprintf(stderr, "mechanisms-dpdk: %s\n", what);
	exit(1);
}

static void *room(size_t each, size_t count)
{
	void *p = aligned_alloc(64, (each * count + 63) / 64 * 64);
	if (p == NULL)
		die("no memory");
	return memset(p, 0, each * count);
}

static void load(const char *name)
{
	uint32_t head[2];
	FILE *f = fopen(name, "rb");
	if (f == NULL || fread(head, sizeof head, 1, f) != 1)
		die("cannot read the stream");
	objects = head[0];
	packets = head[1];
	size_t all = (size_t)objects + packets;
	records = room(sizeof *records, all);
	stamps = room(sizeof *stamps, all);
	if (fread(records, sizeof *records, all, f) != all)
		die("the stream is cut off");
	fclose(f);
}

/* `unit` ticks a picosecond. */
static void stamp(double unit)
{
	for (size_t i = 0; i < (size_t)objects + packets; i++) {
		stamps[i].at = (uint64_t)((double)records[i].at * unit);
		stamps[i].idle_since = (uint64_t)(((double)records[i].at - 1e3 * records[i].idle_ns) * unit);
	}
}

static double now(void)
{
	struct timespec t;
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
		die("no clock");
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void show(const char *name, double took, uint64_t passed, size_t bytes)
{
	printf("name=%s ns=%.3f passed=%.5f bytes=%zu\n", name, took / packets, (double)passed / packets, bytes);
}

/* Times `decide`, an expression in i, on all packets after the first of each object. */
#define TIME(name, table, decide)                                                        \
	do {                                                                             \
		uint64_t passed = 0;                                                     \
		const size_t all = (size_t)objects + packets;                            \
		double before = now();                                                   \
		for (size_t from = objects, to; from < all; from = to) {                 \
			to = all - from < burst ? all : from + burst;                    \
			for (size_t i = from; burst > 1 && i < to; i++)                  \
				rte_prefetch0(&(table)[records[i].object]);              \
			for (size_t i = from; i < to; i++)                               \
				passed += decide;                                        \
		}                                                                        \
		show(name, now() - before, passed, sizeof *(table));                     \
	} while (0)

static inline int meter(struct bucket *b, struct rte_meter_srtcm_profile *profile, const struct record *r,
			const struct stamps *s)
{
	int in = rte_meter_srtcm_color_blind_check(&b->meter, profile, s->at, r->size) == RTE_COLOR_GREEN;
	if (in)
		b->in++;
	else
		b->out++;
	return in;
}

static inline int red(struct one *q, const struct rte_red_config *config, const struct record *r,
		      const struct stamps *s)
{
	if (r->waiting == 0)
		rte_red_mark_queue_empty(&q->red, s->idle_since);
	int verdict = rte_red_enqueue(config, &q->red, r->waiting, s->at);
	if (verdict == 1)
		q->forced++;
	else if (verdict == 2)
		q->early++;
	return verdict == 0;
}

static inline int rio(struct two *q, const struct rte_red_config *in, const struct rte_red_config *out,
		      const struct record *r, const struct stamps *s)
{
	if (r->waiting == 0) {
		rte_red_mark_queue_empty(&q->in, s->idle_since);
		rte_red_mark_queue_empty(&q->all, s->idle_since);
	}
	int verdict = rte_red_enqueue(out, &q->all, r->waiting, s->at);
	if (!r->out)
		verdict = rte_red_enqueue(in, &q->in, r->waiting_in, s->at);
	if (verdict == 1)
		q->forced[r->out]++;
	else if (verdict == 2)
		q->early[r->out]++;
	return verdict == 0;
}

static void run_meter(void)
{
	struct rte_meter_srtcm_params params = { .cir = CONTRACT / 8, .cbs = DEPTH, .ebs = 0 };
	struct rte_meter_srtcm_profile profile;
	if (rte_meter_srtcm_profile_config(&profile, &params) != 0)
		die("rte_meter_srtcm_profile_config refuses");
	struct bucket *table = room(sizeof *table, objects);
	for (uint32_t i = 0; i < objects; i++) {
		if (rte_meter_srtcm_config(&table[i].meter, &profile) != 0)
			die("rte_meter_srtcm_config refuses");
		table[i].meter.time = stamps[0].at;
	}
	for (size_t i = 0; i < objects; i++)
		meter(&table[records[i].object], &profile, &records[i], &stamps[i]);
	TIME("token_bucket", table, meter(&table[records[i].object], &profile, &records[i], &stamps[i]));
	free(table);
}

static struct rte_red_config curve(uint16_t min, uint16_t max, uint16_t inverse_max_p)
{
	struct rte_red_config config;
	if (rte_red_config_init(&config, LOG2_WEIGHT, min, max, inverse_max_p) != 0)
		die("rte_red_config_init refuses");
	return config;
}

static void run_red(void)
{
	struct rte_red_config config = curve(10, 30, 10);
	struct one *table = room(sizeof *table, objects);
	for (uint32_t i = 0; i < objects; i++)
		rte_red_rt_data_init(&table[i].red);
	for (size_t i = 0; i < objects; i++)
		red(&table[records[i].object], &config, &records[i], &stamps[i]);
	TIME("red", table, red(&table[records[i].object], &config, &records[i], &stamps[i]));
	free(table);
}

static void run_rio(void)
{
	struct rte_red_config in = curve(8, 14, 20), out = curve(5, 20, 10);
	struct two *table = room(sizeof *table, objects);
	for (uint32_t i = 0; i < objects; i++) {
		rte_red_rt_data_init(&table[i].in);
		rte_red_rt_data_init(&table[i].all);
	}
	for (size_t i = 0; i < objects; i++)
		rio(&table[records[i].object], &in, &out, &records[i], &stamps[i]);
	TIME("rio", table, rio(&table[records[i].object], &in, &out, &records[i], &stamps[i]));
	free(table);
}

int main(int argc, char **argv)
{
	char *eal[] = { argv[0], "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf",
			"-m", "32", "--log-level=error" };
	if (argc != 3 || (burst = strtoul(argv[2], NULL, 10)) == 0)
		die("two arguments: the stream, packets a burst");
	if (rte_eal_init((int)(sizeof eal / sizeof *eal), eal) < 0)
		die(rte_strerror(rte_errno));
	load(argv[1]);
	stamp((double)rte_get_tsc_hz() / 1e12);
	run_meter();
	/* rte_red counts idle time in bytes sent by 2^22 to a packet. */
	stamp(PACKETS_PER_SECOND * RTE_RED_S / 1e12);
	run_red();
	run_rio();
	return 0;
}
