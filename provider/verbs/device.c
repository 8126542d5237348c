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
#include "verbs.h"

/* bits of device_cap_flags_ex that verbs.h does not define */
#define CAP_FLUSH_GLOBAL (1ull << 38)
#define CAP_FLUSH_PERSISTENT (1ull << 39)
#define CAP_ATOMIC_WRITE (1ull << 40)

/* bits of enum ibv_odp_transport_cap_bits that older headers do not define */
#define ODP_FLUSH (1u << 6)
#define ODP_ATOMIC_WRITE (1u << 7)

static void device_fill_odp(struct ibv_device_attr_ex *attr)
{
	const uint32_t datagram = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				  IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t unreliable = datagram | IBV_ODP_SUPPORT_WRITE;
	const uint32_t reliable = unreliable | IBV_ODP_SUPPORT_READ |
				  IBV_ODP_SUPPORT_ATOMIC | ODP_FLUSH |
				  ODP_ATOMIC_WRITE;

	attr->odp_caps.general_caps = IBV_ODP_SUPPORT |
				      IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = reliable;
	attr->odp_caps.per_transport_caps.uc_odp_caps = unreliable;
	attr->odp_caps.per_transport_caps.ud_odp_caps = datagram;
	attr->xrc_odp_caps = reliable;
}

static void device_fill_limits(const struct urxe_context *ctx,
			       struct ibv_device_attr *a)
{
	const struct urxe_dev *dev = ctx->fabric->dev;

	a->node_guid = htobe64(ctx->hca->node_guid);
	a->sys_image_guid = a->node_guid;
	a->max_mr_size = UINT64_MAX;
	a->page_size_cap = ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	a->vendor_id = dev->vendor_id;
	a->vendor_part_id = dev->vendor_part_id;
	a->hw_ver = dev->hw_ver;
	a->max_qp = fabric_obj_limit(URXE_OBJ_QP);
	a->max_qp_wr = URXE_MAX_QP_WR;
	a->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN |
			      IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC |
			      IBV_DEVICE_UD_AV_PORT_ENFORCE |
			      IBV_DEVICE_CURR_QP_STATE_MOD |
			      IBV_DEVICE_PORT_ACTIVE_EVENT |
			      IBV_DEVICE_MEM_WINDOW |
			      IBV_DEVICE_MEM_WINDOW_TYPE_2B |
			      IBV_DEVICE_MEM_MGT_EXTENSIONS |
			      IBV_DEVICE_SYS_IMAGE_GUID;
	a->max_sge = URXE_MAX_SGE;
	a->max_sge_rd = URXE_MAX_SGE;
	a->max_cq = fabric_obj_limit(URXE_OBJ_CQ);
	a->max_cqe = URXE_MAX_CQE;
	a->max_mr = fabric_obj_limit(URXE_OBJ_MR);
	a->max_mw = fabric_obj_limit(URXE_OBJ_MW);
	a->max_pd = fabric_obj_limit(URXE_OBJ_PD);
	a->max_ah = fabric_obj_limit(URXE_OBJ_AH);
	a->max_srq = fabric_obj_limit(URXE_OBJ_SRQ);
	a->max_srq_wr = URXE_MAX_SRQ_WR;
	a->max_srq_sge = URXE_MAX_SGE;
	a->max_mcast_grp = URXE_MAX_MCAST_GRP;
	a->max_mcast_qp_attach = URXE_MAX_MCAST_ATTACH;
	a->max_total_mcast_qp_attach = URXE_MAX_MCAST_GRP *
				       URXE_MAX_MCAST_ATTACH;
	a->max_qp_rd_atom = URXE_MAX_RD_ATOM;
	a->max_qp_init_rd_atom = URXE_MAX_RD_ATOM;
	a->max_res_rd_atom = URXE_MAX_RD_ATOM * a->max_qp;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_pkeys = 1;
	a->phys_port_cnt = 1;
	memcpy(a->fw_ver, dev->fw_ver, sizeof(dev->fw_ver));
}

int urxe_query_device_ex(struct ibv_context *ibctx,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size)
{
	const struct urxe_dev *dev = to_uctx(ibctx)->fabric->dev;
	struct ibv_device_attr_ex full;

	if (input && input->comp_mask)
		return EINVAL;
	memset(&full, 0, sizeof(full));
	device_fill_limits(to_uctx(ibctx), &full.orig_attr);
	device_fill_odp(&full);
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags |
				   CAP_FLUSH_GLOBAL | CAP_FLUSH_PERSISTENT |
				   CAP_ATOMIC_WRITE;
	full.max_dm_size = dev->dm_bytes;
	full.phys_port_cnt_ex = 1;
	full.cq_mod_caps.max_cq_count = CQ_MAX_COUNT;
	full.cq_mod_caps.max_cq_period = CQ_MAX_PERIOD;
	full.hca_core_clock = 1000000; /* kHz: timestamps are in ns */
	full.completion_timestamp_mask = UINT64_MAX;
	/* older applications pass a shorter struct */
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

/* 4X HDR, as ibv_query_port and sysfs report */
#define WIDTH_4X 2
#define SPEED_HDR 64
#define LANES 4
#define LANE_SPEED 500 /* units of 100 Mb/s */

int urxe_query_port_speed(struct ibv_context *ctx, uint32_t port,
			  uint64_t *speed)
{
	(void)ctx;
	if (port != 1)
		return EINVAL;
	*speed = LANES * LANE_SPEED;
	return 0;
}

/* Read a violation counter: 16 bits, saturating (IB 14.2.5.6). */
static uint32_t violations(const struct urxe_context *ctx,
			   enum urxe_counter which)
{
	const uint64_t n = counter_read(ctx->fabric->dev, ctx->device, which);

	return n < 0xffff ? (uint32_t)n : 0xffff;
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
	attr->state = state == URXE_PORT_ACTIVE ? IBV_PORT_ACTIVE :
						  IBV_PORT_DOWN;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = IBV_MTU_4096;
	attr->gid_tbl_len = URXE_MAX_GID;
	attr->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	attr->max_msg_sz = URXE_MAX_MSG;
	attr->bad_pkey_cntr = violations(ctx, URXE_CNT_BAD_PKEY);
	attr->qkey_viol_cntr = violations(ctx, URXE_CNT_BAD_QKEY);
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->active_width = WIDTH_4X;
	attr->active_speed = SPEED_HDR;
	attr->phys_state = state == URXE_PORT_ACTIVE ? 5 : 3;
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
