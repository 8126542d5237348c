/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The differences between the releases of libibverbs.  A new release usually
 * needs changes in this file only; table.py prints it from a source tree of
 * rdma-core.
 *
 * FAMILY(column, private ABI, symbol, operations, bytes): releases that have
 * the same operation table, oldest first.  They are identified by the number
 * in the name of their verbs_register_driver, and by a symbol if releases
 * with another table have that number, too: 34 and 35 have number 34, and 59
 * to 61 have number 59.  `operations` is the length of the table, `bytes` the
 * size of verbs_context in front of the ibv_context.  Both are the same on
 * all 64-bit machines.
 *
 * SLOT(name, columns...): the position of an operation in each table.  -1:
 * the release does not have it.
 */
#ifndef FAMILY
#define FAMILY(...)
#endif
#ifndef SLOT
#define SLOT(...)
#endif

FAMILY(0, 34, "ibv_query_qp_data_in_order", 76, 320) /* 36 to 48 */
FAMILY(0, 57, NULL, 76, 320) /* 49 to 58 */
FAMILY(1, 59, NULL, 79, 344) /* 59 to 61 */
FAMILY(2, 59, "ibv_dm_export_dmabuf_fd", 81, 352) /* 62 and 63 */
FAMILY(3, 64, NULL, 83, 368)
FAMILY(4, 65, NULL, 93, 368)
#define PABI_COLUMNS 5

SLOT(advise_mr, 0, 0, 0, 0, 0)
SLOT(alloc_buf, -1, -1, -1, 1, 1)
SLOT(alloc_dm, 1, 1, 1, 2, 2)
SLOT(alloc_dmah, -1, 2, 2, 3, 3)
SLOT(alloc_mw, 2, 3, 3, 4, 4)
SLOT(alloc_null_mr, 3, 4, 4, 5, 5)
SLOT(alloc_parent_domain, 4, 5, 5, 6, 6)
SLOT(alloc_pd, 5, 6, 6, 7, 7)
SLOT(alloc_td, 6, 7, 7, 8, 8)
SLOT(async_event, 7, 8, 8, 9, 9)
SLOT(attach_counters_point_flow, 8, 9, 9, 10, 10)
SLOT(attach_mcast, 9, 10, 10, 11, 11)
SLOT(bind_mw, 10, 11, 11, 12, 12)
SLOT(close_xrcd, 11, 12, 12, 13, 13)
SLOT(cq_event, 12, 13, 13, 14, 14)
SLOT(create_ah, 13, 14, 14, 15, 15)
SLOT(create_comp_cntr, -1, -1, -1, -1, 16)
SLOT(create_counters, 14, 15, 15, 16, 17)
SLOT(create_cq, 15, 16, 16, 17, 18)
SLOT(create_cq_ex, 16, 17, 17, 18, 19)
SLOT(create_flow, 17, 18, 18, 19, 20)
SLOT(create_flow_action_esp, 18, 19, 19, 20, 21)
SLOT(create_qp, 19, 20, 20, 21, 22)
SLOT(create_qp_ex, 20, 21, 21, 22, 23)
SLOT(create_rwq_ind_table, 21, 22, 22, 23, 24)
SLOT(create_srq, 22, 23, 23, 24, 25)
SLOT(create_srq_ex, 23, 24, 24, 25, 26)
SLOT(create_wq, 24, 25, 25, 26, 27)
SLOT(dealloc_dmah, -1, 26, 26, 27, 28)
SLOT(dealloc_mw, 25, 27, 27, 28, 29)
SLOT(dealloc_pd, 26, 28, 28, 29, 30)
SLOT(dealloc_td, 27, 29, 29, 30, 31)
SLOT(dereg_mr, 28, 30, 30, 31, 32)
SLOT(destroy_ah, 29, 31, 31, 32, 33)
SLOT(destroy_comp_cntr, -1, -1, -1, -1, 34)
SLOT(destroy_counters, 30, 32, 32, 33, 35)
SLOT(destroy_cq, 31, 33, 33, 34, 36)
SLOT(destroy_flow, 32, 34, 34, 35, 37)
SLOT(destroy_flow_action, 33, 35, 35, 36, 38)
SLOT(destroy_qp, 34, 36, 36, 37, 39)
SLOT(destroy_rwq_ind_table, 35, 37, 37, 38, 40)
SLOT(destroy_srq, 36, 38, 38, 39, 41)
SLOT(destroy_wq, 37, 39, 39, 40, 42)
SLOT(detach_mcast, 38, 40, 40, 41, 43)
SLOT(dm_export_dmabuf_fd, -1, -1, 41, 42, 44)
SLOT(free_buf, -1, -1, -1, 43, 45)
SLOT(free_context, 39, 41, 42, 44, 46)
SLOT(free_dm, 40, 42, 43, 45, 47)
SLOT(get_srq_num, 41, 43, 44, 46, 48)
SLOT(import_dm, 42, 44, 45, 47, 49)
SLOT(import_mr, 43, 45, 46, 48, 50)
SLOT(import_pd, 44, 46, 47, 49, 51)
SLOT(inc_comp_cntr, -1, -1, -1, -1, 52)
SLOT(inc_err_comp_cntr, -1, -1, -1, -1, 53)
SLOT(modify_cq, 45, 47, 48, 50, 54)
SLOT(modify_flow_action_esp, 46, 48, 49, 51, 55)
SLOT(modify_qp, 47, 49, 50, 52, 56)
SLOT(modify_qp_rate_limit, 48, 50, 51, 53, 57)
SLOT(modify_srq, 49, 51, 52, 54, 58)
SLOT(modify_wq, 50, 52, 53, 55, 59)
SLOT(open_qp, 51, 53, 54, 56, 60)
SLOT(open_xrcd, 52, 54, 55, 57, 61)
SLOT(poll_cq, 53, 55, 56, 58, 62)
SLOT(post_recv, 54, 56, 57, 59, 63)
SLOT(post_send, 55, 57, 58, 60, 64)
SLOT(post_srq_ops, 56, 58, 59, 61, 65)
SLOT(post_srq_recv, 57, 59, 60, 62, 66)
SLOT(qp_attach_comp_cntr, -1, -1, -1, -1, 67)
SLOT(query_comp_cntr_caps, -1, -1, -1, -1, 68)
SLOT(query_device_ex, 58, 60, 61, 63, 69)
SLOT(query_ece, 59, 61, 62, 64, 70)
SLOT(query_port, 60, 62, 63, 65, 71)
SLOT(query_port_speed, -1, -1, 64, 66, 72)
SLOT(query_qp, 61, 63, 65, 67, 73)
SLOT(query_qp_data_in_order, 62, 64, 66, 68, 74)
SLOT(query_rt_values, 63, 65, 67, 69, 75)
SLOT(query_srq, 64, 66, 68, 70, 76)
SLOT(read_comp_cntr, -1, -1, -1, -1, 77)
SLOT(read_counters, 65, 67, 69, 71, 78)
SLOT(read_err_comp_cntr, -1, -1, -1, -1, 79)
SLOT(reg_dm_mr, 66, 68, 70, 72, 80)
SLOT(reg_dmabuf_mr, 67, 69, 71, 73, 81)
SLOT(reg_mr, 68, 70, 72, 74, 82)
SLOT(reg_mr_ex, -1, 71, 73, 75, 83)
SLOT(req_notify_cq, 69, 72, 74, 76, 84)
SLOT(rereg_mr, 70, 73, 75, 77, 85)
SLOT(resize_cq, 71, 74, 76, 78, 86)
SLOT(set_comp_cntr, -1, -1, -1, -1, 87)
SLOT(set_ece, 72, 75, 77, 79, 88)
SLOT(set_err_comp_cntr, -1, -1, -1, -1, 89)
SLOT(unimport_dm, 73, 76, 78, 80, 90)
SLOT(unimport_mr, 74, 77, 79, 81, 91)
SLOT(unimport_pd, 75, 78, 80, 82, 92)

#undef FAMILY
#undef SLOT
