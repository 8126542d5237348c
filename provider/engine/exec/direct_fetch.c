// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast path of RDMA READ and of atomics; see direct.h.
 *
 * direct_post() calls direct_fetch(), with qp->lock held.  A pass sets the
 * guard, which names the one rkey, once for all of its WRs.  A WR that cannot
 * be served here (memory that is not accessible, a misaligned atomic, an
 * atomic lock whose owner does not run) is left to the requester.
 */
#include "atomics.h"
#include "direct_pass.h"

/*
 * Return the access that a READ or an atomic needs, of the key and of the
 * remote QP; 0 if @wr is neither.
 */
static inline uint32_t fetch_access(const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_READ:
		return IBV_ACCESS_REMOTE_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return 0;
	}
}

static inline uint32_t fetch_rkey(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_READ ? wr->wr.rdma.rkey :
						wr->wr.atomic.rkey;
}

/* Whether the fast path can serve @wr, which is a READ or an atomic. */
static inline bool fetch_fits(const struct urxe_qp *qp,
			      const struct ibv_send_wr *wr)
{
	return direct_fits(wr) && !(wr->send_flags & IBV_SEND_INLINE) &&
	       (wr->opcode == IBV_WR_RDMA_READ || !qp->atomic_ns);
}

/*
 * Whether the responder has resources for as many READs and atomics as this
 * QP may have outstanding.
 */
static inline bool fetch_has_resources(const struct urxe_qp *qp)
{
	const uint32_t depth = qp->attr.max_rd_atomic;

	return likely(depth && part_has_resources(qp, depth));
}

/* Execute a READ to @own.  False: nothing was done. */
static inline bool fetch_read(struct urxe_qp *qp, const struct direct *d,
			      const struct ibv_send_wr *wr, char *own)
{
	const uint64_t len = wr->sg_list->length;
	char *src;

	if (unlikely(len - 1 >= qp->sq.max_msg ||
		     !region_at(&qp->direct_dst, wr->wr.rdma.remote_addr, len,
				&src)))
		return false;
	/* order it after preceding WRITEs, and before later READs */
	if (d->packets)
		atomic_thread_fence(memory_order_seq_cst);
	else
		fence_after_rmw(); /* of guard_raise() */
	if (unlikely(!transfer_local_known(own, src, len, d->safe)))
		return false;
	atomic_thread_fence(memory_order_acquire);
	return true;
}

/*
 * Execute an atomic, old value to @own.  False: nothing was done, or the old
 * value is in qp->fetched_value.
 */
static bool fetch_atomic(struct urxe_qp *qp, const struct direct *d,
			 const struct ibv_send_wr *wr, char *own)
{
	const struct urxe_region *r = &qp->direct_dst;
	const uint64_t addr = wr->wr.atomic.remote_addr;
	struct urxe_seg seg = { .len = 8 };
	struct urxe_wqe w; /* only the operation's fields */
	uint64_t old;

	seg.va = r->entry->va + (addr - r->iova);
	seg.pid = r->entry->pid;
	if (unlikely(!region_at(r, addr, 8, &seg.ptr) || (addr | seg.va) & 7 ||
		     wr->sg_list->length != 8))
		return false;
	if (unlikely(qp->fetched)) /* by the pass before */
		return false;
	w.opcode = wr->opcode;
	w.atomic.compare_add = wr->wr.atomic.compare_add;
	w.atomic.swap = wr->wr.atomic.swap;
	if (unlikely(atomics_execute(qp, &qp->conn, &seg, r->entry, &w, &old)))
		return false; /* the owner of its lock does not run */
	if (likely(transfer_local_known(own, (const char *)&old, 8, d->safe)))
		return true;
	qp->fetched = true;
	qp->fetched_value = old;
	return false;
}

/* Execute one WR.  False: the requester must do it, or complete it. */
static bool fetch_one(struct urxe_qp *qp, struct direct *d,
		      const struct ibv_send_wr *wr)
{
	char *own;

	if (unlikely(!direct_local(qp, d, wr->sg_list, IBV_ACCESS_LOCAL_WRITE,
				   &own)) ||
	    !(wr->opcode == IBV_WR_RDMA_READ ? fetch_read(qp, d, wr, own) :
					       fetch_atomic(qp, d, wr, own)))
		return false;
	direct_count(qp, d, wr->sg_list->length);
	direct_complete(qp, d, wr, wr->sg_list->length,
			wc_opcode_of[wr->opcode]);
	return true;
}

/*
 * Execute WRs with the same rkey and access as the first; return the first WR
 * that is not done.
 */
static struct ibv_send_wr *fetch_pass(struct urxe_qp *qp,
				      struct ibv_send_wr *wr, uint32_t access)
{
	const uint32_t rkey = fetch_rkey(wr);
	struct direct d;

	direct_begin(qp, &d, GUARD_ONE_KEY(rkey));
	if (likely(d.room && direct_open(qp, rkey, access) &&
		   fetch_has_resources(qp))) {
		while (fetch_one(qp, &d, wr)) {
			wr = wr->next;
			if (!wr || !fetch_fits(qp, wr) ||
			    fetch_access(wr) != access ||
			    fetch_rkey(wr) != rkey ||
			    !direct_may_continue(qp, &d))
				break;
		}
		direct_advance(qp, &d);
	}
	direct_end(qp);
	return wr;
}

struct ibv_send_wr *direct_fetch(struct urxe_qp *qp, struct ibv_send_wr *wr)
{
	const uint32_t access = fetch_access(wr);

	if (!access || !fetch_fits(qp, wr) ||
	    region_is_closed(&qp->direct_dst, qp->conn.peer, fetch_rkey(wr)))
		return wr;
	return fetch_pass(qp, wr, access);
}
