// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Profiles (urxe-profile(5)): a device shows the limits and features of its
 * profile, and refuses what exceeds them, with the errno value of the profile.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../harness.h"
#include "../types.h"

/*
 * The devices get a profile with that text: the fabric of the previous case is
 * not used any more, and is replaced.
 */
static void use_profile(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.profile", getenv("URXE_DIR"), name);
	f = fopen(path, "w");
	ck_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_ok(fclose(f));
	setenv("URXE_PROFILE", path, 1);
	unsetenv("URXE_KEEP");
}

/* The objects that the cases need. */
struct kit {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static struct kit kit_open(const char *name, const char *text)
{
	struct kit k;

	use_profile(name, text);
	k.ctx = open_device();
	k.pd = ibv_alloc_pd(k.ctx);
	ck_nonnull(k.pd);
	k.cq = ibv_create_cq(k.ctx, 16, NULL, NULL, 0);
	ck_nonnull(k.cq);
	return k;
}

static void kit_close(struct kit *k)
{
	ck_ok(ibv_destroy_cq(k->cq));
	ck_ok(ibv_dealloc_pd(k->pd));
	ck_ok(ibv_close_device(k->ctx));
}

static struct ibv_qp_init_attr qp_of(const struct kit *k, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){ .send_cq = k->cq,
					  .recv_cq = k->cq,
					  .cap = { 1, 1, 1, 1, 0 },
					  .qp_type = type };
}

static struct ibv_qp *create_qp_ex(const struct kit *k, uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = k->cq,
		.recv_cq = k->cq,
		.cap = { 1, 1, 1, 1, 0 },
		.pd = k->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(k->ctx, &init);
}

/* Create a QP that the device accepts, and destroy it. */
static void accept_qp(const struct kit *k, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = ibv_create_qp(k->pd, init);

	ck_nonnull(qp);
	ck_ok(ibv_destroy_qp(qp));
}

static void expect_file(const char *name, const char *text)
{
	char path[256], line[128] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/" DEVICE "/%s",
		 name);
	f = fopen(path, "r");
	ck_nonnull(f);
	ck_nonnull(fgets(line, sizeof(line), f));
	fclose(f);
	ck_assert_str_eq(line, text);
}

/* Attributes, as ibv_query_device_ex, ibv_query_port and sysfs show them. */
START_TEST(attributes)
{
	struct kit k = kit_open("attributes",
				"fw_ver 28.39.1002\nboard_id MT_0000000838\n"
				"vendor_id 0x2c9\nvendor_part_id 4129\n"
				"hw_ver 7\nmax_qp 100000\nmax_sge 30\n"
				"max_mr_size 0x200000000000\n"
				"page_size_cap 0x40201000\n"
				"device_cap_flags 0xffffefff\n"
				"access LOCAL_WRITE\nsend_ops SEND\n"
				"active_width 16\nactive_speed 128\n"
				"active_mtu 1024\nlocal_ca_ack_delay 16\n"
				"features MCAST\n");
	struct ibv_device_attr_ex a;
	struct ibv_port_attr p;

	ck_ok(ibv_query_device_ex(k.ctx, NULL, &a));
	ck_assert_str_eq(a.orig_attr.fw_ver, "28.39.1002");
	ck_assert_uint_eq(a.orig_attr.vendor_id, 0x2c9);
	ck_assert_uint_eq(a.orig_attr.vendor_part_id, 4129);
	ck_assert_uint_eq(a.orig_attr.hw_ver, 7);
	ck_assert_int_lt(a.orig_attr.max_qp, 100000); /* that of urxe */
	ck_assert_int_eq(a.orig_attr.max_sge, 30);
	ck_assert_uint_eq(a.orig_attr.max_mr_size, 0x200000000000);
	ck_assert_uint_eq(a.orig_attr.page_size_cap, 0x40201000);
	/* masked by the profile, and no flags of features that are absent */
	ck_assert(a.orig_attr.device_cap_flags & IBV_DEVICE_SYS_IMAGE_GUID);
	ck_assert(!(a.orig_attr.device_cap_flags &
		    (IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
		     IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW |
		     IBV_DEVICE_MEM_WINDOW_TYPE_2B)));
	ck_assert_uint_eq(a.device_cap_flags_ex, a.orig_attr.device_cap_flags);
	ck_assert_uint_eq(a.odp_caps.general_caps, 0);
	ck_assert_uint_eq(a.odp_caps.per_transport_caps.rc_odp_caps, 0);
	ck_assert_uint_eq(a.hca_core_clock, 0);
	ck_assert_uint_eq(a.orig_attr.local_ca_ack_delay, 16);
	ck_assert_int_eq(a.orig_attr.max_srq, 0);
	ck_assert_int_eq(a.orig_attr.max_mw, 0);
	ck_assert_int_eq(a.orig_attr.atomic_cap, IBV_ATOMIC_NONE);
	ck_assert_uint_eq(a.max_dm_size, 0);
	ck_assert_uint_eq(a.completion_timestamp_mask, 0);
	ck_assert_uint_eq(a.cq_mod_caps.max_cq_count, 0);
	ck_ok(ibv_query_port(k.ctx, 1, &p));
	ck_assert_int_eq(p.active_mtu, IBV_MTU_1024);
	ck_assert_int_eq(p.max_mtu, IBV_MTU_4096);
	ck_assert_uint_eq(p.active_width, 16);
	ck_assert_uint_eq(p.active_speed, 128);
	expect_file("fw_ver", "28.39.1002\n");
	expect_file("board_id", "MT_0000000838\n");
	expect_file("hw_rev", "7\n");
	expect_file("ports/1/rate", "200 Gb/sec (2X NDR)\n");
	/* drivers of that vendor must not select the device */
	expect_file("device/vendor", "0x7278\n");
	kit_close(&k);
}
END_TEST

/* Limits of ibv_create_qp, with the errno values of the profile. */
START_TEST(qp_limits)
{
	struct kit k = kit_open("qp",
				"max_qp_wr 100 ENOMEM\nmax_sge 4\n"
				"max_recv_sge 2\nmax_inline_rc 64 ENOSPC\n"
				"max_inline_ud 32\nmax_qp 2 EPERM\n");
	struct ibv_qp_init_attr init = qp_of(&k, IBV_QPT_RC);
	struct ibv_qp *qp[3];

	init.cap = (struct ibv_qp_cap){ 100, 100, 4, 2, 64 };
	accept_qp(&k, &init);
	ck_assert_uint_eq(init.cap.max_inline_data, 64);
	init.cap.max_inline_data = 65;
	ck_errno(ibv_create_qp(k.pd, &init), ENOSPC);
	init.cap = (struct ibv_qp_cap){ 101, 1, 1, 1, 0 };
	ck_errno(ibv_create_qp(k.pd, &init), ENOMEM);
	init.cap = (struct ibv_qp_cap){ 1, 101, 1, 1, 0 };
	ck_errno(ibv_create_qp(k.pd, &init), ENOMEM);
	init.cap = (struct ibv_qp_cap){ 1, 1, 5, 1, 0 };
	ck_errno(ibv_create_qp(k.pd, &init), EINVAL);
	init.cap = (struct ibv_qp_cap){ 1, 1, 1, 3, 0 };
	ck_errno(ibv_create_qp(k.pd, &init), EINVAL);
	init = qp_of(&k, IBV_QPT_UD);
	init.cap.max_inline_data = 33;
	ck_errno(ibv_create_qp(k.pd, &init), EINVAL);
	/* no inline data beyond the limit, although the SGEs have room */
	init.cap = (struct ibv_qp_cap){ 1, 1, 4, 1, 0 };
	accept_qp(&k, &init);
	ck_assert_uint_le(init.cap.max_inline_data, 32);
	/* the number of QPs */
	init = qp_of(&k, IBV_QPT_RC);
	qp[0] = ibv_create_qp(k.pd, &init);
	qp[1] = ibv_create_qp(k.pd, &init);
	ck_nonnull(qp[0]);
	ck_nonnull(qp[1]);
	ck_errno(ibv_create_qp(k.pd, &init), EPERM);
	ck_ok(ibv_destroy_qp(qp[0]));
	qp[2] = ibv_create_qp(k.pd, &init);
	ck_nonnull(qp[2]);
	ck_ok(ibv_destroy_qp(qp[1]));
	ck_ok(ibv_destroy_qp(qp[2]));
	kit_close(&k);
}
END_TEST

/* max_inline_data of each QP type. */
START_TEST(inline_limits)
{
	struct kit k = kit_open("inline",
				"max_inline_rc 10\nmax_inline_uc 20\n"
				"max_inline_ud 30\nmax_inline_xrc 40\n");
	static const struct {
		enum ibv_qp_type type;
		uint32_t most;
	} types[] = { { IBV_QPT_RC, 10 },
		      { IBV_QPT_UC, 20 },
		      { IBV_QPT_UD, 30 },
		      { IBV_QPT_XRC_SEND, 40 } };
	struct ibv_qp_init_attr init;
	unsigned int i;

	for (i = 0; i < sizeof(types) / sizeof(*types); i++) {
		init = qp_of(&k, types[i].type);
		init.cap.max_inline_data = types[i].most;
		accept_qp(&k, &init);
		init = qp_of(&k, types[i].type);
		init.cap.max_inline_data = types[i].most + 1;
		ck_errno(ibv_create_qp(k.pd, &init), EINVAL);
	}
	kit_close(&k);
}
END_TEST

/* ibv_modify_srq with max_wr beyond the limit of 10: its result. */
static int more_wrs(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };
	struct ibv_srq_attr change = { .max_wr = 10 };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	int ret;

	ck_nonnull(srq);
	ck_ok(ibv_modify_srq(srq, &change, IBV_SRQ_MAX_WR));
	change.max_wr = 11;
	ret = ibv_modify_srq(srq, &change, IBV_SRQ_MAX_WR);
	ck_ok(ibv_destroy_srq(srq));
	return ret;
}

/* The device has one memory window and one AH. */
static void one_mw_and_ah(const struct kit *k)
{
	struct ibv_mw *mw = ibv_alloc_mw(k->pd, IBV_MW_TYPE_2);
	struct ibv_ah_attr av = { .port_num = 1, .is_global = 1 };
	struct ibv_ah *ah;

	ck_nonnull(mw);
	ck_errno(ibv_alloc_mw(k->pd, IBV_MW_TYPE_2), ENOMEM);
	ck_ok(ibv_dealloc_mw(mw));
	ck_ok(ibv_query_gid(k->ctx, 1, 1, &av.grh.dgid));
	av.grh.sgid_index = 1;
	ah = ibv_create_ah(k->pd, &av);
	ck_nonnull(ah);
	ck_errno(ibv_create_ah(k->pd, &av), ENOMEM);
	ck_ok(ibv_destroy_ah(ah));
}

/* Limits of other objects. */
START_TEST(object_limits)
{
	struct kit k = kit_open("objects",
				"max_cqe 100 ENOSPC\nmax_cq 2\nmax_pd 2\n"
				"max_srq 1\nmax_srq_wr 10 ENOSPC\n"
				"max_srq_sge 3\nmax_mw 1\nmax_ah 1\n"
				"max_mr_size 65536\nmax_mr 1 ENOSPC\n"
				"comp_vectors 2\n");
	struct ibv_srq_init_attr srq = { .attr = { 10, 3, 0 } };
	static char buf[1 << 17];
	struct ibv_srq *one;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_pd *pd;

	ck_assert_int_eq(k.ctx->num_comp_vectors, 2);
	ck_errno(ibv_create_cq(k.ctx, 4, NULL, NULL, 2), EINVAL);
	ck_errno(ibv_create_cq(k.ctx, 101, NULL, NULL, 0), ENOSPC);
	cq = ibv_create_cq(k.ctx, 100, NULL, NULL, 1);
	ck_nonnull(cq);
	ck_assert_int_eq(cq->cqe, 100);
	ck_assert_int_eq(ibv_resize_cq(cq, 101), ENOSPC);
	ck_errno(ibv_create_cq(k.ctx, 4, NULL, NULL, 0), ENOMEM);
	ck_ok(ibv_destroy_cq(cq));
	pd = ibv_alloc_pd(k.ctx);
	ck_nonnull(pd);
	ck_errno(ibv_alloc_pd(k.ctx), ENOMEM);
	ck_ok(ibv_dealloc_pd(pd));
	one = ibv_create_srq(k.pd, &srq);
	ck_nonnull(one);
	ck_errno(ibv_create_srq(k.pd, &srq), ENOMEM);
	ck_ok(ibv_destroy_srq(one));
	ck_assert_int_eq(more_wrs(k.pd), ENOSPC);
	srq.attr.max_wr = 11;
	ck_errno(ibv_create_srq(k.pd, &srq), ENOSPC);
	srq.attr.max_wr = 1;
	srq.attr.max_sge = 4;
	ck_errno(ibv_create_srq(k.pd, &srq), EINVAL);
	ck_errno(ibv_reg_mr(k.pd, buf, 65537, 0), EINVAL);
	mr = ibv_reg_mr(k.pd, buf, 65536, 0);
	ck_nonnull(mr);
	ck_errno(ibv_reg_mr(k.pd, buf, 64, 0), ENOSPC);
	ck_ok(ibv_dereg_mr(mr));
	one_mw_and_ah(&k);
	kit_close(&k);
}
END_TEST

/* Device memory: the total of a device, in units. */
START_TEST(device_memory)
{
	struct kit k = kit_open("dm", "max_dm_size 8192\ndm_unit 64\n");
	struct ibv_alloc_dm_attr attr = { .length = 8193 };
	struct ibv_context *other = open_device();
	struct ibv_device_attr_ex a;
	struct ibv_dm *dm[2];

	ck_ok(ibv_query_device_ex(k.ctx, NULL, &a));
	ck_assert_uint_eq(a.max_dm_size, 8192);
	ck_errno(ibv_alloc_dm(k.ctx, &attr), ENOMEM);
	attr.length = 8192 - 64 + 1; /* 8192 in units */
	dm[0] = ibv_alloc_dm(other, &attr);
	ck_nonnull(dm[0]);
	attr.length = 1;
	ck_errno(ibv_alloc_dm(k.ctx, &attr), ENOMEM);
	ck_ok(ibv_free_dm(dm[0]));
	dm[1] = ibv_alloc_dm(k.ctx, &attr);
	ck_nonnull(dm[1]);
	ck_ok(ibv_free_dm(dm[1]));
	ck_ok(ibv_close_device(other));
	kit_close(&k);
}
END_TEST

/* What a device lacks is refused, as by a provider without that operation. */
START_TEST(absent_verbs)
{
	struct kit k = kit_open("absent", "qp_types RC UD\naccess LOCAL_WRITE\n"
					  "features QP_EX\nsend_ops SEND\n");
	struct ibv_qp_init_attr uc = qp_of(&k, IBV_QPT_UC);
	struct ibv_srq_init_attr srq = { .attr = { 1, 1, 0 } };
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1
	};
	struct ibv_alloc_dm_attr dm = { .length = 64 };
	struct ibv_cq_init_attr_ex cq = { .cqe = 1 };
	struct ibv_modify_cq_attr moderate = { 0 };
	struct ibv_td_init_attr td = { 0 };
	static char buf[64];
	struct ibv_qp *qp;

	ck_errno(ibv_create_qp(k.pd, &uc), EOPNOTSUPP);
	ck_errno(ibv_create_srq(k.pd, &srq), EOPNOTSUPP);
	ck_errno(ibv_open_xrcd(k.ctx, &xrcd), EOPNOTSUPP);
	ck_errno(ibv_alloc_mw(k.pd, IBV_MW_TYPE_2), EOPNOTSUPP);
	ck_errno(ibv_alloc_dm(k.ctx, &dm), EOPNOTSUPP);
	ck_errno(ibv_create_cq_ex(k.ctx, &cq), EOPNOTSUPP);
	ck_errno(ibv_alloc_null_mr(k.pd), EOPNOTSUPP);
	ck_errno(ibv_alloc_td(k.ctx, &td), EOPNOTSUPP);
	ck_assert_int_eq(ibv_resize_cq(k.cq, 1), EOPNOTSUPP);
	ck_assert_int_eq(ibv_modify_cq(k.cq, &moderate), EOPNOTSUPP);
	ck_errno(ibv_reg_mr(k.pd, buf, 64,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
		 EOPNOTSUPP);
	ck_errno(create_qp_ex(&k,
			      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ),
		 EOPNOTSUPP);
	qp = create_qp_ex(&k, IBV_QP_EX_WITH_SEND);
	ck_nonnull(qp);
	ck_ok(ibv_destroy_qp(qp));
	kit_close(&k);
}
END_TEST

/* Verbs that need an object of the device. */
START_TEST(absent_operations)
{
	struct kit k = kit_open("operations", "features SRQ\n"
					      "access LOCAL_WRITE ON_DEMAND\n");
	struct ibv_qp_init_attr init = qp_of(&k, IBV_QPT_UD);
	struct ibv_parent_domain_init_attr parent = { .pd = k.pd };
	struct ibv_values_ex clock = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 } };
	static char buf[4096];
	struct ibv_ece ece = { 0 };
	struct ibv_sge sge = { (uintptr_t)buf, sizeof(buf), 0 };
	struct ibv_qp *qp = ibv_create_qp(k.pd, &init);
	struct ibv_mr *mr =
		ibv_reg_mr(k.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	ck_nonnull(qp);
	ck_nonnull(mr);
	sge.lkey = mr->lkey;
	ck_assert_int_ne(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, IBV_ACCESS_LOCAL_WRITE),
			 0);
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_int_eq(
		ibv_advise_mr(k.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
		EOPNOTSUPP);
	ck_errno(ibv_import_pd(k.ctx, k.pd->handle), EOPNOTSUPP);
	ck_errno(ibv_import_mr(k.pd, mr->handle), EOPNOTSUPP);
	ck_errno(ibv_reg_dmabuf_mr(k.pd, 0, 4096, 0, 0, 0), EOPNOTSUPP);
	ck_errno(ibv_alloc_parent_domain(k.ctx, &parent), EOPNOTSUPP);
	ck_assert_int_eq(ibv_attach_mcast(qp, &group, 0), EOPNOTSUPP);
	ck_assert_int_eq(ibv_detach_mcast(qp, &group, 0), EOPNOTSUPP);
	ck_assert_int_eq(ibv_query_rt_values_ex(k.ctx, &clock), EOPNOTSUPP);
	ck_assert_int_eq(ibv_query_ece(qp, &ece), EOPNOTSUPP);
	ck_assert_int_eq(ibv_set_ece(qp, &ece), EOPNOTSUPP);
	ck_errno(create_qp_ex(&k, IBV_QP_EX_WITH_SEND), EOPNOTSUPP);
	/* an implicit MR */
	ck_errno(ibv_reg_mr(k.pd, NULL, SIZE_MAX,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
		 EOPNOTSUPP);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_destroy_qp(qp));
	kit_close(&k);
}
END_TEST

/* Access flags that the device lacks, in the other verbs with such flags. */
START_TEST(access_flags)
{
	struct kit k = kit_open("access", "access LOCAL_WRITE ZERO_BASED\n");
	const unsigned int remote = IBV_ACCESS_LOCAL_WRITE |
				    IBV_ACCESS_REMOTE_WRITE;
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(k.ctx, &attr);
	const int fd = memfd_create("buffer", MFD_CLOEXEC);
	static char buf[4096];
	struct ibv_mr *mr;

	ck_nonnull(dm);
	ck_assert_int_ge(fd, 0);
	ck_ok(ftruncate(fd, 4096));
	ck_errno(ibv_reg_dm_mr(k.pd, dm, 0, 4096,
			       remote | IBV_ACCESS_ZERO_BASED),
		 EOPNOTSUPP);
	ck_errno(ibv_reg_dmabuf_mr(k.pd, 0, 4096, 0, fd, (int)remote),
		 EOPNOTSUPP);
	mr = ibv_reg_mr(k.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	ck_nonnull(mr);
	ck_assert_int_ne(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, (int)remote),
			 0);
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_free_dm(dm));
	close(fd);
	kit_close(&k);
}
END_TEST

/* Windows of one type; an SRQ of fixed size; no completion timestamps. */
START_TEST(absent_parts)
{
	struct kit k = kit_open("parts", "features MW_2 SRQ CQ_EX\n");
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 1, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
	};
	struct ibv_srq_init_attr init = { .attr = { 4, 1, 0 } };
	struct ibv_srq_attr change = { .max_wr = 8, .srq_limit = 2 };
	struct ibv_cq_ex *plain;
	struct ibv_srq *srq;
	struct ibv_mw *mw;

	ck_errno(ibv_alloc_mw(k.pd, IBV_MW_TYPE_1), EOPNOTSUPP);
	mw = ibv_alloc_mw(k.pd, IBV_MW_TYPE_2);
	ck_nonnull(mw);
	ck_ok(ibv_dealloc_mw(mw));
	srq = ibv_create_srq(k.pd, &init);
	ck_nonnull(srq);
	ck_assert_int_eq(ibv_modify_srq(srq, &change, IBV_SRQ_MAX_WR),
			 EOPNOTSUPP);
	ck_ok(ibv_modify_srq(srq, &change, IBV_SRQ_LIMIT));
	ck_ok(ibv_destroy_srq(srq));
	ck_errno(ibv_create_cq_ex(k.ctx, &cq), EOPNOTSUPP);
	cq.wc_flags = 0;
	plain = ibv_create_cq_ex(k.ctx, &cq);
	ck_nonnull(plain);
	ck_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(plain)));
	kit_close(&k);
}
END_TEST

static void modify_opts(struct opts *o)
{
	*o = default_opts();
	o->mtu = IBV_MTU_1024;
	o->max_rd_atomic = o->max_dest_rd_atomic = 4;
}

/* ibv_modify_qp: depths of READs, path MTU, and transitions. */
START_TEST(modify_limits)
{
	struct opts o, bad;
	struct addr peer;
	struct ibv_qp_attr attr;
	struct node n;

	use_profile("modify", "max_qp_rd_atom 4\nmax_qp_init_rd_atom 4 ENOMEM\n"
			      "max_mtu 1024\nactive_mtu 1024\n"
			      "features SRQ\n");
	modify_opts(&o);
	node_open(&n, NULL, MEM_HEAP, &o);
	peer = node_addr(&n);
	qp_to_init(n.qp, &o);
	bad = o;
	bad.max_dest_rd_atomic = 5;
	ck_assert_int_eq(
		ibv_modify_qp(n.qp, &attr, attr_rtr(&attr, &bad, &peer)),
		EINVAL);
	bad = o;
	bad.mtu = IBV_MTU_2048;
	ck_assert_int_eq(
		ibv_modify_qp(n.qp, &attr, attr_rtr(&attr, &bad, &peer)),
		EINVAL);
	qp_to_rtr(n.qp, &o, &peer);
	bad = o;
	bad.max_rd_atomic = 5;
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, attr_rts(&attr, &bad)),
			 ENOMEM);
	qp_to_rts(n.qp, &o);
	ck_assert_int_eq(qp_to(n.qp, IBV_QPS_SQD), EINVAL);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_RTS);
	node_close(&n);
}
END_TEST

/* The quirk of irdma: 0 is the limit of the device. */
START_TEST(rd_atomic_0)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct opts o;
	struct duo d;

	use_profile("rd_atomic", "max_qp_rd_atom 7\nmax_qp_init_rd_atom 5\n"
				 "quirks RD_ATOMIC_0_IS_MAX\n");
	o = default_opts();
	o.max_rd_atomic = o.max_dest_rd_atomic = 0;
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_query_qp(d.a.qp, &attr, IBV_QP_STATE, &init));
	ck_assert_uint_eq(attr.max_rd_atomic, 5);
	ck_assert_uint_eq(attr.max_dest_rd_atomic, 7);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_READ);
	duo_close(&d);
}
END_TEST

static void post_absent(struct duo *d)
{
	ck_assert_int_eq(post(d, IBV_WR_RDMA_READ, 1, 0, 64, 0, 0), EINVAL);
	ck_assert_int_eq(post(d, IBV_WR_SEND_WITH_IMM, 1, 0, 64, 0, 0), EINVAL);
	ck_assert_int_eq(
		post_atomic(d, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 1, 0),
		EINVAL);
}

/* Opcodes that the device lacks, before and after other WRs. */
START_TEST(absent_opcodes)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	use_profile("opcodes", "send_ops SEND RDMA_WRITE\n");
	duo_open(&d, (enum where)_i, MEM_HEAP, MEM_HEAP, &o);
	post_absent(&d);
	for (i = 0; i < 3; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 64, 0, 0));
		expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
		b_recv(&d, 3, 0, 64);
		ck_ok(post(&d, IBV_WR_SEND, 3, 0, 64, 0, 0));
		expect_ok(d.a.scq, 3, IBV_WC_SEND);
		b_wait_recv(&d);
	}
	post_absent(&d);
	duo_close(&d);
}
END_TEST

/* A message that is longer than max_msg_sz, first or after others. */
START_TEST(longest_message)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE,
						  IBV_WR_SEND,
						  IBV_WR_RDMA_READ };
	static const uint32_t sizes[] = { 64, 16384 };
	const uint32_t most = sizes[_i % 2];
	struct opts o = default_opts();
	char text[64];
	struct duo d;
	int i;

	snprintf(text, sizeof(text), "max_msg_sz %u\n", most);
	use_profile("message", text);
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 3; i++) {
		if (ops[_i / 2] == IBV_WR_SEND)
			b_recv(&d, 1, 0, most);
		ck_ok(post(&d, ops[_i / 2], 1, 0, most, 0, 0));
		expect(d.a.scq, 1, IBV_WC_SUCCESS);
		if (ops[_i / 2] == IBV_WR_SEND)
			b_wait_recv(&d);
	}
	ck_ok(post(&d, ops[_i / 2], 2, 0, most + 1, 0, 0));
	expect(d.a.scq, 2, IBV_WC_LOC_LEN_ERR);
	duo_close(&d);
}
END_TEST

/* SGEs of a READ. */
START_TEST(read_sges)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge[3];
	struct duo d;
	int i;

	use_profile("read", "max_sge_rd 2\n");
	o.cap.max_send_sge = 3;
	o.built = _i;
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 3; i++)
		sge[i] = node_sge(&d.a, 64 * (size_t)i, 64);
	wr = rdma_wr(&d, IBV_WR_RDMA_READ, 1, sge, 3, 0);
	ck_assert_int_eq(post_list(&d.a, &wr), EINVAL);
	wr.num_sge = 2;
	wr.send_flags = IBV_SEND_SIGNALED;
	ck_ok(post_list(&d.a, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_READ);
	duo_close(&d);
}
END_TEST

/* A datagram is at most as long as the active MTU. */
START_TEST(datagram_mtu)
{
	struct opts o = default_opts();
	struct ibv_ah *ah;
	struct duo d;

	use_profile("datagram", "active_mtu 512\n");
	duo_open_unconnected(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UD);
	ah = make_ah(&d.a, &d.at_b.gid, 0);
	b_recv(&d, 1, 0, GRH + 512);
	ck_ok(post_ud(&d.a, 1, 0, 512, ah, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	b_wait_recv(&d);
	ck_ok(post_ud(&d.a, 2, 0, 513, ah, d.at_b.qpn, QKEY));
	expect(d.a.scq, 2, IBV_WC_LOC_LEN_ERR);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/* A device of RoCE v2 only has one entry for each address. */
START_TEST(gid_order)
{
	struct ibv_gid_entry e[2];
	struct opts o = default_opts();
	struct ibv_port_attr p;
	struct ibv_ah *ah;
	union ibv_gid gid;
	struct duo d;
	struct ibv_ah_attr av = { .port_num = 1, .is_global = 1 };

	use_profile("gids", "gid_types ROCE_V2\ngid_tbl_len 2\n");
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_query_port(d.a.ctx, 1, &p));
	ck_assert_int_eq(p.gid_tbl_len, 2);
	ck_assert_int_eq(ibv_query_gid_table(d.a.ctx, e, 2, 0), 2);
	ck_assert_uint_eq(e[0].gid_type, IBV_GID_TYPE_ROCE_V2);
	ck_assert_uint_eq(e[1].gid_type, IBV_GID_TYPE_ROCE_V2);
	ck_assert_uint_eq(e[0].gid.raw[0], 0xfe);
	ck_assert_mem_ne(e[0].gid.raw, e[1].gid.raw, 16);
	ck_ok(ibv_query_gid(d.a.ctx, 1, 1, &gid));
	ck_assert_mem_eq(gid.raw, e[1].gid.raw, 16);
	ck_assert_int_ne(ibv_query_gid(d.a.ctx, 1, 2, &gid), 0);
	expect_file("ports/1/gid_attrs/types/0", "RoCE v2\n");
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	av.grh.dgid = e[1].gid;
	av.grh.sgid_index = 1;
	ah = ibv_create_ah(d.a.pd, &av);
	ck_nonnull(ah);
	ck_ok(ibv_destroy_ah(ah));
	/* entries beyond the table, as far as sgid_index can name them */
	av.grh.sgid_index = 2;
	ck_errno(ibv_create_ah(d.a.pd, &av), EINVAL);
	av.grh.sgid_index = 255;
	ck_errno(ibv_create_ah(d.a.pd, &av), EINVAL);
	duo_close(&d);
}
END_TEST

/* RLIMIT_MEMLOCK is enforced by the profile, without URXE_MEMLOCK. */
START_TEST(memlock)
{
	struct kit k = kit_open("memlock", "quirks MEMLOCK\n");
	static char buf[1 << 17];
	struct ibv_mr *mr;

	limit_memlock(65536 + 4096);
	ck_errno(ibv_reg_mr(k.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE),
		 ENOMEM);
	mr = ibv_reg_mr(k.pd, buf, 65536, IBV_ACCESS_LOCAL_WRITE);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	kit_close(&k);
}
END_TEST

/* Each device has its own profile; the last one of the list is repeated. */
START_TEST(list)
{
	struct ibv_device_attr a;
	struct ibv_context *ctx;
	const int sge[3] = { 5, 6, 6 };
	char names[1100], dev[8];
	int k;

	use_profile("first", "max_sge 5\n");
	snprintf(names, sizeof(names), "%s,", getenv("URXE_PROFILE"));
	use_profile("second", "max_sge 6\n");
	strcat(names, getenv("URXE_PROFILE"));
	setenv("URXE_PROFILE", names, 1);
	setenv("URXE_DEVICES", "3", 1);
	for (k = 0; k < 3; k++) {
		snprintf(dev, sizeof(dev), "urxe%d", k);
		device = dev;
		ctx = open_device();
		ck_ok(ibv_query_device(ctx, &a));
		ck_assert_int_eq(a.max_sge, sge[k]);
		ck_ok(ibv_close_device(ctx));
	}
}
END_TEST

int main(void)
{
	Suite *s = suite("profile");

	add(s, attributes);
	add(s, qp_limits);
	add(s, inline_limits);
	add(s, object_limits);
	add(s, device_memory);
	add(s, absent_verbs);
	add(s, absent_operations);
	add(s, access_flags);
	add(s, absent_parts);
	add(s, modify_limits);
	add(s, rd_atomic_0);
	add_loop(s, absent_opcodes, WHERE_COUNT);
	add_loop(s, longest_message, 6);
	add_loop(s, read_sges, 2);
	add(s, datagram_mtu);
	add(s, gid_order);
	add(s, memlock);
	add(s, list);
	return run(s);
}
