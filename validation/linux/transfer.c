/*
 * Inside the guest: TCP transfers between two namespaces, and what the kernel says of them.
 *
 * transfer sink PORT UNTIL CONTROL... accepts one connection on each port from PORT on and reads.
 * transfer source ADDRESS PORT UNTIL OUT CONTROL... opens one connection each, 100 ms after the other, and writes until UNTIL (seconds
 * since 1970). About every 10 ms OUT gets a struct seen for each, little-endian: TCP_INFO, and DCTCP's alpha.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 32
#define STEP 10000000 /* nanoseconds */

struct seen {
	uint64_t at; /* nanoseconds */
	uint64_t acked; /* bytes */
	uint32_t flow, cwnd, ssthresh, rtt; /* segments; microseconds */
	uint32_t retransmitted, sent, delivered, marked; /* segments so far */
	uint32_t alpha, least_rtt;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

static int open_socket(const char *control)
{
	int one = 1, s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one))
		die("socket");
	if (setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, control, strlen(control)))
		die(control);
	return s;
}

static struct sockaddr_in address_of(const char *host, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	if (inet_pton(AF_INET, host, &a.sin_addr) != 1)
		die(host);
	return a;
}

static void sink(int port, uint64_t until, char **controls, int n)
{
	static char data[1 << 18];
	struct pollfd p[MOST];
	int listening[MOST];
	for (int i = 0; i < n; i++) {
		struct sockaddr_in a = address_of("0.0.0.0", port + i);
		p[i].fd = open_socket(controls[i]);
		p[i].events = POLLIN;
		listening[i] = 1;
		if (bind(p[i].fd, (struct sockaddr *)&a, sizeof a) || listen(p[i].fd, 1))
			die("listen");
	}
	while (now() < until) {
		if (poll(p, n, 100) < 0)
			die("poll");
		for (int i = 0; i < n; i++) {
			if (!p[i].revents)
				continue;
			if (listening[i]) {
				int s = accept4(p[i].fd, NULL, NULL, SOCK_NONBLOCK);
				if (s < 0)
					die("accept");
				p[i].fd = s;
				listening[i] = 0;
			} else if (read(p[i].fd, data, sizeof data) <= 0 && errno != EAGAIN) {
				p[i].fd = -1;
			}
		}
	}
}

static void note(FILE *out, int flow, int s)
{
	struct tcp_info info;
	union tcp_cc_info control;
	socklen_t size = sizeof info, more = sizeof control;
	memset(&info, 0, sizeof info);
	memset(&control, 0, sizeof control);
	if (getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &size) ||
	    getsockopt(s, IPPROTO_TCP, TCP_CC_INFO, &control, &more))
		die("getsockopt");
	struct seen seen = { now(), info.tcpi_bytes_acked, flow, info.tcpi_snd_cwnd, info.tcpi_snd_ssthresh,
		info.tcpi_rtt, info.tcpi_total_retrans, info.tcpi_data_segs_out, info.tcpi_delivered,
		info.tcpi_delivered_ce, control.dctcp.dctcp_alpha, info.tcpi_min_rtt };
	if (fwrite(&seen, sizeof seen, 1, out) != 1)
		die("write");
}

static void source(const char *host, int port, uint64_t until, const char *name, char **controls, int n)
{
	static char data[1 << 16];
	struct pollfd p[MOST];
	int open = 0;
	FILE *out = fopen(name, "wb");
	if (!out)
		die(name);
	uint64_t began = now(), next = began;
	while (now() < until) {
		while (open < n && now() >= began + open * 100000000ull) {
			struct sockaddr_in a = address_of(host, port + open);
			p[open].fd = open_socket(controls[open]);
			p[open].events = POLLOUT;
			if (connect(p[open].fd, (struct sockaddr *)&a, sizeof a) && errno != EINPROGRESS)
				die("connect");
			open++;
		}
		if (poll(p, open, 10) < 0)
			die("poll");
		for (int i = 0; i < open; i++)
			if (p[i].revents & POLLOUT && write(p[i].fd, data, sizeof data) < 0 && errno != EAGAIN)
				die("send");
		if (now() >= next) {
			for (int i = 0; i < open; i++)
				note(out, i, p[i].fd);
			next = now() + STEP;
		}
	}
	if (fclose(out))
		die(name);
}

int main(int argc, char **argv)
{
	if (argc > 4 && !strcmp(argv[1], "sink"))
		sink(atoi(argv[2]), strtoull(argv[3], NULL, 10) * 1000000000ull, argv + 4, argc - 4);
	else if (argc > 6 && !strcmp(argv[1], "source"))
		source(argv[2], atoi(argv[3]), strtoull(argv[4], NULL, 10) * 1000000000ull, argv[5], argv + 6, argc - 6);
	else
		return 2;
	return 0;
}
