/*
 * Inside the guest: guest PLAN OUT DEVICE sends the packets of a plan on DEVICE, and stamps when each came and when it left.
 *
 * PLAN: for each packet struct planned, little-endian. OUT: for each packet struct seen. A packet is an IPv4/UDP datagram that
 * carries its number; a flow is a source port. A packet socket gets a copy of what leaves the queue, stamped by the kernel as the
 * driver is handed it. One thread sends and collects, so nothing but the timers' interrupts runs in between.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x496e7072
#define HEADERS 28

struct planned {
	uint64_t at; /* nanoseconds since the start */
	uint32_t size; /* on the wire, Ethernet's header included */
	uint16_t flow;
	uint8_t tos, reserved;
};

struct seen {
	uint64_t before, after; /* around the call that sent it */
	uint64_t left; /* 0: it never did */
	uint32_t order; /* among those that left */
	uint32_t tos; /* as it left */
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

static uint32_t packets, order;

static void collect(int tap, struct seen *seen)
{
	for (;;) {
		uint8_t data[HEADERS + 8], control[256];
		struct sockaddr_ll from;
		struct iovec part = { data, sizeof data };
		struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1,
					  .msg_control = control, .msg_controllen = sizeof control };
		ssize_t n = recvmsg(tap, &message, MSG_DONTWAIT);
		if (n < 0) {
			if (errno == EAGAIN)
				return;
			die("recvmsg");
		}
		uint32_t word[2];
		if (n < HEADERS + 8 || from.sll_pkttype != PACKET_OUTGOING)
			continue;
		memcpy(word, data + HEADERS, 8);
		if (word[0] != MAGIC || word[1] >= packets)
			continue;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
				struct timespec t;
				memcpy(&t, CMSG_DATA(c), sizeof t);
				seen[word[1]].left = (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
			}
		seen[word[1]].order = order++;
		seen[word[1]].tos = data[1];
	}
}

static void header(uint8_t *p, const struct planned *plan, uint32_t number)
{
	uint16_t length = plan->size - ETH_HLEN, word;
	uint32_t sum = 0, tail[2] = { MAGIC, number };
	memset(p, 0, HEADERS);
	p[0] = 0x45;
	p[1] = plan->tos;
	p[2] = length >> 8, p[3] = length & 0xff;
	p[8] = 64, p[9] = 17;
	p[12] = 10, p[15] = 1, p[16] = 10, p[19] = 2;
	for (int i = 0; i < 20; i += 2) {
		memcpy(&word, p + i, 2);
		sum += word;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	word = ~(sum + (sum >> 16));
	memcpy(p + 10, &word, 2);
	word = htons(1024 + plan->flow);
	memcpy(p + 20, &word, 2);
	word = htons(9);
	memcpy(p + 22, &word, 2);
	word = htons(length - 20);
	memcpy(p + 24, &word, 2);
	memcpy(p + HEADERS, tail, 8);
}

int main(int count, char **arg)
{
	if (count != 4)
		return 2;
	int file = open(arg[1], O_RDONLY);
	off_t size = lseek(file, 0, SEEK_END);
	if (file < 0 || size <= 0)
		die(arg[1]);
	packets = size / sizeof(struct planned);
	struct planned *plan = malloc(size);
	struct seen *seen = calloc(packets, sizeof *seen);
	if (!plan || !seen || pread(file, plan, size, 0) != size)
		die(arg[1]);

	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
				  .sll_ifindex = if_nametoindex(arg[3]), .sll_halen = 6,
				  .sll_addr = { 2, 0, 0, 0, 0, 9 } };
	struct sockaddr_ll from = to;
	from.sll_protocol = htons(ETH_P_ALL);
	int out = socket(AF_PACKET, SOCK_DGRAM, 0), tap = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	int on = 1, room = 32 << 20;
	if (out < 0 || tap < 0 || bind(tap, (struct sockaddr *)&from, sizeof from))
		die("socket");
	if (setsockopt(tap, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) ||
	    setsockopt(tap, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) ||
	    setsockopt(out, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room))
		die("setsockopt");
	collect(tap, seen);

	static uint8_t data[65536];
	uint64_t start = now() + 20000000;
	for (uint32_t i = 0; i < packets; i++) {
		uint64_t at = start + plan[i].at, t = now();
		if (t < at) {
			collect(tap, seen);
			t = now();
		}
		if (t + 200000 < at) {
			uint64_t rest = at - t - 100000;
			struct timespec nap = { rest / 1000000000u, rest % 1000000000u };
			nanosleep(&nap, NULL);
		}
		header(data, plan + i, i);
		while (now() < at)
			;
		seen[i].before = now();
		ssize_t n = sendto(out, data, plan[i].size - ETH_HLEN, 0, (struct sockaddr *)&to, sizeof to);
		seen[i].after = now();
		/* A queue that drops says so (ENOBUFS): that is no fault. */
		if (n < 0 && errno != ENOBUFS)
			die("sendto");
		if (i % 64 == 0)
			collect(tap, seen);
	}
	/* Until nothing has left for a second. */
	for (int still = 0; still < 10; still++) {
		struct timespec nap = { 0, 100000000 };
		uint32_t had = order;
		nanosleep(&nap, NULL);
		collect(tap, seen);
		if (order != had)
			still = 0;
	}
	struct tpacket_stats lost;
	socklen_t length = sizeof lost;
	if (getsockopt(tap, SOL_PACKET, PACKET_STATISTICS, &lost, &length) || lost.tp_drops) {
		fprintf(stderr, "guest: %u copies were lost\n", lost.tp_drops);
		return 1;
	}
	file = open(arg[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	size = (off_t)packets * sizeof *seen;
	if (file < 0 || write(file, seen, size) != size)
		die(arg[2]);
	return 0;
}
