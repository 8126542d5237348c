// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Next-hop resolution, kernel-shim/wire/neighbour.h: whether the kernel knows
 * the link-layer address of a next hop, and that the kernel is made to
 * resolve it.
 *
 * own-net runs it in a network namespace.  Root sets up the routes and
 * neighbour entries of eth0; neighbour_find() and neighbour_wait() are then
 * called without privileges, as user nobody.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../mark.h"
#include "wire/neighbour.h"

#define NOBODY 65534
#define LONG_MS 60000

static void run(const char *command)
{
	ck_assert_msg(!system(command), "%s", command);
}

static void become_nobody(void)
{
	ck_assert_int_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
}

static const uint8_t *gid_of(const char *text)
{
	static uint8_t gid[16];

	memset(gid, 0, 16);
	if (inet_pton(AF_INET6, text, gid) == 1)
		return gid;
	gid[10] = gid[11] = 0xff;
	ck_assert_int_eq(inet_pton(AF_INET, text, gid + 12), 1);
	return gid;
}

static int wait_for(const char *text, uint32_t ms)
{
	const bool v6 = strchr(text, ':');
	uint8_t from[16];

	memcpy(from, gid_of(v6 ? "fd91::1" : "10.91.0.1"), 16);
	return neighbour_wait(gid_of(text), from, 0, ms);
}

static int find(const char *text)
{
	const bool v6 = strchr(text, ':');
	uint8_t from[16];

	memcpy(from, gid_of(v6 ? "fd91::1" : "10.91.0.1"), 16);
	return neighbour_find(gid_of(text), from, 0);
}

/* Hosts in 10.92.0.0/24 and fd92::/64 do not answer ARP or NDP. */
static void set_up(void)
{
	run("ip route replace 10.92.0.0/24 dev eth0");
	run("ip route replace fd92::/64 dev eth0");
}

/* Addresses of this host need no resolution. */
START_TEST(own_address)
{
	become_nobody();
	ck_assert_int_eq(find("10.91.0.1"), 0);
	ck_assert_int_eq(find("10.91.0.2"), 0);
	ck_assert_int_eq(find("fd91::2"), 0);
	ck_assert_int_eq(find("127.0.0.1"), 0);
}
END_TEST

/*
 * Without a route the result is -ENETUNREACH; an unreachable route gives
 * -EHOSTUNREACH.
 */
START_TEST(no_route)
{
	run("ip route replace unreachable 10.94.0.0/24");
	become_nobody();
	ck_assert_int_eq(find("192.0.2.1"), -ENETUNREACH);
	ck_assert_int_eq(find("2001:db8::1"), -ENETUNREACH);
	ck_assert_int_eq(find("10.94.0.1"), -EHOSTUNREACH);
	ck_assert_int_eq(wait_for("192.0.2.1", LONG_MS), -ENETUNREACH);
}
END_TEST

/* A neighbour that the kernel knows needs no resolution. */
START_TEST(known_neighbour)
{
	run("ip neigh replace 10.92.0.5 lladdr 02:00:00:00:00:05 dev eth0");
	run("ip neigh replace fd92::5 lladdr 02:00:00:00:00:05 dev eth0");
	become_nobody();
	ck_assert_int_eq(find("10.92.0.5"), 0);
	ck_assert_int_eq(find("fd92::5"), 0);
}
END_TEST

/* A neighbour that does not answer: resolution starts, and times out. */
START_TEST(silent_neighbour)
{
	become_nobody();
	ck_assert_int_eq(find("10.92.0.6"), -EINPROGRESS);
	ck_assert_int_eq(wait_for("10.92.0.6", 50), -ETIMEDOUT);
	ck_assert_int_eq(wait_for("fd92::6", 50), -ETIMEDOUT);
}
END_TEST

/* Return a socket that receives ARP requests at the peer of eth0. */
static int listen_for_questions(void)
{
	const struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ARP),
		.sll_ifindex = (int)if_nametoindex("eth1"),
	};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ARP));

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (const void *)&at, sizeof(at)), 0);
	return fd;
}

#define ARP_WANTS 24 /* offset of the target protocol address */

/* Wait for an ARP request for the address, and close the socket. */
static void expect_question(int fd, const char *text)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t arp[64] = { 0 };

	do {
		ck_assert_int_eq(poll(&p, 1, LONG_MS), 1);
		ck_assert_int_ge(recv(fd, arp, sizeof(arp), 0), ARP_WANTS + 4);
	} while (memcmp(arp + ARP_WANTS, gid_of(text) + 12, 4));
	close(fd);
}

/* If the neighbour entry is NUD_FAILED, resolution is started again. */
START_TEST(failed_neighbour_entry)
{
	int questions = listen_for_questions();

	run("ip neigh replace 10.92.0.7 dev eth0 nud failed");
	become_nobody();
	ck_assert_int_eq(find("10.92.0.7"), -EINPROGRESS);
	expect_question(questions, "10.92.0.7");
}
END_TEST

/* For a routed destination the address of the router is resolved. */
START_TEST(routed_destination)
{
	int questions = listen_for_questions();

	run("ip neigh replace 10.92.0.8 lladdr 02:00:00:00:00:08 dev eth0");
	run("ip route replace 10.93.0.0/24 via 10.92.0.8 dev eth0");
	run("ip route replace 10.95.0.0/24 via 10.92.0.9 dev eth0");
	run("ip neigh replace fe80::8 lladdr 02:00:00:00:00:08 dev eth0");
	run("ip route replace 10.96.0.0/24 via inet6 fe80::8 dev eth0");
	become_nobody();
	ck_assert_int_eq(find("10.93.0.1"), 0);
	ck_assert_int_eq(find("10.95.0.1"), -EINPROGRESS);
	expect_question(questions, "10.92.0.9");
	ck_assert_int_eq(find("10.96.0.1"), 0);
}
END_TEST

/*
 * Fork a process that, as root, runs @command when the resolution of @text
 * has started.
 */
static pid_t answer(const char *text, const char *command)
{
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child)
		return child;
	while (find(text) != -EINPROGRESS)
		;
	_exit(system(command) ? 1 : 0);
}

/* Check that neighbour_wait() returns 0 when the neighbour becomes known. */
static void answers_while_we_wait(const char *text)
{
	char command[128];
	int status;
	pid_t child;

	snprintf(command, sizeof(command),
		 "ip neigh replace %s lladdr 02:00:00:00:00:0a dev eth0", text);
	child = answer(text, command);
	become_nobody();
	ck_assert_int_eq(wait_for(text, LONG_MS), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

/* neighbour_wait() returns when the neighbour becomes known: IPv4. */
START_TEST(neighbour_answers)
{
	answers_while_we_wait("10.92.0.10");
}
END_TEST

/* The same for IPv6. */
START_TEST(neighbour_answers_ipv6)
{
	answers_while_we_wait("fd92::10");
}
END_TEST

/* An interface without ARP (IFF_NOARP) needs no resolution. */
START_TEST(interface_without_arp)
{
	run("ip link add name plain type veth peer plain1 && ip link set plain arp off up");
	run("ip route replace 10.97.0.0/24 dev plain");
	become_nobody();
	ck_assert_int_eq(find("10.97.0.1"), 0);
}
END_TEST

/* No descriptor is leaked, and errno is unchanged. */
START_TEST(no_descriptor_leak)
{
	int before = dup(0), after;

	become_nobody();
	close(before);
	errno = 77;
	ck_assert_int_eq(find("10.92.0.11"), -EINPROGRESS);
	ck_assert_int_eq(wait_for("10.92.0.11", 1), -ETIMEDOUT);
	ck_assert_int_eq(find("192.0.2.1"), -ENETUNREACH);
	ck_assert_int_eq(errno, 77);
	after = dup(0);
	ck_assert_int_eq(before, after);
	close(after);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("neighbour");
	TCase *t = tcase_create("neighbour");

	tcase_add_unchecked_fixture(t, set_up, NULL);
	tcase_set_timeout(t, 600);
	tcase_add_test(t, own_address);
	tcase_add_test(t, no_route);
	tcase_add_test(t, known_neighbour);
	tcase_add_test(t, silent_neighbour);
	tcase_add_test(t, failed_neighbour_entry);
	tcase_add_test(t, routed_destination);
	tcase_add_test(t, neighbour_answers);
	tcase_add_test(t, neighbour_answers_ipv6);
	tcase_add_test(t, interface_without_arp);
	tcase_add_test(t, no_descriptor_leak);
	suite_add_tcase(s, t);
	return run_cases(srunner_create(s));
}
