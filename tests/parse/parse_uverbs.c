// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ioctls of a context: an input has the object, the method and the
 * attributes.
 *
 * The kernel returns EFAULT for an invalid pointer.  Here an invalid pointer
 * would crash the calling process, which harms no other process.  The harness
 * therefore replaces pointers by ones to as much memory as the attribute
 * states.
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
	ctx = fabric_context_open(f, 0);
	if (ctx < 0)
		abort();
	return 0;
}

/* Close the descriptors that the ioctl has opened. */
static void close_made(void)
{
	int fd;

	for (fd = ctx + 1; fd < ctx + 16; fd++)
		close(fd);
}

/*
 * Return whether the attribute is a number.  The first two attributes of the
 * device's methods are, except for UVERBS_METHOD_INVOKE_WRITE.
 */
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
		/* longer than 8 bytes, so passed by pointer; or an output */
		if (attr[i].len > 8 || !attr[i].data ||
		    bytes_next(&b) & 1)
			attr[i].data = (uintptr_t)room[i];
	}
	/*
	 * other attributes are pointers: libibverbs passes no numbers there
	 */
	for (i = 0; i < hdr->num_attrs; i++)
		if (attr[i].len && !is_number(hdr, attr[i].attr_id))
			attr[i].data = (uintptr_t)room[i];
	uverbs_ioctl(ctx, hdr);
	close_made();
	return 0;
}
