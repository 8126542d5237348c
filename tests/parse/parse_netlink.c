// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RDMA netlink: an input is what a program sends to the socket. */
#include <sys/socket.h>

#include "fabric/fabric.h"
#include "parse.h"
#include "preload/netlink/netlink.h"
#include "preload/shim.h"

static int sock;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct urxe_fabric *f;

	(void)argc;
	(void)argv;
	parse_place();
	if (!shim_active() || !(f = shim_fabric()))
		abort();
	/* an object to list */
	if (fabric_context_open(f, 0) < 0)
		abort();
	sock = netlink_socket(SOCK_RAW);
	if (sock < 0)
		abort();
	shim_enter(); /* calls of the harness are not intercepted */
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char answer[4096];

	netlink_request(sock, data, size);
	while (recv(sock, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
	return 0;
}
