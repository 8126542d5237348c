// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC domains: man ibv_open_xrcd.  All who open a domain by the same file
 * have the same one, in whatever process; it ends with the last of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabric/bitmap.h"
#include "engine/peer.h"
#include "qp.h"
#include "engine/quiesce.h"
#include "xrc.h"

#define XRCD_MASKS (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

static int find_domain(struct urxe_dev *dev, const struct stat *st)
{
	int i;

	for (i = 0; i < URXE_MAX_XRCD; i++)
		if (atomic_load_explicit(&dev->xrcd[i].used,
					 memory_order_relaxed) &&
		    dev->xrcd[i].ino == st->st_ino &&
		    dev->xrcd[i].dev == st->st_dev)
			return i;
	return -ENOENT;
}

static int new_domain(struct urxe_dev *dev, const struct stat *st)
{
	struct urxe_xrcd_slot *x;
	int i;

	for (i = 0; i < URXE_MAX_XRCD; i++) {
		x = &dev->xrcd[i];
		if (atomic_load_explicit(&x->used, memory_order_relaxed))
			continue;
		memset(x->ctx, 0, sizeof(x->ctx));
		x->ino = st ? st->st_ino : 0;
		x->dev = st ? st->st_dev : 0;
		atomic_store_explicit(&x->used, 1, memory_order_relaxed);
		return i;
	}
	return -ENOMEM;
}

/* Under the device lock. */
static int join(struct urxe_context *ctx, int oflags, const struct stat *st)
{
	struct urxe_dev *dev = ctx->fabric->dev;
	int i = -ENOENT;

	if (st) {
		i = find_domain(dev, st);
		if (i >= 0 && (oflags & O_EXCL) && (oflags & O_CREAT))
			return fabric_fail(EINVAL, "the domain exists already");
		if (i < 0 && !(oflags & O_CREAT))
			return fabric_fail(EAGAIN, "there is no such domain");
	}
	if (i < 0)
		i = new_domain(dev, st);
	if (i >= 0) {
		bitmap_set(dev->xrcd[i].ctx, ctx->slot, 1);
		ctx->xrcd_opens[i]++;
	}
	return i;
}

struct ibv_xrcd *urxe_open_xrcd(struct ibv_context *ibctx,
				struct ibv_xrcd_init_attr *attr)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct urxe_xrcd *xrcd;
	struct stat st;
	int ret;

	if (attr->comp_mask & ~XRCD_MASKS ||
	    (attr->comp_mask & XRCD_MASKS) != XRCD_MASKS ||
	    attr->oflags & ~(O_CREAT | O_EXCL))
		return urxe_fail(-EINVAL, "ibv_open_xrcd: attributes");
	if (attr->fd < 0 && !(attr->oflags & O_CREAT))
		return urxe_fail(-EINVAL,
				 "ibv_open_xrcd: a private domain needs O_CREAT");
	if (attr->fd >= 0 && fstat(attr->fd, &st))
		return urxe_fail(-EBADF, "ibv_open_xrcd: fd");
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_XRCD);
	if (ret)
		goto err_free;
	fabric_lock(ctx->fabric);
	ret = join(ctx, attr->oflags, attr->fd >= 0 ? &st : NULL);
	fabric_unlock(ctx->fabric);
	if (ret < 0)
		goto err_put;
	xrcd->ctx = ctx;
	xrcd->index = ret;
	xrcd->vxrcd.xrcd.context = ibctx;
	xrcd->vxrcd.comp_mask = 1; /* the handle is there */
	xrcd->vxrcd.handle = ret;
	return &xrcd->vxrcd.xrcd;

err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_XRCD);
err_free:
	free(xrcd);
	return urxe_fail(ret, "ibv_open_xrcd");
}

int urxe_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct urxe_xrcd *xrcd = to_uxrcd(ibxrcd);
	struct urxe_context *ctx = xrcd->ctx;
	struct urxe_xrcd_slot *x = &ctx->fabric->dev->xrcd[xrcd->index];
	unsigned int i;

	if (atomic_load_explicit(&xrcd->refs, memory_order_acquire))
		return EBUSY;
	fabric_lock(ctx->fabric);
	if (!--ctx->xrcd_opens[xrcd->index])
		bitmap_clear(x->ctx, ctx->slot, 1);
	for (i = 0; i < URXE_MAX_CTX / 64 && !x->ctx[i]; i++)
		;
	if (i == URXE_MAX_CTX / 64)
		atomic_store_explicit(&x->used, 0, memory_order_relaxed);
	fabric_unlock(ctx->fabric);
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_XRCD);
	free(xrcd);
	return 0;
}

/* ---------------------------------------------------------- target QPs */

#define OPEN_NEEDED \
	(IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE)

/* One handle more, of a QP that has any. */
static bool get_handle(struct urxe_qp_sh *sh)
{
	uint32_t n = atomic_load_explicit(&sh->handles, memory_order_relaxed);

	do {
		if (!n)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&sh->handles, &n, n + 1,
							memory_order_acq_rel,
							memory_order_relaxed));
	return true;
}

bool xrc_put_handle(struct urxe_qp *qp)
{
	if (qp->init.qp_type != IBV_QPT_XRC_RECV ||
	    atomic_fetch_sub_explicit(&qp->sh->handles, 1,
				      memory_order_acq_rel) == 1)
		return true;
	if (!qp->opened) /* nobody is left to be told */
		qp->sh->async_fifo = 0;
	return false;
}

/* The target qpn of domain xrcd; *p is the context it lives in. */
static int find_target(struct urxe_context *ctx, uint32_t qpn,
		       const struct urxe_xrcd *xrcd, struct urxe_peer **p,
		       struct urxe_qp_sh **sh)
{
	uint32_t slot, gen;

	if (!qpn_lookup(ctx->fabric->dev, qpn, &slot, &gen))
		return -EINVAL;
	*p = peer_get(ctx->fabric, slot, gen);
	if (!*p)
		return -EINVAL;
	*sh = &(*p)->arena->qp[qpn_index(qpn)];
	if ((*sh)->type == IBV_QPT_XRC_RECV &&
	    (*sh)->xrcd == xrcd->index + 1 &&
	    URXE_CONN_QPN(atomic_load_explicit(&(*sh)->conn,
					       memory_order_acquire)) == qpn &&
	    get_handle(*sh))
		return 0;
	peer_put(*p);
	return -EINVAL;
}

struct ibv_qp *urxe_open_qp(struct ibv_context *ibctx,
			    struct ibv_qp_open_attr *attr)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct urxe_qp *qp;
	int ret;

	if (attr->comp_mask & ~(OPEN_NEEDED | IBV_QP_OPEN_ATTR_CONTEXT) ||
	    (attr->comp_mask & OPEN_NEEDED) != OPEN_NEEDED || !attr->xrcd ||
	    attr->qp_type != IBV_QPT_XRC_RECV)
		return urxe_fail(-EINVAL, "ibv_open_qp: attributes");
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->xrcd = to_uxrcd(attr->xrcd);
	ret = find_target(ctx, attr->qp_num, qp->xrcd, &qp->opened, &qp->sh);
	if (ret) {
		free(qp);
		return urxe_fail(ret, "ibv_open_qp");
	}
	qp->ctx = ctx;
	urxe_lock_init(&qp->lock, false);
	qp->init.qp_type = IBV_QPT_XRC_RECV;
	qp->guard = &ctx->fabric->dev->guard[qpn_index(attr->qp_num)];
	qp->vqp.qp.context = ibctx;
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		qp->vqp.qp.qp_context = attr->qp_context;
	qp->vqp.qp.handle = qpn_index(attr->qp_num);
	qp->vqp.qp.qp_num = attr->qp_num;
	qp->vqp.qp.state = qp_state(qp);
	qp->vqp.qp.qp_type = IBV_QPT_XRC_RECV;
	pthread_mutex_init(&qp->vqp.qp.mutex, NULL);
	pthread_cond_init(&qp->vqp.qp.cond, NULL);
	pabi_qp_tail(&qp->vqp)->comp_mask |= PABI_QP_HAS_XRCD;
	pabi_qp_tail(&qp->vqp)->xrcd = attr->xrcd;
	atomic_fetch_add_explicit(&qp->xrcd->refs, 1, memory_order_relaxed);
	return &qp->vqp.qp;
}

void xrc_query_qp(const struct urxe_qp *qp, struct ibv_qp_attr *attr)
{
	const struct urxe_qp_sh *sh = qp->sh;

	attr->dest_qp_num = URXE_CONN_DEST(
		atomic_load_explicit(&sh->conn, memory_order_relaxed));
	attr->qp_access_flags = atomic_load_explicit(&sh->access,
						     memory_order_relaxed);
	attr->path_mtu = sh->path_mtu;
	attr->min_rnr_timer = sh->min_rnr_timer;
	attr->max_dest_rd_atomic = sh->max_dest_rd_atomic;
	attr->port_num = attr->qp_state == IBV_QPS_RESET ? 0 : 1;
}

/* The last handle of a QP whose creator closed its own before. */
static void end_target(struct urxe_qp *qp)
{
	struct urxe_peer *p = qp->opened;
	struct urxe_fabric *f = p->fabric;

	atomic_store_explicit(&qp->sh->conn, 0, memory_order_seq_cst);
	quiesce_guards(f);
	/* with its creator's context it ended anyway */
	if (!fabric_context_alive(f, p->slot, p->gen))
		return;
	qpn_free(f, qp->vqp.qp.qp_num);
	fabric_obj_put(f, p->slot, URXE_OBJ_QP);
}

void xrc_close_qp(struct urxe_qp *qp)
{
	if (xrc_put_handle(qp))
		end_target(qp);
	atomic_fetch_sub_explicit(&qp->xrcd->refs, 1, memory_order_relaxed);
	peer_put(qp->opened);
	pthread_mutex_destroy(&qp->vqp.qp.mutex);
	pthread_cond_destroy(&qp->vqp.qp.cond);
	urxe_lock_destroy(&qp->lock);
	free(qp);
}
