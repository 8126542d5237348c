// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interposers of the verbs that create, modify and destroy objects.
 *
 * A destroy verb first takes the shadow out of the lists, because the
 * object's address may be reused as soon as the real verb returns.  If the
 * real verb fails, the shadow is put back.  Findings that hold only if the
 * verb succeeds are queued meanwhile (finding_hold()), and then reported or
 * dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "leave.h"
#include "limits.h"
#include "memory.h"
#include "pair.h"
#include "referee.h"
#include "shadow.h"
#include "unmapped.h"
#include "unpolled.h"
#include "verbs/mr/mr_ex.h"

/* Add the shadow of a new object of a type without further members. */
static void made(enum shadow_type type, const void *handle,
		 struct ibv_context *context, uint32_t number)
{
	int saved = errno;

	if (!handle)
		return;
	referee_lock();
	shadow_add(type, sizeof(struct shadow), handle, context, number);
	if (type == SHADOW_PD)
		memory_joins(context);
	referee_unlock();
	errno = saved;
}

/*
 * Checks before the destruction: of a connection, and of events that are not
 * acknowledged, for which the real verb would wait.  Without a lock.
 */
static void check_before_destroy(struct shadow *s)
{
	if (!s)
		return;
	if (s->type == SHADOW_QP)
		pair_check(to_shadow_qp(s));
	unacked_wait(s);
}

/* Before a destroy verb: check the object, and take out its shadow. */
static struct shadow *ending(enum shadow_type type, const void *handle)
{
	struct shadow *s;

	referee_lock();
	s = shadow_find(type, handle);
	referee_unlock();
	check_before_destroy(s);
	referee_lock();
	s = shadow_take_out(type, handle);
	if (s) {
		finding_hold();
		memory_ending(s);
		if (type == SHADOW_QP) {
			limits_end(to_shadow_qp(s));
			unpolled_check(to_shadow_qp(s), false);
		}
	}
	referee_unlock();
	return s;
}

/* After a destroy verb that returned ret: free the shadow or put it back. */
static int ended(struct shadow *s, int ret)
{
	if (!s)
		return ret;
	finding_let_go(!ret);
	referee_lock();
	if (ret)
		shadow_put_back(s);
	else
		shadow_free(s);
	referee_unlock();
	return ret;
}

/* Define the interposers of a create verb and of a destroy verb. */
#define MAKE(type, result, name, params, args, context, number)            \
	static result *referee_##name params                               \
	{                                                                  \
		result *object = referee_next.name args;                   \
                                                                           \
		made(SHADOW_##type, object, context, object ? number : 0); \
		return object;                                             \
	}
#define END(type, name, param)                                    \
	static int referee_##name(param *object)                  \
	{                                                         \
		struct shadow *s = ending(SHADOW_##type, object); \
                                                                  \
		return ended(s, referee_next.name(object));       \
	}

MAKE(PD, struct ibv_pd, alloc_pd, (struct ibv_context * ctx), (ctx), ctx, 0)
MAKE(PD, struct ibv_pd, alloc_parent_domain,
     (struct ibv_context * ctx, struct ibv_parent_domain_init_attr *attr),
     (ctx, attr), ctx, 0)
MAKE(PD, struct ibv_pd, import_pd, (struct ibv_context * ctx, uint32_t handle),
     (ctx, handle), ctx, 0)
END(PD, dealloc_pd, struct ibv_pd)
MAKE(TD, struct ibv_td, alloc_td,
     (struct ibv_context * ctx, struct ibv_td_init_attr *attr), (ctx, attr),
     ctx, 0)
END(TD, dealloc_td, struct ibv_td)
MAKE(MW, struct ibv_mw, alloc_mw, (struct ibv_pd * pd, enum ibv_mw_type type),
     (pd, type), pd->context, object->rkey)
END(MW, dealloc_mw, struct ibv_mw)
MAKE(DM, struct ibv_dm, alloc_dm,
     (struct ibv_context * ctx, struct ibv_alloc_dm_attr *attr), (ctx, attr),
     ctx, 0)
MAKE(DM, struct ibv_dm, import_dm, (struct ibv_context * ctx, uint32_t handle),
     (ctx, handle), ctx, 0)
END(DM, free_dm, struct ibv_dm)
MAKE(XRCD, struct ibv_xrcd, open_xrcd,
     (struct ibv_context * ctx, struct ibv_xrcd_init_attr *attr), (ctx, attr),
     ctx, 0)
END(XRCD, close_xrcd, struct ibv_xrcd)
MAKE(AH, struct ibv_ah, create_ah,
     (struct ibv_pd * pd, struct ibv_ah_attr *attr), (pd, attr), pd->context, 0)
END(AH, destroy_ah, struct ibv_ah)
MAKE(COMP_CNTR, struct ibv_comp_cntr, create_comp_cntr,
     (struct ibv_context * ctx, struct ibv_comp_cntr_init_attr *attr),
     (ctx, attr), ctx, 0)
END(COMP_CNTR, destroy_comp_cntr, struct ibv_comp_cntr)

static void referee_unimport_pd(struct ibv_pd *pd)
{
	struct shadow *s = ending(SHADOW_PD, pd);

	referee_next.unimport_pd(pd);
	ended(s, 0);
}

static void referee_unimport_dm(struct ibv_dm *dm)
{
	struct shadow *s = ending(SHADOW_DM, dm);

	referee_next.unimport_dm(dm);
	ended(s, 0);
}

static void referee_free_context(struct ibv_context *ctx)
{
	leave_context(ctx);
	referee_next.free_context(ctx);
}

/* ------------------------------------------------------- MRs */

/* Add the shadow of a new MR, with the members of *is. */
static struct ibv_mr *mr_made(struct ibv_mr *mr, struct ibv_pd *pd,
			      const struct shadow_mr *is)
{
	int saved = errno;
	struct shadow_mr *m;
	struct shadow *s;

	if (!mr)
		return NULL;
	referee_lock();
	s = shadow_add(SHADOW_MR, sizeof(struct shadow_mr), mr, pd->context,
		       mr->lkey);
	if (s) {
		m = to_shadow_mr(s);
		m->dm = is->dm;
		m->addr = is->addr;
		m->iova = is->iova;
		m->length = is->length;
		m->access = is->access;
		m->imported = is->imported;
		m->null = is->null;
		m->lkey = mr->lkey;
		unmapped_watch(m);
		limits_memlock(m);
	}
	referee_unlock();
	errno = saved;
	return mr;
}

static struct ibv_mr *referee_reg_mr(struct ibv_pd *pd, void *addr,
				     size_t length, uint64_t iova, int access)
{
	struct shadow_mr is = { .addr = (uintptr_t)addr,
				.iova = access & IBV_ACCESS_ZERO_BASED ? 0 :
									 iova,
				.length = length,
				.access = (unsigned int)access };

	return mr_made(referee_next.reg_mr(pd, addr, length, iova, access), pd,
		       &is);
}

/* The address of its memory in this process is not known: addr is 0. */
static struct ibv_mr *referee_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					    size_t length, uint64_t iova,
					    int fd, int access)
{
	struct shadow_mr is = { .iova = iova,
				.length = length,
				.access = (unsigned int)access };

	return mr_made(referee_next.reg_dmabuf_mr(pd, offset, length, iova, fd,
						  access),
		       pd, &is);
}

static struct ibv_mr *referee_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
					uint64_t offset, size_t length,
					unsigned int access)
{
	struct shadow_mr is = { .dm = dm, .length = length, .access = access };

	return mr_made(referee_next.reg_dm_mr(pd, dm, offset, length, access),
		       pd, &is);
}

static struct ibv_mr *referee_reg_mr_ex(struct ibv_pd *pd,
					struct ibv_mr_init_attr *attr)
{
	const struct mr_attr *a = (const void *)attr;
	struct shadow_mr is = { .length = a->length,
				.access = (unsigned int)a->access };
	struct ibv_mr *mr = referee_next.reg_mr_ex(pd, attr);

	if (a->given & GIVEN_ADDR)
		is.addr = (uintptr_t)a->addr;
	is.iova = a->given & GIVEN_IOVA ? a->iova : is.addr;
	return mr_made(mr, pd, &is);
}

static struct ibv_mr *referee_alloc_null_mr(struct ibv_pd *pd)
{
	struct shadow_mr is = { .null = true };

	return mr_made(referee_next.alloc_null_mr(pd), pd, &is);
}

static struct ibv_mr *referee_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct shadow_mr is = { .imported = true };
	struct ibv_mr *mr = referee_next.import_mr(pd, handle);

	return mr_made(mr, pd, &is);
}

static int referee_dereg_mr(struct pabi_mr *mr)
{
	struct shadow *s = ending(SHADOW_MR, &mr->mr);

	return ended(s, referee_next.dereg_mr(mr));
}

static void referee_unimport_mr(struct ibv_mr *mr)
{
	struct shadow *s = ending(SHADOW_MR, mr);

	referee_next.unimport_mr(mr);
	ended(s, 0);
}

static void mr_changed(struct shadow_mr *m, const struct ibv_mr *mr, int flags,
		       void *addr, size_t length, int access)
{
	unmapped_forget(m);
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		m->addr = (uintptr_t)addr;
		m->iova = (uintptr_t)addr;
		m->length = length;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		m->access = (unsigned int)access;
	m->lkey = mr->lkey;
	unmapped_watch(m);
	limits_memlock(m);
}

static int referee_rereg_mr(struct pabi_mr *mr, int flags, struct ibv_pd *pd,
			    void *addr, size_t length, int access)
{
	struct shadow *s;
	int ret;

	referee_lock();
	s = shadow_find(SHADOW_MR, &mr->mr);
	finding_hold();
	if (s)
		memory_ending(s);
	referee_unlock();
	ret = referee_next.rereg_mr(mr, flags, pd, addr, length, access);
	finding_let_go(!ret);
	referee_lock();
	s = ret ? NULL : shadow_find(SHADOW_MR, &mr->mr);
	if (s)
		mr_changed(to_shadow_mr(s), &mr->mr, flags, addr, length,
			   access);
	referee_unlock();
	return ret;
}

/* ------------------------------------------------------- CQs */

static void cq_made(struct ibv_cq *cq, struct ibv_context *ctx, uint32_t flags)
{
	int saved = errno;
	struct shadow_cq *c;
	struct shadow *s;

	referee_lock();
	s = shadow_add(SHADOW_CQ, sizeof(struct shadow_cq), cq, ctx,
		       cq->handle);
	if (s) {
		c = to_shadow_cq(s);
		c->cq = cq;
		c->cqe = (uint32_t)cq->cqe;
		c->ignores_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	}
	referee_unlock();
	errno = saved;
}

static struct ibv_cq *referee_create_cq(struct ibv_context *ctx, int cqe,
					struct ibv_comp_channel *channel,
					int vector)
{
	struct ibv_cq *cq = referee_next.create_cq(ctx, cqe, channel, vector);

	if (cq)
		cq_made(cq, ctx, 0);
	return cq;
}

static struct ibv_cq_ex *referee_create_cq_ex(struct ibv_context *ctx,
					      struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *cq = referee_next.create_cq_ex(ctx, attr);
	uint32_t flags =
		attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;

	if (cq) {
		cq_made(ibv_cq_ex_to_cq(cq), ctx, flags);
		referee_wrap_cq_ex(cq);
	}
	return cq;
}

static int referee_resize_cq(struct ibv_cq *cq, int cqe)
{
	int ret = referee_next.resize_cq(cq, cqe);
	struct shadow_cq *c;

	referee_lock();
	c = ret ? NULL : shadow_cq(cq);
	if (c)
		c->cqe = (uint32_t)cq->cqe;
	referee_unlock();
	return ret;
}

END(CQ, destroy_cq, struct ibv_cq)

/* ------------------------------------------------------- SRQs */

static struct ibv_srq *srq_made(struct ibv_srq *srq, struct ibv_context *ctx,
				uint32_t max_wr, const struct ibv_cq *cq)
{
	int saved = errno;
	struct shadow_srq *r;
	struct shadow *s;

	referee_lock();
	s = shadow_add(SHADOW_SRQ, sizeof(struct shadow_srq), srq, ctx,
		       srq->handle);
	if (s) {
		r = to_shadow_srq(s);
		r->srq = srq;
		r->cq = cq ? shadow_cq(cq) : NULL;
		queue_init(&r->rq, s, r->cq, false, max_wr);
	}
	referee_unlock();
	errno = saved;
	return srq;
}

static struct ibv_srq *referee_create_srq(struct ibv_pd *pd,
					  struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = referee_next.create_srq(pd, attr);

	return srq ? srq_made(srq, pd->context, attr->attr.max_wr, NULL) : NULL;
}

static struct ibv_srq *referee_create_srq_ex(struct ibv_context *ctx,
					     struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq = referee_next.create_srq_ex(ctx, attr);
	const struct ibv_cq *cq =
		attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ ? attr->cq : NULL;

	return srq ? srq_made(srq, ctx, attr->attr.max_wr, cq) : NULL;
}

static int referee_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
			      int mask)
{
	int ret = referee_next.modify_srq(srq, attr, mask);
	struct shadow_srq *r;

	referee_lock();
	r = ret ? NULL : shadow_srq(srq);
	if (r && mask & IBV_SRQ_MAX_WR)
		r->rq.capacity = attr->max_wr;
	referee_unlock();
	return ret;
}

END(SRQ, destroy_srq, struct ibv_srq)

/* ------------------------------------------------------- QPs */

static void qp_fill(struct shadow_qp *q, struct ibv_qp *qp,
		    const struct ibv_qp_cap *cap, int sig_all)
{
	q->qp = qp;
	q->type = qp->qp_type;
	q->sig_all = sig_all;
	q->scq = qp->send_cq ? shadow_cq(qp->send_cq) : NULL;
	q->rcq = qp->recv_cq ? shadow_cq(qp->recv_cq) : NULL;
	q->srq = qp->srq ? shadow_srq(qp->srq) : NULL;
	q->batch_end = &q->batch;
	queue_init(&q->sq, &q->s, q->scq, true, cap->max_send_wr);
	queue_init(&q->rq, &q->s, q->rcq, false, cap->max_recv_wr);
}

static struct ibv_qp *qp_made(struct ibv_qp *qp, struct ibv_context *ctx,
			      const struct ibv_qp_cap *cap, int sig_all)
{
	int saved = errno;
	struct shadow *s;

	referee_lock();
	s = shadow_add(SHADOW_QP, sizeof(struct shadow_qp), qp, ctx,
		       qp->qp_num);
	if (s)
		qp_fill(to_shadow_qp(s), qp, cap, sig_all);
	referee_unlock();
	errno = saved;
	return qp;
}

static struct ibv_qp *referee_create_qp(struct ibv_pd *pd,
					struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = referee_next.create_qp(pd, init);

	return qp ? qp_made(qp, pd->context, &init->cap, init->sq_sig_all) :
		    NULL;
}

static struct ibv_qp *referee_create_qp_ex(struct ibv_context *ctx,
					   struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp *qp = referee_next.create_qp_ex(ctx, init);

	if (!qp)
		return NULL;
	qp_made(qp, ctx, &init->cap, init->sq_sig_all);
	if (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		referee_wrap_qp_ex(qp);
	return qp;
}

static struct ibv_qp *referee_open_qp(struct ibv_context *ctx,
				      struct ibv_qp_open_attr *attr)
{
	struct ibv_qp *qp = referee_next.open_qp(ctx, attr);
	struct ibv_qp_cap none = { 0 };
	struct shadow_qp *q;

	if (!qp)
		return NULL;
	qp_made(qp, ctx, &none, 0);
	referee_lock();
	q = shadow_qp(qp);
	if (q)
		q->opened = true;
	referee_unlock();
	return qp;
}

END(QP, destroy_qp, struct ibv_qp)

/* Record the attributes that checks need. */
static void qp_keep(struct shadow_qp *q, const struct ibv_qp_attr *attr,
		    int mask)
{
	if (mask & IBV_QP_DEST_QPN)
		q->dest_qpn = attr->dest_qp_num;
	if (!(mask & IBV_QP_STATE))
		return;
	if (attr->qp_state == IBV_QPS_RTR) {
		stack_take(&q->connected);
		q->compared = q->compared_reads = q->reads = false;
	}
	if (attr->qp_state == IBV_QPS_RESET) {
		limits_rnr_ended(q);
		queue_forget(&q->sq);
		queue_forget(&q->rq);
	}
}

static int referee_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			     int mask)
{
	int ret = referee_next.modify_qp(qp, attr, mask);
	struct shadow_qp *q;

	referee_lock();
	q = ret ? NULL : shadow_qp(qp);
	if (q)
		qp_keep(q, attr, mask);
	referee_unlock();
	return ret;
}

static int
referee_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
			    struct ibv_qp_attach_comp_cntr_attr *attr)
{
	int ret = referee_next.qp_attach_comp_cntr(qp, cntr, attr);
	struct shadow_qp *q;

	referee_lock();
	q = ret ? NULL : shadow_qp(qp);
	if (q) {
		q->sq.counted = q->rq.counted = true;
		if (q->srq)
			q->srq->rq.counted = true;
	}
	referee_unlock();
	return ret;
}

void referee_wrap_objects(struct pabi_ops *ops)
{
#define WRAP(name) ops->name = referee_##name
	WRAP(alloc_dm);
	WRAP(alloc_mw);
	WRAP(alloc_null_mr);
	WRAP(alloc_parent_domain);
	WRAP(alloc_pd);
	WRAP(alloc_td);
	WRAP(close_xrcd);
	WRAP(create_ah);
	WRAP(create_comp_cntr);
	WRAP(create_cq);
	WRAP(create_cq_ex);
	WRAP(create_qp);
	WRAP(create_qp_ex);
	WRAP(create_srq);
	WRAP(create_srq_ex);
	WRAP(dealloc_mw);
	WRAP(dealloc_pd);
	WRAP(dealloc_td);
	WRAP(dereg_mr);
	WRAP(destroy_ah);
	WRAP(destroy_comp_cntr);
	WRAP(destroy_cq);
	WRAP(destroy_qp);
	WRAP(destroy_srq);
	WRAP(free_context);
	WRAP(free_dm);
	WRAP(import_dm);
	WRAP(import_mr);
	WRAP(import_pd);
	WRAP(modify_qp);
	WRAP(modify_srq);
	WRAP(open_qp);
	WRAP(open_xrcd);
	WRAP(qp_attach_comp_cntr);
	WRAP(reg_dm_mr);
	WRAP(reg_dmabuf_mr);
	WRAP(reg_mr);
	WRAP(reg_mr_ex);
	WRAP(rereg_mr);
	WRAP(resize_cq);
	WRAP(unimport_dm);
	WRAP(unimport_mr);
	WRAP(unimport_pd);
}
