/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operations that urxe implements (urxe_NAME in verbs/), with the
 * arguments of libibverbs' table.  An X-macro list: define these macros, or
 * OP(result, name, params) for all of them, before including it.
 *
 *	CODE(name, params, args)		returns 0 or an errno value
 *	FAST(name, params, args)		the data path, and results that
 *						are not errno values
 *	MAKE(result, name, params, args)	returns an object, or NULL and
 *						errno
 *	NONE(name, params, args)		returns nothing
 *
 * slots.h has the position of each operation in the table.
 */
#ifdef OP
#define CODE(name, params, args) OP(int, name, params)
#define FAST(name, params, args) OP(int, name, params)
#define MAKE(result, name, params, args) OP(result, name, params)
#define NONE(name, params, args) OP(void, name, params)
#endif

CODE(advise_mr,
     (struct ibv_pd *pd, enum ib_uverbs_advise_mr_advice advice,
      uint32_t flags, struct ibv_sge *sge, uint32_t n),
     (pd, advice, flags, sge, n))
MAKE(struct ibv_dm *, alloc_dm,
     (struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr), (ctx, attr))
MAKE(struct ibv_mw *, alloc_mw, (struct ibv_pd *pd, enum ibv_mw_type type),
     (pd, type))
MAKE(struct ibv_mr *, alloc_null_mr, (struct ibv_pd *pd), (pd))
MAKE(struct ibv_pd *, alloc_parent_domain,
     (struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr),
     (ctx, attr))
MAKE(struct ibv_pd *, alloc_pd, (struct ibv_context *ctx), (ctx))
MAKE(struct ibv_td *, alloc_td,
     (struct ibv_context *ctx, struct ibv_td_init_attr *attr), (ctx, attr))
NONE(async_event, (struct ibv_context *ctx, struct ibv_async_event *event),
     (ctx, event))
CODE(attach_mcast, (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),
     (qp, gid, lid))
CODE(bind_mw, (struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind),
     (qp, mw, bind))
CODE(close_xrcd, (struct ibv_xrcd *xrcd), (xrcd))
NONE(cq_event, (struct ibv_cq *cq), (cq))
MAKE(struct ibv_ah *, create_ah, (struct ibv_pd *pd, struct ibv_ah_attr *attr),
     (pd, attr))
MAKE(struct ibv_comp_cntr *, create_comp_cntr,
     (struct ibv_context *ctx, struct ibv_comp_cntr_init_attr *attr),
     (ctx, attr))
MAKE(struct ibv_cq *, create_cq,
     (struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel,
      int vector),
     (ctx, cqe, channel, vector))
MAKE(struct ibv_cq_ex *, create_cq_ex,
     (struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr), (ctx, attr))
MAKE(struct ibv_qp *, create_qp,
     (struct ibv_pd *pd, struct ibv_qp_init_attr *init), (pd, init))
MAKE(struct ibv_qp *, create_qp_ex,
     (struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr), (ctx, attr))
MAKE(struct ibv_srq *, create_srq,
     (struct ibv_pd *pd, struct ibv_srq_init_attr *attr), (pd, attr))
MAKE(struct ibv_srq *, create_srq_ex,
     (struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr), (ctx, attr))
CODE(dealloc_mw, (struct ibv_mw *mw), (mw))
CODE(dealloc_pd, (struct ibv_pd *pd), (pd))
CODE(dealloc_td, (struct ibv_td *td), (td))
CODE(dereg_mr, (struct pabi_mr *mr), (mr))
CODE(destroy_ah, (struct ibv_ah *ah), (ah))
CODE(destroy_comp_cntr, (struct ibv_comp_cntr *cntr), (cntr))
CODE(destroy_cq, (struct ibv_cq *cq), (cq))
CODE(destroy_qp, (struct ibv_qp *qp), (qp))
CODE(destroy_srq, (struct ibv_srq *srq), (srq))
CODE(detach_mcast, (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),
     (qp, gid, lid))
FAST(dm_export_dmabuf_fd, (struct ibv_dm *dm), (dm))
NONE(free_context, (struct ibv_context *ctx), (ctx))
CODE(free_dm, (struct ibv_dm *dm), (dm))
CODE(get_srq_num, (struct ibv_srq *srq, uint32_t *num), (srq, num))
MAKE(struct ibv_dm *, import_dm, (struct ibv_context *ctx, uint32_t handle),
     (ctx, handle))
MAKE(struct ibv_mr *, import_mr, (struct ibv_pd *pd, uint32_t handle),
     (pd, handle))
MAKE(struct ibv_pd *, import_pd, (struct ibv_context *ctx, uint32_t handle),
     (ctx, handle))
CODE(inc_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t amount),
     (cntr, amount))
CODE(inc_err_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t amount),
     (cntr, amount))
CODE(modify_cq, (struct ibv_cq *cq, struct ibv_modify_cq_attr *attr),
     (cq, attr))
CODE(modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask),
     (qp, attr, mask))
CODE(modify_srq, (struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask),
     (srq, attr, mask))
MAKE(struct ibv_qp *, open_qp,
     (struct ibv_context *ctx, struct ibv_qp_open_attr *attr), (ctx, attr))
MAKE(struct ibv_xrcd *, open_xrcd,
     (struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr), (ctx, attr))
FAST(poll_cq, (struct ibv_cq *cq, int n, struct ibv_wc *wc), (cq, n, wc))
FAST(post_recv,
     (struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),
     (qp, wr, bad))
FAST(post_send,
     (struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad),
     (qp, wr, bad))
FAST(post_srq_recv,
     (struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),
     (srq, wr, bad))
CODE(qp_attach_comp_cntr,
     (struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
      struct ibv_qp_attach_comp_cntr_attr *attr),
     (qp, cntr, attr))
CODE(query_comp_cntr_caps,
     (struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps, size_t size),
     (ctx, caps, size))
CODE(query_device_ex,
     (struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
      struct ibv_device_attr_ex *attr, size_t size),
     (ctx, input, attr, size))
CODE(query_ece, (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece))
CODE(query_port,
     (struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr),
     (ctx, port, attr))
CODE(query_port_speed,
     (struct ibv_context *ctx, uint32_t port, uint64_t *speed),
     (ctx, port, speed))
CODE(query_qp,
     (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
      struct ibv_qp_init_attr *init),
     (qp, attr, mask, init))
FAST(query_qp_data_in_order,
     (struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags),
     (qp, op, flags))
CODE(query_rt_values, (struct ibv_context *ctx, struct ibv_values_ex *values),
     (ctx, values))
CODE(query_srq, (struct ibv_srq *srq, struct ibv_srq_attr *attr), (srq, attr))
CODE(read_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t *value),
     (cntr, value))
CODE(read_err_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t *value),
     (cntr, value))
MAKE(struct ibv_mr *, reg_dm_mr,
     (struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
      unsigned int access),
     (pd, dm, offset, length, access))
MAKE(struct ibv_mr *, reg_dmabuf_mr,
     (struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
      int access),
     (pd, offset, length, iova, fd, access))
MAKE(struct ibv_mr *, reg_mr,
     (struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access),
     (pd, addr, length, iova, access))
MAKE(struct ibv_mr *, reg_mr_ex,
     (struct ibv_pd *pd, struct ibv_mr_init_attr *attr), (pd, attr))
FAST(req_notify_cq, (struct ibv_cq *cq, int solicited_only),
     (cq, solicited_only))
CODE(rereg_mr,
     (struct pabi_mr *mr, int flags, struct ibv_pd *pd, void *addr,
      size_t length, int access),
     (mr, flags, pd, addr, length, access))
CODE(resize_cq, (struct ibv_cq *cq, int cqe), (cq, cqe))
CODE(set_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t value),
     (cntr, value))
CODE(set_ece, (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece))
CODE(set_err_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t value),
     (cntr, value))
NONE(unimport_dm, (struct ibv_dm *dm), (dm))
NONE(unimport_mr, (struct ibv_mr *mr), (mr))
NONE(unimport_pd, (struct ibv_pd *pd), (pd))

#undef CODE
#undef FAST
#undef MAKE
#undef NONE
