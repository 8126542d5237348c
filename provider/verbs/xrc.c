// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC domains (ibv_open_xrcd(3)) and shared XRC target QPs (ibv_open_qp(3)).
 *
 * All contexts of a device that open a domain by the same file, in any process,
 * share the domain.  It is freed when the last context closes it or dies.  The
 * table of domains, dev->xrcd, is under the device lock (fabric_lock()).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "context.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"
#include "engine/run/quiesce.h"
#include "engine/qp/stored_receive.h"
#include "shared/bitmap.h"
#include "verbs.h"
#include "xrc.h"

#define XRCD_MASKS (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

/* Return the index of the device's domain for the file, or -ENOENT. */
static int xrcd_find(struct urxe_dev *dev, uint32_t device,
		     const struct stat *st)
{
	int i;

	for (i = 0; i < URXE_MAX_XRCD; i++)
		if (load_relaxed(&dev->xrcd[i].used) &&
		    dev->xrcd[i].hca == device &&
		    dev->xrcd[i].ino == st->st_ino &&
		    dev->xrcd[i].dev == st->st_dev)
			return i;
	return -ENOENT;
}

/* Allocate a domain, private if @st is NULL: its index, or -ENOMEM. */
static int xrcd_new(struct urxe_dev *dev, uint32_t device,
		    const struct stat *st)
{
	struct urxe_xrcd_slot *x;
	int i;

	for (i = 0; i < URXE_MAX_XRCD; i++) {
		x = &dev->xrcd[i];
		if (load_relaxed(&x->used))
			continue;
		memset(x->ctx, 0, sizeof(x->ctx));
		x->ino = st ? st->st_ino : 0;
		x->dev = st ? st->st_dev : 0;
		x->hca = device;
		store_relaxed(&x->used, 1);
		return i;
	}
	return -ENOMEM;
}

/*
 * Find or create the domain for @vctx, and return its index or -errno.  The
 * device lock is held.
 */
static int xrcd_join(struct urxe_vcontext *vctx, int oflags,
		     const struct stat *st)
{
	struct urxe_dev *dev = vctx->ctx.fabric->dev;
	int i = -ENOENT;

	if (st) {
		i = xrcd_find(dev, vctx->ctx.device, st);
		if (i >= 0 && (oflags & O_EXCL) && (oflags & O_CREAT))
			return fabric_fail(EINVAL,
					   "the XRC domain exists already");
		if (i < 0 && !(oflags & O_CREAT))
			return fabric_fail(EAGAIN,
					   "the XRC domain does not exist");
	}
	if (i < 0)
		i = xrcd_new(dev, vctx->ctx.device, st);
	if (i >= 0) {
		bitmap_set(dev->xrcd[i].ctx, vctx->ctx.slot, 1);
		vctx->xrcd_opens[i]++;
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

	if (attr->comp_mask != XRCD_MASKS || attr->oflags & ~(O_CREAT | O_EXCL))
		return urxe_fail(-EINVAL,
				 "ibv_open_xrcd: invalid comp_mask or oflags");
	if (attr->fd == -1 && !(attr->oflags & O_CREAT))
		return urxe_fail(
			-EINVAL,
			"ibv_open_xrcd: a private XRC domain needs O_CREAT");
	if (attr->fd != -1 && fstat(attr->fd, &st))
		return urxe_fail(-EBADF, "ibv_open_xrcd: invalid fd");
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	/*
	 * keeps the inode, so that its number is not reused for another file
	 */
	xrcd->fd = attr->fd == -1 ? -1 : fcntl(attr->fd, F_DUPFD_CLOEXEC, 0);
	ret = -errno;
	if (attr->fd != -1 && xrcd->fd < 0)
		goto err_free;
	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_XRCD);
	if (ret)
		goto err_close;
	fabric_reap(ctx->fabric); /* free the domains of dead contexts */
	ret = fabric_lock(ctx->fabric);
	if (ret)
		goto err_put;
	ret = xrcd_join(to_vctx(ibctx), attr->oflags,
			attr->fd == -1 ? NULL : &st);
	fabric_unlock(ctx->fabric);
	if (ret < 0)
		goto err_put;
	xrcd->ctx = ctx;
	xrcd->index = ret;
	xrcd->vxrcd.xrcd.context = ibctx;
	xrcd->vxrcd.comp_mask = 1; /* handle is valid */
	xrcd->vxrcd.handle = ret;
	return &xrcd->vxrcd.xrcd;

err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_XRCD);
err_close:
	if (xrcd->fd >= 0)
		close(xrcd->fd);
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
	int ret;

	if (load_acquire(&xrcd->refs))
		return EBUSY;
	ret = fabric_lock(ctx->fabric);
	if (ret) {
		urxe_fail(ret, "ibv_close_xrcd");
		return -ret;
	}
	if (!--to_vctx(to_ibv(ctx))->xrcd_opens[xrcd->index])
		bitmap_clear(x->ctx, ctx->slot, 1);
	for (i = 0; i < URXE_MAX_CTX / 64 && !x->ctx[i]; i++)
		;
	if (i == URXE_MAX_CTX / 64)
		store_relaxed(&x->used, 0);
	fabric_unlock(ctx->fabric);
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_XRCD);
	if (xrcd->fd >= 0)
		close(xrcd->fd);
	free(xrcd);
	return 0;
}

/* ---------------------------------------------------------- target QPs */

#define OPEN_NEEDED \
	(IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE)

/* Add a handle; false if the QP has none left and is being destroyed. */
static bool xrc_get_handle(struct urxe_qp_sh *sh)
{
	uint32_t n = load_relaxed(&sh->handles);

	do {
		if (!n)
			return false;
	} while (!cas_acq_rel(&sh->handles, &n, n + 1));
	return true;
}

bool xrc_put_handle(struct urxe_vqp *vqp)
{
	struct urxe_qp_sh *sh = vqp->qp.sh;

	if (vqp->qp.type != IBV_QPT_XRC_RECV ||
	    fetch_sub_acq_rel(&sh->handles, 1) == 1)
		return true;
	if (!vqp->opened) /* the creator closes it: it gets no more events */
		sh->async_fifo = 0;
	return false;
}

/*
 * Find XRC target @qpn of domain @xrcd and add a handle.  Return its context
 * in *@p, with a reference, and the QP in *@sh.  0 or -EINVAL
 */
static int xrc_find_target(struct urxe_context *ctx, uint32_t qpn,
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
	if (load_relaxed(&(*sh)->type) == IBV_QPT_XRC_RECV && (*sh)->xrcd == xrcd->index + 1 &&
	    URXE_CONN_QPN(load_acquire(&(*sh)->conn)) == qpn &&
	    xrc_get_handle(*sh))
		return 0;
	peer_put(*p);
	return -EINVAL;
}

/*
 * ibv_open_qp: create a further handle of an XRC target QP of this or of
 * another process.  The QP is destroyed with the last handle, or with the
 * context that created it.
 */
struct ibv_qp *urxe_open_qp(struct ibv_context *ibctx,
			    struct ibv_qp_open_attr *attr)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct urxe_vqp *vqp;
	struct urxe_qp *qp;
	int ret;

	if ((attr->comp_mask & ~IBV_QP_OPEN_ATTR_CONTEXT) != OPEN_NEEDED ||
	    !attr->xrcd || attr->xrcd->context != ibctx || attr->qp_type != IBV_QPT_XRC_RECV)
		return urxe_fail(
			-EINVAL,
			"ibv_open_qp: invalid comp_mask, xrcd or qp_type");
	vqp = calloc(1, sizeof(*vqp));
	if (!vqp)
		return NULL;
	qp = &vqp->qp;
	vqp->xrcd = to_uxrcd(attr->xrcd);
	ret = xrc_find_target(ctx, attr->qp_num, vqp->xrcd, &vqp->opened,
			      &qp->sh);
	if (ret) {
		free(vqp);
		return urxe_fail(ret, "ibv_open_qp");
	}
	qp->ctx = ctx;
	urxe_lock_init(&qp->lock, false);
	qp->type = vqp->init.qp_type = IBV_QPT_XRC_RECV;
	qp->qpn = attr->qp_num;
	qp_find_guard(qp);
	vqp_fill(vqp, ibctx,
		      attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ?
			      attr->qp_context : NULL,
		      attr->qp_num);
	fetch_add_relaxed(&vqp->xrcd->refs, 1);
	return &vqp->v.qp;
}

void xrc_query_qp(const struct urxe_vqp *vqp, struct ibv_qp_attr *attr)
{
	const struct urxe_qp_sh *sh = vqp->qp.sh;

	attr->dest_qp_num = URXE_CONN_DEST(load_relaxed(&sh->conn));
	attr->qp_access_flags = load_relaxed(&sh->access);
	attr->path_mtu = load_relaxed(&sh->path_mtu);
	attr->min_rnr_timer = load_relaxed(&sh->min_rnr_timer);
	attr->max_dest_rd_atomic = load_relaxed(&sh->max_dest_rd_atomic);
	attr->port_num = attr->qp_state == IBV_QPS_RESET ? 0 : 1;
}

/* Destroy the QP: @vqp is the last handle, and the creator's is closed. */
static void xrc_end_target(struct urxe_vqp *vqp)
{
	struct urxe_peer *p = vqp->opened;
	struct urxe_fabric *f = p->fabric;

	store_seq_cst(&vqp->qp.sh->conn, 0);
	quiesce_qp(f, p->arena, vqp->qp.qpn, 0);
	stored_receive_flush_target(&vqp->qp, p);
	/* if the creator's context has died, its QPs are freed with it */
	if (!fabric_context_alive(f, p->slot, p->gen))
		return;
	qpn_free(f, vqp->qp.qpn);
	fabric_obj_put(f, p->slot, URXE_OBJ_QP);
}

void xrc_close_qp(struct urxe_vqp *vqp)
{
	if (xrc_put_handle(vqp))
		xrc_end_target(vqp);
	fetch_sub_relaxed(&vqp->xrcd->refs, 1);
	peer_put(vqp->opened);
	pthread_mutex_destroy(&vqp->v.qp.mutex);
	pthread_cond_destroy(&vqp->v.qp.cond);
	free(vqp);
}
