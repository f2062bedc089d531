/*
 * DPDK's side of the comparison: dpdk METER MODE reads setups and packets, and writes a colour a packet, as ours.rs.
 *
 * rte_meter counts time in cycles and asks rte_get_tsc_hz how many of them a second has, to round each rate to a whole
 * number of cycles a token. Here the clock is the stream's own, a cycle a nanosecond; the setups have rates that are whole
 * numbers of nanoseconds a byte, so that rounding changes none.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_meter.h>

uint64_t rte_get_tsc_hz(void)
{
	return 1000000000;
}

struct setup {
	uint64_t cir, second, cbs, other, packets;
};

struct packet {
	uint64_t at;
	uint32_t size, colour;
};

static void die(const char *what)
{
	fprintf(stderr, "dpdk: %s\n", what);
	exit(1);
}

static enum rte_color came(const struct packet *p)
{
	static const enum rte_color colours[] = { RTE_COLOR_GREEN, RTE_COLOR_YELLOW, RTE_COLOR_RED };
	return colours[p->colour];
}

static int next(struct packet *p)
{
	if (fread(p, sizeof *p, 1, stdin) != 1)
		die("the stream is cut off");
	return 1;
}

static void put(enum rte_color colour)
{
	putchar(colour == RTE_COLOR_GREEN ? 0 : colour == RTE_COLOR_YELLOW ? 1 : 2);
}

static void srtcm(const struct setup *s, int aware)
{
	struct rte_meter_srtcm_params params = { .cir = s->cir, .cbs = s->cbs, .ebs = s->other };
	struct rte_meter_srtcm_profile profile;
	struct rte_meter_srtcm meter;
	struct packet p;
	if (rte_meter_srtcm_profile_config(&profile, &params) || rte_meter_srtcm_config(&meter, &profile))
		die("rte_meter_srtcm refuses");
	meter.time = 0;
	for (uint64_t i = 0; i < s->packets && next(&p); i++)
		put(aware ? rte_meter_srtcm_color_aware_check(&meter, &profile, p.at, p.size, came(&p))
			  : rte_meter_srtcm_color_blind_check(&meter, &profile, p.at, p.size));
}

static void trtcm(const struct setup *s, int aware)
{
	struct rte_meter_trtcm_params params = { .cir = s->cir, .pir = s->second, .cbs = s->cbs, .pbs = s->other };
	struct rte_meter_trtcm_profile profile;
	struct rte_meter_trtcm meter;
	struct packet p;
	if (rte_meter_trtcm_profile_config(&profile, &params) || rte_meter_trtcm_config(&meter, &profile))
		die("rte_meter_trtcm refuses");
	meter.time_tc = meter.time_tp = 0;
	for (uint64_t i = 0; i < s->packets && next(&p); i++)
		put(aware ? rte_meter_trtcm_color_aware_check(&meter, &profile, p.at, p.size, came(&p))
			  : rte_meter_trtcm_color_blind_check(&meter, &profile, p.at, p.size));
}

static void rfc4115(const struct setup *s, int aware)
{
	struct rte_meter_trtcm_rfc4115_params params = { .cir = s->cir, .eir = s->second, .cbs = s->cbs, .ebs = s->other };
	struct rte_meter_trtcm_rfc4115_profile profile;
	struct rte_meter_trtcm_rfc4115 meter;
	struct packet p;
	if (rte_meter_trtcm_rfc4115_profile_config(&profile, &params) ||
	    rte_meter_trtcm_rfc4115_config(&meter, &profile))
		die("rte_meter_trtcm_rfc4115 refuses");
	meter.time_tc = meter.time_te = 0;
	for (uint64_t i = 0; i < s->packets && next(&p); i++)
		put(aware ? rte_meter_trtcm_rfc4115_color_aware_check(&meter, &profile, p.at, p.size, came(&p))
			  : rte_meter_trtcm_rfc4115_color_blind_check(&meter, &profile, p.at, p.size));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const struct setup *, int);
	} meters[] = { { "srtcm", srtcm }, { "trtcm", trtcm }, { "rfc4115", rfc4115 } };
	struct setup setup;
	if (argc != 3)
		die("METER MODE");
	for (size_t i = 0; i < sizeof meters / sizeof *meters; i++) {
		if (strcmp(argv[1], meters[i].name))
			continue;
		while (fread(&setup, sizeof setup, 1, stdin) == 1)
			meters[i].run(&setup, !strcmp(argv[2], "colour_aware"));
		return fflush(stdout) ? 1 : 0;
	}
	die("no such meter");
}
