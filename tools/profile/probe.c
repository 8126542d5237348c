// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Objects that a device is probed with. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "record.h"

void note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs(PROGRAM ": ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

int last_error(void)
{
	return errno ? errno : EINVAL;
}

int verb_error(int ret)
{
	return ret < 0 ? last_error() : ret;
}

void refusal_add(struct recorder *r, enum profile_key key, int err)
{
	int *known = &r->refused[key];

	*known = !*known || *known == err ? err : -1;
}

bool has_type(const struct recorder *r, enum ibv_qp_type type)
{
	return r->p.value[PROFILE_qp_types] & 1ull << type;
}

/* ------------------------------------------------------------- objects */

const struct ibv_qp_cap least_cap = {
	.max_send_wr = 1,
	.max_recv_wr = 1,
	.max_send_sge = 1,
	.max_recv_sge = 1,
};

struct ibv_qp *qp_create(const struct recorder *r, enum ibv_qp_type type,
			 const struct ibv_qp_cap *cap, uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = r->pd,
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = *cap,
	};

	if (type == IBV_QPT_XRC_SEND) {
		init.recv_cq = NULL;
		init.cap.max_recv_wr = 0;
		init.cap.max_recv_sge = 0;
	} else if (type == IBV_QPT_XRC_RECV) {
		init = (struct ibv_qp_init_attr_ex){
			.qp_type = type,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD,
			.xrcd = r->xrcd,
		};
	}
	if (ops) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = ops;
	}
	errno = 0;
	return ibv_create_qp_ex(r->ctx, &init);
}

int qp_try(const struct recorder *r, enum ibv_qp_type type,
	   const struct ibv_qp_cap *cap, uint64_t ops)
{
	struct ibv_qp *qp = qp_create(r, type, cap, ops);

	return qp ? ibv_destroy_qp(qp) : last_error();
}

struct ibv_srq *srq_create(const struct recorder *r, uint32_t max_wr,
			   uint32_t max_sge)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = max_wr, .max_sge = max_sge },
	};

	return ibv_create_srq(r->pd, &init);
}

int mr_try(const struct recorder *r, void *addr, size_t length,
	   unsigned int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(r->pd, addr, length, access);
	return mr ? ibv_dereg_mr(mr) : last_error();
}
