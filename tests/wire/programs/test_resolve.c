// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_modify_qp() to RTR and ibv_create_ah() resolve the next hop before they
 * return.  own-net runs it; no neighbour there answers ARP, and the tests
 * write answers into the kernel's neighbour table.
 *
 * Each test runs twice: with ibv_modify_qp() and with ibv_create_ah().
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../verbs/types.h"
#include "wire/neighbour.h"

static const uint8_t here[16] = { [10] = 0xff, 0xff, 10, 91, 0, 1 };

static struct node n;

static void run_command(const char *command)
{
	ck_assert_msg(!system(command), "%s", command);
}

/* Hosts in 10.92.0.0/24 do not answer; 10.94.0.0/24 is unreachable. */
static void open_node(void)
{
	struct opts o = default_opts();

	run_command("ip route replace 10.92.0.0/24 dev eth0");
	run_command("ip route replace unreachable 10.94.0.0/24");
	node_open(&n, NULL, MEM_HEAP, &o);
	qp_to_init(n.qp, &o);
}

/* The GID of the interface's IPv4 address, or for IPv6 the first one. */
static uint8_t own_index(const union ibv_gid *to)
{
	union ibv_gid gid;
	int i;

	if (memcmp(to->raw, here, 12))
		return 1;
	for (i = 1; i < 256; i += 2)
		if (!ibv_query_gid(n.ctx, 1, i, &gid) &&
		    !memcmp(gid.raw, here, 16))
			return (uint8_t)i;
	ck_abort_msg("10.91.0.1 has no GID");
}

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff } };

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1)
		ck_assert_int_eq(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static int connect_to(const char *text)
{
	struct addr to = { .qpn = 0x123, .gid = gid_of(text) };
	struct ibv_qp_attr attr;
	int mask = attr_rtr(&attr, &n.o, &to);

	attr.ah_attr.grh.sgid_index = own_index(&to.gid);
	return ibv_modify_qp(n.qp, &attr, mask);
}

static int make_ah_to(const char *text)
{
	const union ibv_gid to = gid_of(text);
	struct ibv_ah_attr attr = {
		.grh = { .dgid = to, .sgid_index = own_index(&to) },
		.is_global = 1,
		.port_num = 1,
	};
	struct ibv_ah *ah = ibv_create_ah(n.pd, &attr);

	return ah ? ibv_destroy_ah(ah) : errno;
}

/* Resolve by ibv_modify_qp() or ibv_create_ah().  Returns 0 or an errno. */
static int each(int way, const char *text)
{
	return way ? make_ah_to(text) : connect_to(text);
}

/*
 * The socket has an IPv4 address, so no packet can be sent between IPv6
 * addresses: both verbs fail with EHOSTUNREACH.
 */
START_TEST(other_address_family)
{
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	open_node();
	ck_ok(ibv_query_gid(n.ctx, 1, 1, &gid));
	ck_assert_int_ne(memcmp(gid.raw, here, 12), 0);
	gid.raw[15] ^= 1;
	ck_nonnull(inet_ntop(AF_INET6, gid.raw, text, sizeof(text)));
	ck_assert_int_eq(each(_i, text), EHOSTUNREACH);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_INIT);
	node_close(&n);
}
END_TEST

/*
 * If the next hop does not answer, the verb fails with ETIMEDOUT and the QP
 * stays in INIT.
 */
START_TEST(neighbour_timeout)
{
	open_node();
	ck_assert_int_eq(each(_i, "10.92.0.6"), ETIMEDOUT);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_INIT);
	node_close(&n);
}
END_TEST

/*
 * If the route is unreachable, the verb fails with EHOSTUNREACH and the QP
 * stays in INIT.
 */
START_TEST(no_route)
{
	open_node();
	ck_assert_int_eq(each(_i, "10.94.0.1"), EHOSTUNREACH);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_INIT);
	node_close(&n);
}
END_TEST

/*
 * Fork a process that makes the neighbour known when its resolution has
 * started.
 */
static pid_t answer(const char *text)
{
	const union ibv_gid gid = gid_of(text);
	char command[128];
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	snprintf(command, sizeof(command), "ip neigh show %s | grep -q .",
		 text);
	while (system(command))
		;
	snprintf(command, sizeof(command),
		 "ip neigh replace %s lladdr 02:00:00:00:00:0a dev eth0", text);
	_exit(system(command) || neighbour_find(gid.raw, here, 0));
}

/* When the neighbour becomes known, the verb succeeds. */
START_TEST(neighbour_answers)
{
	const char *text = _i ? "10.92.0.11" : "10.92.0.10";
	const union ibv_gid gid = gid_of(text);
	pid_t pid;

	open_node();
	pid = answer(text);
	/* the process may be slower than the timeout of the verb */
	while (each(_i, text) == ETIMEDOUT)
		;
	ck_assert_int_eq(neighbour_find(gid.raw, here, 0), 0);
	ck_assert_int_eq(reap_child(pid), 0);
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("resolve");

	add_loop(s, neighbour_timeout, 2);
	add_loop(s, no_route, 2);
	add_loop(s, other_address_family, 2);
	add_loop(s, neighbour_answers, 2);
	return run(s);
}
