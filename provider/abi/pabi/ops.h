/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operations that urxe serves (urxe_NAME in verbs/), as core calls them:
 * OP(result, name, arguments).  slots.h says where each stands.
 */
OP(int, advise_mr, (struct ibv_pd *, enum ib_uverbs_advise_mr_advice, uint32_t,
		    struct ibv_sge *, uint32_t))
OP(struct ibv_dm *, alloc_dm, (struct ibv_context *,
			       struct ibv_alloc_dm_attr *))
OP(struct ibv_mw *, alloc_mw, (struct ibv_pd *, enum ibv_mw_type))
OP(struct ibv_mr *, alloc_null_mr, (struct ibv_pd *))
OP(struct ibv_pd *, alloc_parent_domain,
   (struct ibv_context *, struct ibv_parent_domain_init_attr *))
OP(struct ibv_pd *, alloc_pd, (struct ibv_context *))
OP(struct ibv_td *, alloc_td, (struct ibv_context *, struct ibv_td_init_attr *))
OP(int, attach_mcast, (struct ibv_qp *, const union ibv_gid *, uint16_t))
OP(int, bind_mw, (struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *))
OP(int, close_xrcd, (struct ibv_xrcd *))
OP(void, cq_event, (struct ibv_cq *))
OP(struct ibv_ah *, create_ah, (struct ibv_pd *, struct ibv_ah_attr *))
OP(struct ibv_cq *, create_cq, (struct ibv_context *, int,
				struct ibv_comp_channel *, int))
OP(struct ibv_cq_ex *, create_cq_ex, (struct ibv_context *,
				      struct ibv_cq_init_attr_ex *))
OP(struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *))
OP(struct ibv_qp *, create_qp_ex, (struct ibv_context *,
				   struct ibv_qp_init_attr_ex *))
OP(struct ibv_srq *, create_srq, (struct ibv_pd *, struct ibv_srq_init_attr *))
OP(struct ibv_srq *, create_srq_ex, (struct ibv_context *,
				     struct ibv_srq_init_attr_ex *))
OP(int, dealloc_mw, (struct ibv_mw *))
OP(int, dealloc_pd, (struct ibv_pd *))
OP(int, dealloc_td, (struct ibv_td *))
OP(int, dereg_mr, (struct pabi_mr *))
OP(int, destroy_ah, (struct ibv_ah *))
OP(int, destroy_cq, (struct ibv_cq *))
OP(int, destroy_qp, (struct ibv_qp *))
OP(int, destroy_srq, (struct ibv_srq *))
OP(int, detach_mcast, (struct ibv_qp *, const union ibv_gid *, uint16_t))
OP(void, free_context, (struct ibv_context *))
OP(int, free_dm, (struct ibv_dm *))
OP(int, get_srq_num, (struct ibv_srq *, uint32_t *))
OP(struct ibv_dm *, import_dm, (struct ibv_context *, uint32_t))
OP(struct ibv_mr *, import_mr, (struct ibv_pd *, uint32_t))
OP(struct ibv_pd *, import_pd, (struct ibv_context *, uint32_t))
OP(int, modify_cq, (struct ibv_cq *, struct ibv_modify_cq_attr *))
OP(int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))
OP(int, modify_srq, (struct ibv_srq *, struct ibv_srq_attr *, int))
OP(struct ibv_qp *, open_qp, (struct ibv_context *, struct ibv_qp_open_attr *))
OP(struct ibv_xrcd *, open_xrcd, (struct ibv_context *,
				  struct ibv_xrcd_init_attr *))
OP(int, poll_cq, (struct ibv_cq *, int, struct ibv_wc *))
OP(int, post_recv, (struct ibv_qp *, struct ibv_recv_wr *,
		    struct ibv_recv_wr **))
OP(int, post_send, (struct ibv_qp *, struct ibv_send_wr *,
		    struct ibv_send_wr **))
OP(int, post_srq_recv, (struct ibv_srq *, struct ibv_recv_wr *,
			struct ibv_recv_wr **))
OP(int, query_device_ex, (struct ibv_context *,
			  const struct ibv_query_device_ex_input *,
			  struct ibv_device_attr_ex *, size_t))
OP(int, query_port, (struct ibv_context *, uint8_t, struct ibv_port_attr *))
OP(int, query_qp, (struct ibv_qp *, struct ibv_qp_attr *, int,
		   struct ibv_qp_init_attr *))
OP(int, query_qp_data_in_order, (struct ibv_qp *, enum ibv_wr_opcode, uint32_t))
OP(int, query_rt_values, (struct ibv_context *, struct ibv_values_ex *))
OP(int, query_srq, (struct ibv_srq *, struct ibv_srq_attr *))
OP(struct ibv_mr *, reg_dm_mr, (struct ibv_pd *, struct ibv_dm *, uint64_t,
				size_t, unsigned int))
OP(struct ibv_mr *, reg_dmabuf_mr, (struct ibv_pd *, uint64_t, size_t, uint64_t,
				    int, int))
OP(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, uint64_t, int))
OP(struct ibv_mr *, reg_mr_ex, (struct ibv_pd *, struct ibv_mr_init_attr *))
OP(int, req_notify_cq, (struct ibv_cq *, int))
OP(int, rereg_mr, (struct pabi_mr *, int, struct ibv_pd *, void *, size_t, int))
OP(int, resize_cq, (struct ibv_cq *, int))
OP(void, unimport_dm, (struct ibv_dm *))
OP(void, unimport_mr, (struct ibv_mr *))
OP(void, unimport_pd, (struct ibv_pd *))
