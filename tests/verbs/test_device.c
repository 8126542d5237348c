// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device: ibv_query_device(3), ibv_query_port(3), limits, GIDs, P_Keys.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "shared/layout.h"

/*
 * The device is in ibv_get_device_list(), with the attributes of an RDMA NIC.
 */
START_TEST(listed)
{
	struct ibv_device **list, *dev = find_device(&list);
	struct ibv_device_attr attr;
	struct ibv_context *ctx;

	ck_assert_int_eq(dev->node_type, IBV_NODE_CA);
	ck_assert_int_eq(dev->transport_type, IBV_TRANSPORT_IB);
	ck_assert_ptr_nonnull(strstr(dev->dev_name, "uverbs"));
	ck_assert(ibv_get_device_guid(dev) != 0);
	ck_assert_int_ge(ibv_get_device_index(dev), 0);
	ctx = ibv_open_device(dev);
	ck_nonnull(ctx);
	ck_assert_ptr_eq(ctx->device, dev);
	ck_ok(ibv_query_device(ctx, &attr));
	ck_assert(attr.node_guid == ibv_get_device_guid(dev));
	ck_ok(ibv_close_device(ctx));
	ibv_free_device_list(list);
}
END_TEST

/* The RDMA devices of the host are hidden by default. */
START_TEST(only_urxe_is_listed)
{
	struct ibv_device **list;
	int n;

	list = ibv_get_device_list(&n);
	ck_nonnull(list);
	ck_assert_int_eq(n, 1);
	ck_assert_ptr_null(list[1]);
	ibv_free_device_list(list);
}
END_TEST

/*
 * ibv_query_port_speed() (libibverbs release 62 and later) returns the rate
 * of sysfs, in units of 100 Mb/s.
 */
START_TEST(port_speed)
{
	int (*query)(struct ibv_context *, uint32_t, uint64_t *);
	void *found = dlsym(RTLD_DEFAULT, "ibv_query_port_speed");
	struct ibv_context *ctx = open_device();
	uint64_t speed = 0;
	double rate = 0;
	FILE *f;

	if (found) {
		memcpy(&query, &found, sizeof(query));
		f = fopen("/sys/class/infiniband/" DEVICE "/ports/1/rate", "r");
		ck_nonnull(f);
		ck_assert_int_eq(fscanf(f, "%lf Gb/sec", &rate), 1);
		fclose(f);
		ck_ok(query(ctx, 1, &speed));
		ck_assert_uint_eq(speed, (uint64_t)(rate * 10));
		ck_assert_int_eq(query(ctx, 0, &speed), EINVAL);
		ck_assert_int_eq(query(ctx, 2, &speed), EINVAL);
	}
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* ibv_query_device() returns the limits of shared/layout.h. */
START_TEST(limits)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr a;

	memset(&a, 0xee, sizeof(a));
	ck_ok(ibv_query_device(ctx, &a));
	ck_assert_int_eq(a.phys_port_cnt, 1);
	ck_assert_int_eq(a.max_qp, URXE_MAX_QP - 2);
	ck_assert_int_eq(a.max_qp_wr, URXE_MAX_QP_WR);
	ck_assert_int_eq(a.max_sge, URXE_MAX_SGE);
	ck_assert_int_eq(a.max_cq, URXE_MAX_CQ - 1);
	ck_assert_int_eq(a.max_cqe, URXE_MAX_CQE);
	ck_assert_int_eq(a.max_mr, URXE_MAX_MR);
	ck_assert_int_eq(a.max_pd, URXE_MAX_PD - 1);
	ck_assert_int_eq(a.max_qp_rd_atom, URXE_MAX_RD_ATOM);
	ck_assert_int_eq(a.max_qp_init_rd_atom, URXE_MAX_RD_ATOM);
	ck_assert_int_eq(a.atomic_cap, IBV_ATOMIC_HCA);
	ck_assert_int_eq(a.max_pkeys, 1);
	ck_assert(a.max_mr_size >= URXE_MAX_MSG);
	ck_assert(a.page_size_cap & 4096);
	ck_assert_str_ne(a.fw_ver, "");
	/* other tests assume that these are not supported */
	ck_assert(!(a.device_cap_flags &
		    (IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_RESIZE_MAX_WR)));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * ibv_query_device_ex() agrees with ibv_query_device(), and refuses an
 * unknown comp_mask.
 */
START_TEST(extended_query)
{
	struct ibv_query_device_ex_input in = { .comp_mask = 1 };
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr a;

	memset(&ex, 0xee, sizeof(ex));
	ck_ok(ibv_query_device(ctx, &a));
	ck_ok(ibv_query_device_ex(ctx, NULL, &ex));
	ck_assert_mem_eq(&ex.orig_attr, &a, sizeof(a));
	ck_assert_uint_eq(ex.comp_mask, 0);
	ck_assert(ex.max_dm_size > 0);
	ck_assert(ex.max_dm_size <= URXE_DM_MAX_BYTES);
	ck_assert_uint_eq(ex.tso_caps.max_tso, 0);
	ck_assert_uint_eq(ex.rss_caps.supported_qpts, 0);
	ck_assert_int_eq(ibv_query_device_ex(ctx, &in, &ex), EINVAL);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* ibv_query_port() describes an active Ethernet port with RoCE. */
START_TEST(port)
{
	struct ibv_context *ctx = open_device();
	struct ibv_port_attr p;

	memset(&p, 0xee, sizeof(p));
	ck_ok(ibv_query_port(ctx, 1, &p));
	ck_assert_int_eq(p.state, IBV_PORT_ACTIVE);
	ck_assert_int_eq(p.max_mtu, IBV_MTU_4096);
	ck_assert_int_eq(p.active_mtu, IBV_MTU_4096);
	ck_assert_int_eq(p.link_layer, IBV_LINK_LAYER_ETHERNET);
	ck_assert_int_eq(p.phys_state, 5);
	ck_assert_int_eq(p.gid_tbl_len, URXE_MAX_GID);
	ck_assert_int_eq(p.pkey_tbl_len, 1);
	ck_assert_uint_eq(p.max_msg_sz, URXE_MAX_MSG);
	ck_assert_int_eq(p.lid, 0);
	ck_assert_int_eq(p.sm_lid, 0);
	ck_assert(p.flags & IBV_QPF_GRH_REQUIRED);
	ck_assert_int_ne(p.active_speed, 0);
	ck_assert_int_ne(p.active_width, 0);
	ck_assert_int_eq(ibv_query_port(ctx, 0, &p), EINVAL);
	ck_assert_int_eq(ibv_query_port(ctx, 2, &p), EINVAL);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * Read file @name/@i of the port's sysfs directory, without the newline.
 * False: it cannot be read.
 */
static bool sysfs(const char *name, int i, char *buf, size_t len)
{
	char path[200];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/" DEVICE "/ports/1/%s/%d", name, i);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, len - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return true;
}

static void gid_text(const union ibv_gid *gid, char *buf)
{
	int i;

	for (i = 0; i < 8; i++)
		buf += sprintf(buf, "%s%02x%02x", i ? ":" : "", gid->raw[2 * i],
			       gid->raw[2 * i + 1]);
}

static void unreadable(const char *what, int i)
{
	char path[128], c;
	int fd;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/urxe0/ports/1/%s/%d", what, i);
	fd = open(path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, &c, 1), -1);
	ck_assert_int_eq(errno, EINVAL);
	close(fd);
}

/*
 * ibv_query_gid(), ibv_query_gid_ex(), ibv_query_gid_table() and sysfs return
 * the same GIDs.  Even indices are RoCE v1, odd ones RoCE v2.
 */
START_TEST(gids_agree_in_all_queries)
{
	static const union ibv_gid zero;
	struct ibv_gid_entry table[URXE_MAX_GID], e;
	struct ibv_context *ctx = open_device();
	char text[64], want[64];
	union ibv_gid gid;
	ssize_t n, k = 0;
	int i;

	n = ibv_query_gid_table(ctx, table, URXE_MAX_GID, 0);
	ck_assert_int_gt(n, 0);
	for (i = 0; i < URXE_MAX_GID; i++) {
		ck_ok(ibv_query_gid(ctx, 1, i, &gid));
		ck_assert(sysfs("gids", i, text, sizeof(text)));
		gid_text(&gid, want);
		ck_assert_str_eq(text, want);
		if (!memcmp(&gid, &zero, sizeof(gid))) {
			ck_assert_int_eq(ibv_query_gid_ex(ctx, 1, i, &e, 0),
					 ENODATA);
			/*
			 * NCCL expects that open() succeeds and read() fails
			 */
			unreadable("gid_attrs/types", i);
			unreadable("gid_attrs/ndevs", i);
			continue;
		}
		ck_ok(ibv_query_gid_ex(ctx, 1, i, &e, 0));
		ck_assert_mem_eq(&e.gid, &gid, sizeof(gid));
		ck_assert_uint_eq(e.gid_index, i);
		ck_assert_uint_eq(e.port_num, 1);
		ck_assert_uint_eq(e.gid_type, i % 2 ? IBV_GID_TYPE_ROCE_V2 :
						      IBV_GID_TYPE_ROCE_V1);
		ck_assert(sysfs("gid_attrs/types", i, text, sizeof(text)));
		ck_assert_str_eq(text, i % 2 ? "RoCE v2" : "IB/RoCE v1");
		ck_assert_int_lt(k, n);
		ck_assert_uint_eq(table[k].gid_index, i);
		ck_assert_mem_eq(&table[k].gid, &gid, sizeof(gid));
		k++;
	}
	ck_assert_int_eq(k, n);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * GID indices that scripts contain: 0, from "-g 0" of the examples, and 3,
 * which on ConnectX is the RoCE v2 GID of the first IP address.
 */
START_TEST(gids_of_scripts)
{
	struct ibv_context *ctx = open_device();
	struct ibv_gid_entry e[4];
	uint32_t i;

	for (i = 0; i < 4; i++)
		ck_ok(ibv_query_gid_ex(ctx, 1, i, &e[i], 0));
	ck_assert_mem_eq(&e[0].gid, &e[1].gid, 16);
	ck_assert_mem_eq(&e[2].gid, &e[3].gid, 16);
	ck_assert_uint_eq(e[0].gid.raw[0], 0xfe);
	ck_assert_uint_eq(e[0].gid.raw[1], 0x80);
	/* IPv4-mapped: the host has an IPv4 address */
	ck_assert_mem_eq(e[3].gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

static unsigned long pci_id(const char *name)
{
	char path[128], text[32];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/urxe0/device/%s",
		 name);
	f = fopen(path, "r");
	ck_nonnull(f);
	ck_nonnull(fgets(text, sizeof(text), f));
	fclose(f);
	return strtoul(text, NULL, 0);
}

/* The PCI IDs in sysfs agree with ibv_query_device(). */
START_TEST(pci_ids)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr a;

	ck_ok(ibv_query_device(ctx, &a));
	ck_assert_uint_eq(pci_id("vendor"), a.vendor_id & 0xffff);
	ck_assert_uint_eq(pci_id("device"), a.vendor_part_id);
	ck_assert_uint_eq(pci_id("revision"), a.hw_ver);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* GID queries fail for invalid ports and indices. */
START_TEST(gid_errors)
{
	struct ibv_context *ctx = open_device();
	struct ibv_gid_entry e;
	union ibv_gid gid;

	ck_assert_int_ne(ibv_query_gid(ctx, 1, URXE_MAX_GID, &gid), 0);
	ck_assert_int_ne(ibv_query_gid(ctx, 2, 0, &gid), 0);
	ck_assert_int_eq(ibv_query_gid_ex(ctx, 1, URXE_MAX_GID, &e, 0), EINVAL);
	ck_assert_int_eq(ibv_query_gid_ex(ctx, 0, 0, &e, 0), EINVAL);
	ck_assert_int_eq(ibv_query_gid_ex(ctx, 2, 0, &e, 0), EINVAL);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* The P_Key table contains the default P_Key 0xffff only. */
START_TEST(pkeys)
{
	struct ibv_context *ctx = open_device();
	__be16 pkey = 0;

	ck_ok(ibv_query_pkey(ctx, 1, 0, &pkey));
	ck_assert_uint_eq(be16toh(pkey), 0xffff);
	ck_assert_int_ne(ibv_query_pkey(ctx, 1, 1, &pkey), 0);
	ck_assert_int_ne(ibv_query_pkey(ctx, 2, 0, &pkey), 0);
	ck_assert_int_eq(ibv_get_pkey_index(ctx, 1, htobe16(0xffff)), 0);
	ck_assert_int_lt(ibv_get_pkey_index(ctx, 1, htobe16(0x8001)), 0);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* A process can open the device several times. */
START_TEST(several_contexts)
{
	struct ibv_context *ctx[20];
	int i, j;

	for (i = 0; i < 20; i++) {
		ctx[i] = open_device();
		ck_assert_int_eq(ctx[i]->num_comp_vectors,
				 URXE_NUM_COMP_VECTORS);
		ck_assert_int_ge(ctx[i]->async_fd, 0);
		for (j = 0; j < i; j++)
			ck_assert_int_ne(ctx[i]->cmd_fd, ctx[j]->cmd_fd);
	}
	for (i = 0; i < 20; i++)
		ck_ok(ibv_close_device(ctx[i]));
}
END_TEST

/* A QP cannot have a PD and a CQ of different contexts. */
START_TEST(pds_of_other_contexts)
{
	struct ibv_context *one = open_device(), *two = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(one);
	struct ibv_cq *cq = ibv_create_cq(two, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	/* handles are valid in their context only */
	ck_errno(ibv_create_qp(pd, &attr), EINVAL);
	ck_ok(ibv_destroy_cq(cq));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(one));
	ck_ok(ibv_close_device(two));
}
END_TEST

/* If the limit of an object type is 0, creation fails with EOPNOTSUPP. */
START_TEST(absent_objects)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1,
						   .max_sge = 1 } };
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_device_attr a;

	ck_ok(ibv_query_device(ctx, &a));
	if (!a.max_srq)
		ck_errno(ibv_create_srq(pd, &srq), EOPNOTSUPP);
	if (!a.max_mw)
		ck_errno(ibv_alloc_mw(pd, IBV_MW_TYPE_1), EOPNOTSUPP);
	if (!a.max_ah)
		ck_errno(ibv_create_ah(pd, &(struct ibv_ah_attr){ 0 }),
			 EOPNOTSUPP);
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

int main(void)
{
	Suite *s = suite("device");

	add(s, listed);
	add(s, only_urxe_is_listed);
	add(s, port_speed);
	add(s, limits);
	add(s, extended_query);
	add(s, port);
	add(s, gids_agree_in_all_queries);
	add(s, gids_of_scripts);
	add(s, gid_errors);
	add(s, pci_ids);
	add(s, pkeys);
	add(s, several_contexts);
	add(s, pds_of_other_contexts);
	add(s, absent_objects);
	return run(s);
}
