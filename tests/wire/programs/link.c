// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * link [-l LOST] [-r REORDERED] [-d DUPLICATED] [-c DAMAGED] [-t MS]
 *	[-q DREQS] [-s SEED] PID PID
 *
 * Connect the network namespaces of two processes by a lossy link, like
 * tc-netem(8), which some kernels lack.  The program creates a TAP interface
 * eth0 in each namespace and copies frames between them, until it is killed.
 * It needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
 *
 * The options apply to RoCE v2 packets only: the percentage of packets that
 * are lost, reordered, duplicated and damaged, and the delay of all.  -q: so
 * many DREQs of the CM, the first ones, are lost.  Other frames are always
 * delivered.  Without -s the seed is taken from the clock.
 * It is printed.
 *
 * The UDP checksum of a damaged packet is set to 0.  Otherwise the kernel
 * would drop the packet, and no ICRC check would see it.
 *
 * tests/wire/hosts starts it.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX 65600
#define QUEUE 8192
#define REORDER_NS 1000000 /* longest delay of a reordered packet */
#define ROCE_PORT 4791

/* A frame that is queued, or was just read. */
struct frame {
	uint64_t due; /* ns, as now_ns() */
	int to; /* descriptor of the receiving interface */
	size_t len;
	uint8_t *bytes;
};

struct cable {
	double lost, reordered, duplicated, damaged; /* percent */
	uint64_t delay; /* ns */
	int dreqs; /* that are still to be lost */
	uint64_t seed, refused; /* refused: number of failed writes */
	struct frame queue[QUEUE]; /* sorted by due */
	unsigned int n;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* xorshift64*, a pseudorandom number generator (Vigna 2016). */
static uint64_t chance(struct cable *c)
{
	c->seed ^= c->seed >> 12;
	c->seed ^= c->seed << 25;
	c->seed ^= c->seed >> 27;
	return c->seed * 0x2545f4914f6cdd1d;
}

/* Return true with a probability of of_100 percent. */
static bool meets(struct cable *c, double of_100)
{
	return (double)(chance(c) >> 11) * 0x1p-53 * 100 < of_100;
}

/*
 * Return the offset of the UDP header of a RoCE v2 packet, or 0 if the frame
 * is none.
 */
static size_t roce_at(const uint8_t *f, size_t len)
{
	size_t at;

	if (len < 14 + 40 + 8)
		return 0;
	if (f[12] == 0x08 && f[13] == 0x00 && f[14 + 9] == 17)
		at = 14 + 4 * (size_t)(f[14] & 15);
	else if (f[12] == 0x86 && f[13] == 0xdd && f[14 + 6] == 17)
		at = 14 + 40;
	else
		return 0;
	if (len < at + 8 || f[at + 2] << 8 != (ROCE_PORT & 0xff00) ||
	    f[at + 3] != (ROCE_PORT & 0xff))
		return 0;
	return at;
}

/* Return whether the RoCE v2 packet is a DREQ: UD SEND_ONLY, attribute 0x15. */
static bool is_dreq(const struct frame *f, size_t udp)
{
	const uint8_t *bth = f->bytes + udp + 8, *mad = bth + 12 + 8;

	return f->len >= udp + 8 + 12 + 8 + 24 && bth[0] == 0x64 && !mad[16] &&
	       mad[17] == 0x15;
}

/* Flip a bit behind the UDP header, and clear the UDP checksum. */
static void damage(struct cable *c, struct frame *f, size_t udp)
{
	const size_t n = f->len - udp - 8;

	if (!n)
		return;
	f->bytes[udp + 6] = f->bytes[udp + 7] = 0;
	f->bytes[udp + 8 + chance(c) % n] ^= (uint8_t)(1u << chance(c) % 8);
}

/* Queue a copy of the frame. */
static void put(struct cable *c, const struct frame *f, uint64_t due)
{
	unsigned int i = c->n;

	if (c->n == QUEUE)
		return; /* the queue is full: drop the frame */
	for (; i && c->queue[i - 1].due > due; i--)
		c->queue[i] = c->queue[i - 1];
	c->queue[i] = *f;
	c->queue[i].due = due;
	c->queue[i].bytes = malloc(f->len);
	if (!c->queue[i].bytes)
		err(1, "malloc");
	memcpy(c->queue[i].bytes, f->bytes, f->len);
	c->n++;
}

/* Process a frame that was read: apply the options, and queue it. */
static void take(struct cable *c, struct frame *f)
{
	const size_t udp = roce_at(f->bytes, f->len);
	uint64_t due = now_ns();

	if (!udp) {
		put(c, f, due);
		return;
	}
	due += c->delay;
	if (c->dreqs && is_dreq(f, udp)) {
		c->dreqs--;
		return;
	}
	if (meets(c, c->lost))
		return;
	if (meets(c, c->damaged))
		damage(c, f, udp);
	if (meets(c, c->duplicated))
		put(c, f, due);
	if (meets(c, c->reordered))
		due += chance(c) % REORDER_NS;
	put(c, f, due);
}

/*
 * Write the frames that are due.  Return the ns until the next one is due, or
 * UINT64_MAX if there is none.
 */
static uint64_t deliver(struct cable *c)
{
	const uint64_t now = now_ns();
	unsigned int i;

	for (i = 0; i < c->n && c->queue[i].due <= now; i++) {
		/* write() fails while the interface is down */
		c->refused += write(c->queue[i].to, c->queue[i].bytes,
				    c->queue[i].len) < 0;
		free(c->queue[i].bytes);
	}
	c->n -= i;
	memmove(c->queue, c->queue + i, c->n * sizeof(*c->queue));
	return c->n ? c->queue[0].due - now : UINT64_MAX;
}

/*
 * Enter the network namespace of process @pid and create eth0 there.  Returns
 * the interface's descriptor.
 */
static int tap_in(const char *pid)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	char path[64];
	int ns, fd;

	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET))
		err(1, "%s", path);
	close(ns);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	strcpy(ifr.ifr_name, "eth0");
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr))
		err(1, "/dev/net/tun");
	return fd;
}

/* Copy frames in both directions.  Does not return. */
static void carry(struct cable *c, const int tap[2])
{
	static uint8_t bytes[FRAME_MAX];
	struct frame f = { .bytes = bytes };
	struct timespec t;
	uint64_t ns;
	ssize_t len;
	int i, burst;

	for (;;) {
		struct pollfd p[2] = { { tap[0], POLLIN, 0 },
				       { tap[1], POLLIN, 0 } };

		ns = deliver(c);
		t = (struct timespec){ (time_t)(ns / 1000000000),
				       (long)(ns % 1000000000) };
		ppoll(p, 2, ns == UINT64_MAX ? NULL : &t, NULL);
		for (i = 0; i < 2; i++) {
			f.to = tap[!i];
			for (burst = 0; burst < 32; burst++) {
				len = read(tap[i], bytes, sizeof(bytes));
				if (len < 0)
					break;
				f.len = (size_t)len;
				take(c, &f);
			}
		}
	}
}

int main(int argc, char **argv)
{
	static struct cable c;
	int tap[2], option;

	c.seed = now_ns();
	while ((option = getopt(argc, argv, "l:r:d:c:t:q:s:")) != -1) {
		if (option == 'l')
			c.lost = atof(optarg);
		else if (option == 'r')
			c.reordered = atof(optarg);
		else if (option == 'd')
			c.duplicated = atof(optarg);
		else if (option == 'c')
			c.damaged = atof(optarg);
		else if (option == 't')
			c.delay = (uint64_t)(atof(optarg) * 1e6);
		else if (option == 'q')
			c.dreqs = atoi(optarg);
		else if (option == 's')
			c.seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	if (argc - optind != 2)
		return 2;
	c.seed += !c.seed;
	tap[0] = tap_in(argv[optind]);
	tap[1] = tap_in(argv[optind + 1]);
	printf("link: seed %#llx\n", (unsigned long long)c.seed);
	fflush(stdout);
	carry(&c, tap);
}
