# Soft RoCE of Linux (rdma_rxe), Ethernet
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sources:
# [1]      public ibv_devinfo -v output, two rxe devices, Linux on WSL
# [driver] Linux, drivers/infiniband/sw/rxe and drivers/infiniband/core
#          (repositories torvalds/linux, Kingxukai/linux, Aarav90-cpu/linux-kotlin)
# [lib]    rdma-core, providers/rxe (repository linux-rdma/rdma-core,
#          commit 691953d8)
#
# As before about Linux 6.15: without on-demand paging.  EINVAL is the errno value
# if there are too many objects of a kind ([driver] rxe_pool.c).

fw_ver               0.0.0                       # [1]
vendor_id            0xffffff                    # [1]
vendor_part_id       0                           # [1]
hw_ver               0                           # [1]
max_mr_size          0xffffffffffffffff          # [1]
page_size_cap        0xfffff000                  # [1]
device_cap_flags     0x01223c76                  # [1]
max_qp               1048560             EINVAL  # [1]
max_qp_wr            1048576                     # [1]
max_sge              32                          # [1]
max_recv_sge         32                          # [1]
max_sge_rd           32                          # [1]
max_cq               1048576             EINVAL  # [1]
max_cqe              32767                       # [1]
max_mr               524287              EINVAL  # [1]
max_mw               524287              EINVAL  # [1]
max_pd               1048576             EINVAL  # [1]
max_ah               32767               EINVAL  # [1]
max_srq              917503              EINVAL  # [1]
max_srq_wr           1048576                     # [1]
max_srq_sge          27                          # [1]
max_qp_rd_atom       128                         # [1]
max_qp_init_rd_atom  128                         # [1]
max_mcast_grp        8192                        # [1]
max_mcast_qp_attach  56                          # [1]
max_inline_rc        512                         # [driver] rxe_param.h, rxe_qp.c
max_inline_uc        512                         # [driver] rxe_param.h, rxe_qp.c
max_inline_ud        512                         # [driver] rxe_param.h, rxe_qp.c
comp_vectors         4                           # [1]; the number of CPUs
max_mtu              4096                        # [1]
active_mtu           1024                        # [1], with a netdev MTU of 1500
max_msg_sz           0x800000                    # [1]; newer Linux: 0x80000000
gid_tbl_len          1024                        # [1]
local_ca_ack_delay   15                          # [1]
active_width         1                           # [1]: 1X
active_speed         8                           # [1]: 10 Gb/s a lane
max_vl_num           1                           # [1]
gid_types            ROCE_V2                     # [1]
qp_types             RC UC UD                    # [driver] rxe_qp.c
send_ops             RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV FLUSH ATOMIC_WRITE  # [lib] rxe.c
access               LOCAL_WRITE REMOTE_WRITE REMOTE_READ REMOTE_ATOMIC MW_BIND FLUSH_GLOBAL FLUSH_PERSISTENT  # [driver] rxe_verbs.h; no ODP: [1]
features             SQD SRQ SRQ_RESIZE MW_1 MW_2 CQ_EX RESIZE_CQ QP_EX MCAST ATOMIC  # [lib] rxe.c, [driver] rxe_qp.c, rxe_srq.c, [1]
quirks               MEMLOCK                     # [driver] core/umem.c

# Not known: board_id.
