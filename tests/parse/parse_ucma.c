// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands of rdma_cm: an input is a sequence of commands that are written to
 * a new channel.  Pointers in commands are replaced by valid ones, as in
 * parse_uverbs.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "parse.h"
#include "preload/shim.h"
#include "preload/ucma/ucma.h"

#define COMMANDS 32 /* of one input */
#define ROOM 8192u

static char room[ROOM];

/* Offset of the pointer in a command; -1: it has none */
static const int8_t pointer[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = 8,
	[RDMA_USER_CM_CMD_DESTROY_ID] = 0,
	[RDMA_USER_CM_CMD_BIND_IP] = -1,
	[RDMA_USER_CM_CMD_RESOLVE_IP] = -1,
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = -1,
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = 0,
	[RDMA_USER_CM_CMD_CONNECT] = -1,
	[RDMA_USER_CM_CMD_LISTEN] = -1,
	[RDMA_USER_CM_CMD_ACCEPT] = -1,
	[RDMA_USER_CM_CMD_REJECT] = -1,
	[RDMA_USER_CM_CMD_DISCONNECT] = -1,
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = 0,
	[RDMA_USER_CM_CMD_GET_EVENT] = 0,
	[RDMA_USER_CM_CMD_GET_OPTION] = 0,
	[RDMA_USER_CM_CMD_SET_OPTION] = 0,
	[RDMA_USER_CM_CMD_NOTIFY] = -1,
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = 0,
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = 0,
	[RDMA_USER_CM_CMD_MIGRATE_ID] = 0,
	[RDMA_USER_CM_CMD_QUERY] = 0,
	[RDMA_USER_CM_CMD_BIND] = -1,
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = -1,
	[RDMA_USER_CM_CMD_JOIN_MCAST] = 0,
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	parse_place();
	if (!shim_active() || !shim_fabric())
		abort();
	return 0;
}

static void command(int fd, struct bytes *b)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		char bytes[UCMA_COMMAND_MAX];
	} m;
	const uint64_t to = (uintptr_t)room;
	int8_t at = -1;
	ssize_t out;

	memset(&m, 0, sizeof(m));
	m.hdr.cmd = bytes_next(b);
	m.hdr.in = (uint16_t)(2 * bytes_next(b));
	m.hdr.out = bytes_next(b) & 1 ? bytes_next(b) : 4096;
	if (m.hdr.in > UCMA_COMMAND_MAX - sizeof(m.hdr))
		m.hdr.in = UCMA_COMMAND_MAX - sizeof(m.hdr);
	bytes_take(b, m.bytes, m.hdr.in);
	if (m.hdr.cmd < sizeof(pointer))
		at = pointer[m.hdr.cmd];
	/* a partly given pointer would be invalid, so clear it */
	if (at >= 0)
		memset(m.bytes + at, 0, sizeof(to));
	if (at >= 0 && m.hdr.in >= (size_t)at + sizeof(to))
		memcpy(m.bytes + at, &to, sizeof(to));
	if (m.hdr.cmd == RDMA_USER_CM_CMD_SET_OPTION) /* buffer size */
		((struct rdma_ucm_set_option *)(void *)m.bytes)->optlen %= ROOM;
	ucma_write(fd, &m, sizeof(m.hdr) + m.hdr.in, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };
	int fd = ucma_open(O_NONBLOCK), n;

	if (fd < 0)
		abort();
	fcntl(fd, F_SETFL, O_NONBLOCK);
	memcpy(room, data, size < ROOM ? size : ROOM);
	for (n = 0; n < COMMANDS && b.left; n++)
		command(fd, &b);
	close(fd);
	return 0;
}
