// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "context.h"
#include "ops.h"
#include "verbs/ah.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/dm.h"
#include "verbs/import.h"
#include "verbs/mcast.h"
#include "verbs/mr.h"
#include "verbs/mw.h"
#include "verbs/odp.h"
#include "verbs/parent_domain.h"
#include "verbs/pd.h"
#include "verbs/qp.h"
#include "verbs/srq.h"
#include "verbs/xrc.h"

const struct pabi_ops urxe_ops = {
	.advise_mr = urxe_advise_mr,
	.alloc_dm = urxe_alloc_dm,
	.alloc_mw = urxe_alloc_mw,
	.alloc_null_mr = urxe_alloc_null_mr,
	.alloc_parent_domain = urxe_alloc_parent_domain,
	.alloc_pd = urxe_alloc_pd,
	.alloc_td = urxe_alloc_td,
	.attach_mcast = urxe_attach_mcast,
	.bind_mw = urxe_bind_mw,
	.close_xrcd = urxe_close_xrcd,
	.cq_event = urxe_cq_event,
	.create_ah = urxe_create_ah,
	.create_cq = urxe_create_cq,
	.create_cq_ex = urxe_create_cq_ex,
	.create_qp = urxe_create_qp,
	.create_qp_ex = urxe_create_qp_ex,
	.create_srq = urxe_create_srq,
	.create_srq_ex = urxe_create_srq_ex,
	.dealloc_mw = urxe_dealloc_mw,
	.dealloc_pd = urxe_dealloc_pd,
	.dealloc_td = urxe_dealloc_td,
	.dereg_mr = urxe_dereg_mr,
	.destroy_ah = urxe_destroy_ah,
	.destroy_cq = urxe_destroy_cq,
	.destroy_qp = urxe_destroy_qp,
	.destroy_srq = urxe_destroy_srq,
	.detach_mcast = urxe_detach_mcast,
	.free_context = urxe_free_context,
	.free_dm = urxe_free_dm,
	.get_srq_num = urxe_get_srq_num,
	.import_dm = urxe_import_dm,
	.import_mr = urxe_import_mr,
	.import_pd = urxe_import_pd,
	.modify_cq = urxe_modify_cq,
	.modify_qp = urxe_modify_qp,
	.modify_srq = urxe_modify_srq,
	.open_qp = urxe_open_qp,
	.open_xrcd = urxe_open_xrcd,
	.poll_cq = urxe_poll_cq,
	.post_recv = urxe_post_recv,
	.post_send = urxe_post_send,
	.post_srq_recv = urxe_post_srq_recv,
	.query_device_ex = urxe_query_device_ex,
	.query_port = urxe_query_port,
	.query_qp = urxe_query_qp,
	.query_qp_data_in_order = urxe_query_qp_data_in_order,
	.query_rt_values = urxe_query_rt_values,
	.query_srq = urxe_query_srq,
	.reg_dm_mr = urxe_reg_dm_mr,
	.reg_dmabuf_mr = urxe_reg_dmabuf_mr,
	.reg_mr = urxe_reg_mr,
	.reg_mr_ex = urxe_reg_mr_ex,
	.req_notify_cq = urxe_req_notify_cq,
	.rereg_mr = urxe_rereg_mr,
	.resize_cq = urxe_resize_cq,
	.unimport_dm = urxe_unimport_dm,
	.unimport_mr = urxe_unimport_mr,
	.unimport_pd = urxe_unimport_pd,
};
