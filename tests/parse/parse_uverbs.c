// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ioctls of a context: object, method, and attributes.  A pointer that leads
 * nowhere is a crash of the program and nobody else's here, where the kernel
 * would say EFAULT: pointers lead to as much memory as they say.
 */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "parse.h"
#include "preload/shim.h"
#include "preload/uverbs.h"

#define ATTRS 8u
#define ROOM 65536u

static int ctx;
static char room[ATTRS][ROOM];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct urxe_fabric *f;

	(void)argc;
	(void)argv;
	parse_place();
	if (!shim_active() || !(f = shim_fabric()))
		abort();
	ctx = fabric_context_open(f);
	if (ctx < 0)
		abort();
	return 0;
}

/* Descriptors that were made come back in what was to be written. */
static void close_made(void)
{
	int fd;

	for (fd = ctx + 1; fd < ctx + 16; fd++)
		close(fd);
}

/* Of the device's methods, all but one begin with two numbers. */
static bool is_number(const struct ib_uverbs_ioctl_hdr *hdr, uint16_t attr_id)
{
	return hdr->object_id == UVERBS_OBJECT_DEVICE &&
	       hdr->method_id != UVERBS_METHOD_INVOKE_WRITE && attr_id <= 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(8) char cmd[sizeof(struct ib_uverbs_ioctl_hdr) +
			     ATTRS * sizeof(struct ib_uverbs_attr)] = { 0 };
	struct ib_uverbs_ioctl_hdr *hdr = (void *)cmd;
	struct ib_uverbs_attr *attr = hdr->attrs;
	struct bytes b = { data, size };
	uint32_t i;

	bytes_take(&b, &hdr->object_id, sizeof(hdr->object_id));
	bytes_take(&b, &hdr->method_id, sizeof(hdr->method_id));
	hdr->num_attrs = bytes_next(&b) % (ATTRS + 1);
	hdr->length = (uint16_t)(sizeof(*hdr) + hdr->num_attrs *
					       sizeof(attr[0]));
	if (bytes_next(&b) == 1)
		bytes_take(&b, &hdr->length, sizeof(hdr->length));
	for (i = 0; i < hdr->num_attrs; i++) {
		bytes_take(&b, &attr[i].attr_id, 2);
		bytes_take(&b, &attr[i].len, 2);
		bytes_take(&b, &attr[i].flags, 2);
		if (bytes_next(&b) & 1)
			bytes_take(&b, &attr[i].data, 8);
		/* more than is passed by value, or what is to be written */
		if (attr[i].len > 8 || !attr[i].data ||
		    bytes_next(&b) & 1)
			attr[i].data = (uintptr_t)room[i];
	}
	/* numbers where there should be a pointer: libibverbs does not do that */
	for (i = 0; i < hdr->num_attrs; i++)
		if (attr[i].len && !is_number(hdr, attr[i].attr_id))
			attr[i].data = (uintptr_t)room[i];
	uverbs_ioctl(ctx, hdr);
	close_made();
	return 0;
}
