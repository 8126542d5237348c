// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe-profile-record DEVICE: print the profile of an RDMA device, as
 * urxe-profile(5) describes it.
 *
 * Attributes are queried.  Limits and features that no attribute shows are
 * probed: objects are created, modified and destroyed.  No WR is posted, so
 * that the device sends nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"

/* ----------------------------------------------------------- attributes */

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

static void attributes_fill(struct recorder *r)
{
	const struct ibv_device_attr *a = &r->attr.orig_attr;
	uint64_t *value = r->p.value;

#define TAKE(from, name) value[PROFILE_##name] = (from)->name
	TAKE(a, vendor_id);
	TAKE(a, vendor_part_id);
	TAKE(a, hw_ver);
	TAKE(a, max_mr_size);
	TAKE(a, page_size_cap);
	TAKE(a, device_cap_flags);
	TAKE(a, max_qp);
	TAKE(a, max_qp_wr);
	TAKE(a, max_sge_rd);
	TAKE(a, max_cq);
	TAKE(a, max_cqe);
	TAKE(a, max_mr);
	TAKE(a, max_mw);
	TAKE(a, max_pd);
	TAKE(a, max_ah);
	TAKE(a, max_srq);
	TAKE(a, max_srq_wr);
	TAKE(a, max_srq_sge);
	TAKE(a, max_qp_rd_atom);
	TAKE(a, max_qp_init_rd_atom);
	TAKE(a, max_mcast_grp);
	TAKE(a, max_mcast_qp_attach);
	TAKE(a, local_ca_ack_delay);
	TAKE(&r->attr, max_dm_size);
	TAKE(&r->port, max_msg_sz);
	TAKE(&r->port, gid_tbl_len);
	TAKE(&r->port, active_width);
	TAKE(&r->port, active_speed);
	TAKE(&r->port, max_vl_num);
#undef TAKE
	value[PROFILE_max_mtu] = mtu_bytes(r->port.max_mtu);
	value[PROFILE_active_mtu] = mtu_bytes(r->port.active_mtu);
	value[PROFILE_comp_vectors] = r->ctx->num_comp_vectors;
}

/* Find the GID types of the port, and a GID to connect a QP with. */
static void gids_find(struct recorder *r)
{
	const size_t room =
		(size_t)r->port.gid_tbl_len * r->attr.orig_attr.phys_port_cnt;
	struct ibv_gid_entry *table = calloc(room + 1, sizeof(*table));
	ssize_t i, n = -1;

	if (table)
		n = ibv_query_gid_table(r->ctx, table, room, 0);
	if (n < 0)
		note("the GID table cannot be read, so that gid_types is empty");
	for (i = 0; i < n; i++) {
		if (table[i].port_num != PORT)
			continue;
		r->p.value[PROFILE_gid_types] |= 1ull << table[i].gid_type;
		if (r->has_gid && (r->gid.gid_type == IBV_GID_TYPE_ROCE_V2 ||
				   table[i].gid_type != IBV_GID_TYPE_ROCE_V2))
			continue;
		r->gid = table[i];
		r->has_gid = true;
	}
	free(table);
}

/* libibverbs has no verb for the board ID. */
static void board_find(struct recorder *r)
{
	char path[sizeof(r->ctx->device->ibdev_path) + 16];
	FILE *f;

	snprintf(path, sizeof(path), "%s/board_id", r->ctx->device->ibdev_path);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(r->p.board_id, sizeof(r->p.board_id), f))
		r->p.board_id[0] = '\0';
	r->p.board_id[strcspn(r->p.board_id, "\n")] = '\0';
	fclose(f);
}

/* ----------------------------------------------------- opening, printing */

static struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			break;
	if (list && list[i]) {
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			note("%s cannot be opened: %s", name,
			     strerror(last_error()));
	} else if (!list || !list[0]) {
		note("this machine has no RDMA device");
	} else {
		fprintf(stderr, PROGRAM ": no RDMA device %s; the devices are",
			name);
		for (i = 0; list[i]; i++)
			fprintf(stderr, " %s", ibv_get_device_name(list[i]));
		fputc('\n', stderr);
	}
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

/* Map a file: FLUSH_PERSISTENT may require one, and DMABUF does.  errno value
 */
static int memory_open(struct recorder *r)
{
	r->fd = memfd_create(PROGRAM, MFD_CLOEXEC);
	if (r->fd < 0 || ftruncate(r->fd, MEMORY))
		return last_error();
	r->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED,
			 r->fd, 0);
	if (r->memory == MAP_FAILED) {
		r->memory = NULL;
		return last_error();
	}
	return 0;
}

static int failed(const char *what, int err)
{
	note("%s: %s", what, strerror(err));
	return 1;
}

/* Return 0, or 1 after a message.  objects_close() is called in both cases. */
static int objects_open(struct recorder *r)
{
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	int err;

	errno = 0;
	err = verb_error(ibv_query_device_ex(r->ctx, NULL, &r->attr));
	if (err)
		return failed("ibv_query_device_ex", err);
	err = verb_error(ibv_query_port(r->ctx, PORT, &r->port));
	if (err)
		return failed("ibv_query_port", err);
	err = memory_open(r);
	if (err)
		return failed("memory", err);
	r->pd = ibv_alloc_pd(r->ctx);
	if (!r->pd)
		return failed("ibv_alloc_pd", last_error());
	r->cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0);
	if (!r->cq)
		return failed("ibv_create_cq", last_error());
	errno = 0;
	r->xrcd = ibv_open_xrcd(r->ctx, &xrcd);
	r->no_xrcd = r->xrcd ? 0 : last_error();
	return 0;
}

static void objects_close(struct recorder *r)
{
	if (r->xrcd)
		ibv_close_xrcd(r->xrcd);
	if (r->cq)
		ibv_destroy_cq(r->cq);
	if (r->pd)
		ibv_dealloc_pd(r->pd);
	if (r->memory)
		munmap(r->memory, MEMORY);
	if (r->fd >= 0)
		close(r->fd);
}

/* The errno value of urxe if a profile has none. */
static int own_error(enum profile_key key)
{
	if (key == PROFILE_max_dm_size)
		return ENOMEM;
	return profile_keys[key].kind == PROFILE_NAMES ? EOPNOTSUPP : EINVAL;
}

static void key_print(const struct recorder *r, enum profile_key key)
{
	const struct profile_key_info *info = &profile_keys[key];
	const char *error =
		r->refused[key] > 0 ?
			profile_error_name((uint8_t)r->refused[key]) :
			NULL;

	if (key == PROFILE_quirks || key == PROFILE_dm_unit) {
		printf("# %s %s not probed\n", info->name,
		       key == PROFILE_quirks ? "are" : "is");
		return;
	}
	profile_key_print(stdout, key, r->p.value[key],
			  r->refused[key] != own_error(key) ? error : NULL);
	putchar('\n');
}

/* Print a key whose value must be one word, if it is. */
static void text_print(const char *key, const char *text)
{
	if (*text && !text[strcspn(text, " \t\r\n#")])
		printf("%-20s %s\n", key, text);
}

/* Return 0, or 1 after a message. */
static int profile_print(const struct recorder *r)
{
	unsigned int key;

	printf("# %s, recorded on a machine with it\n",
	       ibv_get_device_name(r->ctx->device));
	text_print("fw_ver", r->attr.orig_attr.fw_ver);
	text_print("board_id", r->p.board_id);
	for (key = 0; key < PROFILE_KEYS_COUNT; key++)
		key_print(r, key);
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	return failed("the profile cannot be written", last_error());
}

int main(int argc, char **argv)
{
	struct recorder r = { .fd = -1 };
	int ret;

	if (argc != 2 || argv[1][0] == '-') {
		fputs("usage: " PROGRAM " DEVICE\n", stderr);
		return 1;
	}
	r.ctx = device_open(argv[1]);
	if (!r.ctx)
		return 1;
	ret = objects_open(&r);
	if (!ret) {
		attributes_fill(&r);
		board_find(&r);
		gids_find(&r);
		types_find(&r);
		access_find(&r);
		features_find(&r);
		ops_find(&r);
		limits_search(&r);
		limits_exceed(&r);
		ret = profile_print(&r);
	}
	objects_close(&r);
	ibv_close_device(r.ctx);
	return ret;
}
