// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queries of the device: attributes, port, speed, clock, and the order of
 * data.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "context.h"
#include "engine/cq/cq_moderate.h"
#include "profile.h"
#include "qp.h"
#include "shared/opcode.h"
#include "verbs.h"

/* bits of device_cap_flags_ex that verbs.h does not define */
#define CAP_FLUSH_GLOBAL (1ull << 38)
#define CAP_FLUSH_PERSISTENT (1ull << 39)
#define CAP_ATOMIC_WRITE (1ull << 40)

/* bits of enum ibv_odp_transport_cap_bits that older headers do not define */
#define ODP_FLUSH (1u << 6)
#define ODP_ATOMIC_WRITE (1u << 7)

/* Operations on on-demand memory that QPs of a type support. */
static uint32_t device_odp(const struct urxe_context *ctx,
			   enum ibv_qp_type type, uint64_t needs)
{
	static const struct {
		uint32_t op;
		uint64_t needs; /* features */
		uint32_t cap;
	} caps[] = {
		{ IBV_WR_SEND, 0, IBV_ODP_SUPPORT_SEND },
		{ IBV_WR_RDMA_WRITE, 0, IBV_ODP_SUPPORT_WRITE },
		{ IBV_WR_RDMA_READ, 0, IBV_ODP_SUPPORT_READ },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD,
		  PROFILE_HAS(ATOMIC) | PROFILE_HAS(ODP_ATOMIC),
		  IBV_ODP_SUPPORT_ATOMIC },
		{ URXE_WR_FLUSH, 0, ODP_FLUSH },
		{ URXE_WR_ATOMIC_WRITE, 0, ODP_ATOMIC_WRITE },
	};
	const uint32_t ops = qp_ops(ctx, type);
	uint32_t all = 0;
	size_t i;

	if (!(profile_limit(ctx, qp_types) & 1ull << type) ||
	    !profile_has(ctx, needs))
		return 0;
	for (i = 0; i < sizeof(caps) / sizeof(*caps); i++)
		if (ops & 1u << caps[i].op && profile_has(ctx, caps[i].needs))
			all |= caps[i].cap;
	if (type == IBV_QPT_UD && !profile_has(ctx, PROFILE_HAS(ODP_UD_RECV)))
		return all;
	all |= IBV_ODP_SUPPORT_RECV;
	if (profile_has(ctx, PROFILE_HAS(SRQ)))
		all |= IBV_ODP_SUPPORT_SRQ_RECV;
	return all;
}

static void device_fill_odp(const struct urxe_context *ctx,
			    struct ibv_device_attr_ex *attr)
{
	struct ibv_odp_caps *odp = &attr->odp_caps;

	if (!(profile_limit(ctx, access) & IBV_ACCESS_ON_DEMAND))
		return;
	odp->general_caps = IBV_ODP_SUPPORT;
	if (profile_has(ctx, PROFILE_HAS(ODP_IMPLICIT)))
		odp->general_caps |= IBV_ODP_SUPPORT_IMPLICIT;
	odp->per_transport_caps.rc_odp_caps = device_odp(ctx, IBV_QPT_RC, 0);
	odp->per_transport_caps.uc_odp_caps =
		device_odp(ctx, IBV_QPT_UC, PROFILE_HAS(ODP_UC));
	odp->per_transport_caps.ud_odp_caps = device_odp(ctx, IBV_QPT_UD, 0);
	attr->xrc_odp_caps =
		device_odp(ctx, IBV_QPT_XRC_SEND, PROFILE_HAS(XRC));
}

/* Flags that urxe and the device have; a feature that it lacks has no flag. */
static uint32_t device_caps(const struct urxe_context *ctx)
{
	static const struct {
		uint64_t feature;
		uint32_t flags;
	} of[] = {
		{ PROFILE_HAS(SRQ) | PROFILE_HAS(SRQ_RESIZE),
		  IBV_DEVICE_SRQ_RESIZE },
		{ PROFILE_HAS(XRC), IBV_DEVICE_XRC },
		{ PROFILE_HAS(MW_1), IBV_DEVICE_MEM_WINDOW },
		{ PROFILE_HAS(MW_2), IBV_DEVICE_MEM_WINDOW_TYPE_2B },
	};
	uint32_t flags =
		IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_UD_AV_PORT_ENFORCE |
		IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
		IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_SYS_IMAGE_GUID;
	size_t i;

	for (i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (profile_has(ctx, of[i].feature))
			flags |= of[i].flags;
	return flags & (uint32_t)profile_limit(ctx, device_cap_flags);
}

static void device_fill_limits(const struct urxe_context *ctx,
			       struct ibv_device_attr *a)
{
	const uint64_t *limit = ctx->profile.value;
	const uint64_t pages = ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);

	a->node_guid = htobe64(ctx->hca->node_guid);
	a->sys_image_guid = a->node_guid;
	a->max_mr_size = limit[PROFILE_max_mr_size];
	a->page_size_cap = pages & limit[PROFILE_page_size_cap];
#define SHOW(name) a->name = (__typeof__(a->name))limit[PROFILE_##name]
	SHOW(vendor_id);
	SHOW(vendor_part_id);
	SHOW(hw_ver);
	SHOW(max_qp);
	SHOW(max_qp_wr);
	SHOW(max_sge);
	SHOW(max_sge_rd);
	SHOW(max_cq);
	SHOW(max_cqe);
	SHOW(max_mr);
	SHOW(max_mw);
	SHOW(max_pd);
	SHOW(max_ah);
	SHOW(max_srq);
	SHOW(max_srq_wr);
	SHOW(max_srq_sge);
	SHOW(max_mcast_grp);
	SHOW(max_mcast_qp_attach);
	SHOW(max_qp_rd_atom);
	SHOW(max_qp_init_rd_atom);
	SHOW(local_ca_ack_delay);
#undef SHOW
	if (!profile_has(ctx, PROFILE_HAS(SRQ)))
		a->max_srq = a->max_srq_wr = a->max_srq_sge = 0;
	if (!profile_has(ctx, PROFILE_HAS(MCAST)))
		a->max_mcast_grp = a->max_mcast_qp_attach = 0;
	if (!(limit[PROFILE_features] &
	      (PROFILE_HAS(MW_1) | PROFILE_HAS(MW_2))))
		a->max_mw = 0;
	a->device_cap_flags = device_caps(ctx);
	a->max_total_mcast_qp_attach =
		a->max_mcast_grp * a->max_mcast_qp_attach;
	a->max_res_rd_atom = a->max_qp_rd_atom * a->max_qp;
	a->atomic_cap = profile_has(ctx, PROFILE_HAS(ATOMIC)) ? IBV_ATOMIC_HCA :
								IBV_ATOMIC_NONE;
	a->max_pkeys = (uint16_t)port_pkeys(ctx->hca);
	a->phys_port_cnt = 1;
	memcpy(a->fw_ver, ctx->profile.fw_ver, sizeof(a->fw_ver));
}

static uint64_t device_dm_size(const struct urxe_context *ctx)
{
	const uint64_t most = profile_limit(ctx, max_dm_size);

	if (!profile_has(ctx, PROFILE_HAS(DM)))
		return 0;
	return most < ctx->fabric->dm_bytes ? most : ctx->fabric->dm_bytes;
}

int urxe_query_device_ex(struct ibv_context *ibctx,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size)
{
	const struct urxe_context *ctx = to_uctx(ibctx);
	const uint64_t ops = profile_limit(ctx, send_ops);
	struct ibv_device_attr_ex full;

	if (input && input->comp_mask)
		return EINVAL;
	memset(&full, 0, sizeof(full));
	device_fill_limits(ctx, &full.orig_attr);
	device_fill_odp(ctx, &full);
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
	if (ops & 1ull << URXE_WR_FLUSH)
		full.device_cap_flags_ex |= CAP_FLUSH_GLOBAL |
					    CAP_FLUSH_PERSISTENT;
	if (ops & 1ull << URXE_WR_ATOMIC_WRITE)
		full.device_cap_flags_ex |= CAP_ATOMIC_WRITE;
	full.max_dm_size = device_dm_size(ctx);
	full.phys_port_cnt_ex = 1;
	if (profile_has(ctx, PROFILE_HAS(MODERATE_CQ))) {
		full.cq_mod_caps.max_cq_count = CQ_MAX_COUNT;
		full.cq_mod_caps.max_cq_period = CQ_MAX_PERIOD;
	}
	if (profile_limit(ctx, features) &
	    (PROFILE_HAS(CLOCK) | PROFILE_HAS(CQ_TIMESTAMP)))
		full.hca_core_clock = 1000000; /* kHz: timestamps are in ns */
	if (profile_has(ctx, PROFILE_HAS(CQ_TIMESTAMP)))
		full.completion_timestamp_mask = UINT64_MAX;
	/* older applications pass a shorter struct */
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

int urxe_query_port_speed(struct ibv_context *ctx, uint32_t port,
			  uint64_t *speed)
{
	if (port != 1)
		return EINVAL;
	*speed = hca_rate(to_uctx(ctx)->hca);
	return 0;
}

/* What InfiniBand has in place of Ethernet addresses. */
static void port_fill_subnet(const struct urxe_hca *hca,
			     struct ibv_port_attr *attr)
{
	const struct urxe_subnet *s = &hca->subnet;

	attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
	attr->lid = port_lid(s);
	attr->lmc = port_lmc(s);
	attr->sm_lid = port_sm_lid(s);
	attr->sm_sl = port_sm_sl(s);
	attr->subnet_timeout = SUBNET_TIMEOUT;
}

int urxe_query_port(struct ibv_context *ibctx, uint8_t port,
		    struct ibv_port_attr *attr)
{
	const struct urxe_context *ctx = to_uctx(ibctx);
	uint32_t state;

	if (port != 1)
		return EINVAL;
	state = load_relaxed(&ctx->hca->port_state);
	/*
	 * libibverbs passes a zeroed struct of its own size; set the members
	 * that all releases have
	 */
	attr->state = state <= URXE_PORT_ACTIVE ? state : IBV_PORT_DOWN;
	attr->max_mtu = profile_mtu(profile_limit(ctx, max_mtu));
	attr->active_mtu = profile_mtu(profile_limit(ctx, active_mtu));
	attr->gid_tbl_len = (int)gid_table_len(ctx->hca);
	attr->port_cap_flags = subnet_port_caps(ctx->fabric->dev, ctx->hca);
	attr->max_msg_sz = (uint32_t)profile_limit(ctx, max_msg_sz);
	attr->bad_pkey_cntr = port_violations(ctx->fabric->dev, ctx->device,
					      URXE_CNT_BAD_PKEY);
	attr->qkey_viol_cntr = port_violations(ctx->fabric->dev, ctx->device,
					       URXE_CNT_BAD_QKEY);
	attr->pkey_tbl_len = (uint16_t)port_pkeys(ctx->hca);
	attr->max_vl_num = (uint8_t)profile_limit(ctx, max_vl_num);
	hca_width_speed(ctx->hca, &attr->active_width, &attr->active_speed);
	attr->phys_state = attr->state > IBV_PORT_DOWN ? 5 : 3;
	if (ctx->hca->infiniband) {
		port_fill_subnet(ctx->hca, attr);
		return 0;
	}
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->flags = IBV_QPF_GRH_REQUIRED;
	return 0;
}

/*
 * Return the raw clock, which is the clock of completion timestamps, in ns.
 */
int urxe_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	(void)ctx;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		/* clients read the raw counter from tv_nsec alone */
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)cq_clock();
	}
	return 0;
}

/*
 * Return 0: no order of data is guaranteed, for any operation.
 *
 * In mapped memory the end of a message is written last (engine/copy/transfer.h),
 * which is what programs poll for, but the bytes before it arrive in the
 * order in which memcpy() stores them.  process_vm_writev() guarantees no
 * order.  A small SEND is placed when its completion is polled.  The copy
 * path depends on the MR and not on the QP, so the answer cannot differ
 * between QPs.
 */
int urxe_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
				uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}
