// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Features: each verb is called with real objects. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"

/*
 * Connect @qp to itself, and modify it to RTS.  Return 0 or an errno value.
 */
static int qp_connect(const struct recorder *r, struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.path_mtu = r->port.active_mtu,
		.dest_qp_num = qp->qp_num,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .port_num = PORT, .dlid = r->port.lid },
	};
	int ret;

	if (r->has_gid) {
		a.ah_attr.is_global = 1;
		a.ah_attr.grh.dgid = r->gid.gid;
		a.ah_attr.grh.sgid_index = (uint8_t)r->gid.gid_index;
		a.ah_attr.grh.hop_limit = 1;
	}
	ret = ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS);
	if (ret)
		return verb_error(ret);
	a.qp_state = IBV_QPS_RTR;
	a.max_dest_rd_atomic = 1;
	ret = ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	if (ret)
		return verb_error(ret);
	a.qp_state = IBV_QPS_RTS;
	a.max_rd_atomic = 1;
	return verb_error(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC));
}

static int try_sqd(const struct recorder *r)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD };
	struct ibv_qp *qp = qp_create(r, IBV_QPT_RC, &least_cap, 0);
	int err;

	if (!qp) {
		note("SQD is listed, but was not tried: there is no RC QP");
		return 0;
	}
	err = qp_connect(r, qp);
	if (err) {
		note("SQD is listed, but was not tried: a QP cannot be connected to itself: %s",
		     strerror(err));
		err = 0;
	} else {
		err = verb_error(ibv_modify_qp(qp, &a, IBV_QP_STATE));
	}
	ibv_destroy_qp(qp);
	return err;
}

static int try_srq(const struct recorder *r)
{
	return srq_try(r, 1, 1);
}

static int try_srq_resize(const struct recorder *r)
{
	struct ibv_srq_attr attr = { .max_wr = 32 };
	struct ibv_srq *srq = srq_create(r, 16, 1);
	int err;

	if (!srq)
		return last_error();
	err = verb_error(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	ibv_destroy_srq(srq);
	return err;
}

static int try_xrc(const struct recorder *r)
{
	return r->no_xrcd;
}

static int mw_try(const struct recorder *r, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, type);

	return mw ? ibv_dealloc_mw(mw) : last_error();
}

static int try_mw_1(const struct recorder *r)
{
	return mw_try(r, IBV_MW_TYPE_1);
}

static int try_mw_2(const struct recorder *r)
{
	return mw_try(r, IBV_MW_TYPE_2);
}

static int try_dm(const struct recorder *r)
{
	return r->attr.max_dm_size ? dm_try(r, 64) : EOPNOTSUPP;
}

static int try_dmabuf(const struct recorder *r)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(r->pd, 0, MEMORY, 0, r->fd,
					      IBV_ACCESS_LOCAL_WRITE);
	int err = mr ? 0 : last_error();

	if (mr)
		ibv_dereg_mr(mr);
	/* a memfd is not a dma-buf: the verb exists if it is refused as such */
	return err == EOPNOTSUPP || err == ENOSYS ? err : 0;
}

static int try_odp_implicit(const struct recorder *r)
{
	return mr_try(r, NULL, SIZE_MAX,
		      IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
}

static int try_null_mr(const struct recorder *r)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(r->pd);

	return mr ? ibv_dereg_mr(mr) : last_error();
}

static int try_rereg_mr(const struct recorder *r)
{
	struct ibv_mr *mr =
		ibv_reg_mr(r->pd, r->memory, MEMORY, IBV_ACCESS_LOCAL_WRITE);
	int err;

	if (!mr)
		return last_error();
	errno = 0;
	err = verb_error(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
	ibv_dereg_mr(mr);
	return err;
}

/* Prefetching needs an on-demand MR. */
static int try_advise_mr(const struct recorder *r)
{
	const bool odp = r->p.value[PROFILE_access] & IBV_ACCESS_ON_DEMAND;
	struct ibv_mr *mr = ibv_reg_mr(
		r->pd, r->memory, MEMORY,
		IBV_ACCESS_LOCAL_WRITE | (odp ? IBV_ACCESS_ON_DEMAND : 0));
	struct ibv_sge sge = {
		.addr = (uintptr_t)r->memory,
		.length = MEMORY,
	};
	int err;

	if (!mr)
		return last_error();
	sge.lkey = mr->lkey;
	err = verb_error(ibv_advise_mr(r->pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
				       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	ibv_dereg_mr(mr);
	return err == EINVAL && !odp ? 0 : err;
}

static int try_import(const struct recorder *r)
{
	struct ibv_pd *pd = ibv_import_pd(r->ctx, r->pd->handle);

	if (!pd)
		return last_error();
	ibv_unimport_pd(pd);
	return 0;
}

static int cq_ex_try(const struct recorder *r, uint64_t flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .wc_flags = flags };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(r->ctx, &attr);

	return cq ? ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) : last_error();
}

static int try_cq_ex(const struct recorder *r)
{
	return cq_ex_try(r, 0);
}

static int try_cq_timestamp(const struct recorder *r)
{
	return cq_ex_try(r, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
}

static int try_resize_cq(const struct recorder *r)
{
	struct ibv_cq *cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0);
	int err;

	if (!cq)
		return last_error();
	err = verb_error(ibv_resize_cq(cq, 64));
	ibv_destroy_cq(cq);
	return err;
}

static int try_moderate_cq(const struct recorder *r)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 2, .cq_period = 2 },
	};
	struct ibv_cq *cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0);
	int err;

	if (!cq)
		return last_error();
	err = verb_error(ibv_modify_cq(cq, &attr));
	ibv_destroy_cq(cq);
	return err;
}

static int try_qp_ex(const struct recorder *r)
{
	return qp_try(r, r->type, &least_cap, IBV_QP_EX_WITH_SEND);
}

static int try_parent_domain(const struct recorder *r)
{
	struct ibv_parent_domain_init_attr attr = { .pd = r->pd };
	struct ibv_pd *pd = ibv_alloc_parent_domain(r->ctx, &attr);

	return pd ? ibv_dealloc_pd(pd) : last_error();
}

static int try_mcast(const struct recorder *r)
{
	const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 } };
	struct ibv_qp *qp = qp_create(r, IBV_QPT_UD, &least_cap, 0);
	const uint16_t lid = 0xc000; /* InfiniBand needs one */
	int err;

	if (!qp)
		return last_error();
	err = verb_error(ibv_attach_mcast(qp, &group, lid));
	if (!err)
		ibv_detach_mcast(qp, &group, lid);
	ibv_destroy_qp(qp);
	return err;
}

static int try_atomic(const struct recorder *r)
{
	return r->attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE ? EOPNOTSUPP : 0;
}

static int try_clock(const struct recorder *r)
{
	struct ibv_values_ex values = { .comp_mask =
						IBV_VALUES_MASK_RAW_CLOCK };

	return verb_error(ibv_query_rt_values_ex(r->ctx, &values));
}

static int try_ece(const struct recorder *r)
{
	struct ibv_qp *qp = qp_create(r, IBV_QPT_RC, &least_cap, 0);
	struct ibv_ece ece;
	int err;

	if (!qp)
		return last_error();
	err = verb_error(ibv_query_ece(qp, &ece));
	ibv_destroy_qp(qp);
	return err;
}

/*
 * COMP_CNTR is not tried: most headers of libibverbs do not declare its verbs.
 * ATOMIC, MW_1, MW_2 and QP_EX must be found before the operations.
 */
static const struct {
	uint64_t feature;
	const char *name;
	int (*call)(const struct recorder *r);
} features[] = {
#define FEATURE(name, call)                    \
	{                                      \
		PROFILE_HAS(name), #name, call \
	}
	FEATURE(SQD, try_sqd),
	FEATURE(SRQ, try_srq),
	FEATURE(SRQ_RESIZE, try_srq_resize),
	FEATURE(XRC, try_xrc),
	FEATURE(MW_1, try_mw_1),
	FEATURE(MW_2, try_mw_2),
	FEATURE(DM, try_dm),
	FEATURE(DMABUF, try_dmabuf),
	FEATURE(ODP_IMPLICIT, try_odp_implicit),
	FEATURE(NULL_MR, try_null_mr),
	FEATURE(REREG_MR, try_rereg_mr),
	FEATURE(ADVISE_MR, try_advise_mr),
	FEATURE(IMPORT, try_import),
	FEATURE(CQ_EX, try_cq_ex),
	FEATURE(CQ_TIMESTAMP, try_cq_timestamp),
	FEATURE(RESIZE_CQ, try_resize_cq),
	FEATURE(MODERATE_CQ, try_moderate_cq),
	FEATURE(QP_EX, try_qp_ex),
	FEATURE(PARENT_DOMAIN, try_parent_domain),
	FEATURE(MCAST, try_mcast),
	FEATURE(ATOMIC, try_atomic),
	FEATURE(CLOCK, try_clock),
	FEATURE(ECE, try_ece),
#undef FEATURE
};

/*
 * Return whether an errno value means that the device lacks a feature.  The
 * calls are valid, so that EINVAL does: drivers refuse, for example, to resize
 * an SRQ in that way.
 */
static bool is_missing(int err)
{
	return err == EOPNOTSUPP || err == ENOSYS || err == EPROTONOSUPPORT ||
	       err == EINVAL;
}

void features_find(struct recorder *r)
{
	size_t i;
	int err;

	for (i = 0; i < sizeof(features) / sizeof(*features); i++) {
		errno = 0;
		err = features[i].call(r);
		if (is_missing(err))
			continue;
		r->p.value[PROFILE_features] |= features[i].feature;
		if (err)
			note("%s is listed, but failed: %s", features[i].name,
			     strerror(err));
	}
}
