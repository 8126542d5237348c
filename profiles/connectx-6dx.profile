# NVIDIA ConnectX-6 Dx (mlx5_ib), Ethernet
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sources:
# [1]      public ibv_devinfo -vv output, ConnectX-6 Dx, bonded ports,
#          firmware 22.36.1010, MLNX_OFED
# [2]      public ibv_devinfo -v output, ConnectX-6 Dx MCX623106AN-CDA,
#          MLNX_OFED 5.8, kernel 5.15
# [3]      firmware capabilities of an MT4125 in the README of mlx5ctl
# [driver] Linux, drivers/infiniband/hw/mlx5 and drivers/infiniband/core
#          (repository torvalds/linux)
# [lib]    rdma-core, providers/mlx5 (repository linux-rdma/rdma-core,
#          commit 691953d8)
#
# EINVAL of `features` is the errno value of a change of max_wr by
# ibv_modify_srq(3); no other refusal of urxe uses it with this profile.

fw_ver               22.36.1010                  # [1]
board_id             MT_0000000359               # [1]
vendor_id            0x02c9                      # [1] [2]
vendor_part_id       4125                        # [1] [2]
hw_ver               0                           # [1] [2]
max_mr_size          0xffffffffffffffff          # [1] [2], [driver] main.c
page_size_cap        0xfffffffffffff000          # [1] [2]
device_cap_flags     0xed721c36                  # [1] [2]; Linux without MLNX_OFED: 0x25321c36
max_qp               131072                      # [1] [2] [3]
max_qp_wr            32768                       # [1] [2] [3]
max_sge              30                          # [1] [2]; the library accepts 52 (RC), 60 (UD)
max_recv_sge         30                          # [1] [2]; the library accepts 32
max_sge_rd           30                          # [1] [2], [driver] main.c
max_cq               16777216                    # [1] [2] [3]
max_cqe              4194303                     # [1] [2] [3]
max_mr               16777216                    # [1] [2] [3]
max_mw               16777216                    # [1] [2]
max_pd               8388608                     # [1] [2] [3]
max_ah               2147483647                  # [1] [2], [driver] main.c
max_srq              8388608                     # [1] [2] [3]
max_srq_wr           32767                       # [1] [2] [3]
max_srq_sge          31                          # [1] [2]
max_qp_rd_atom       16                          # [1] [2] [3]
max_qp_init_rd_atom  16                          # [1] [2]
max_mcast_grp        2097152                     # [1] [2] [3]
max_mcast_qp_attach  240                         # [1] [2] [3]
max_inline_rc        828                         # [lib] verbs.c, with send WQEs of 1024 bytes [3]
max_inline_uc        828                         # [lib] verbs.c, [3]
max_inline_ud        956                         # [lib] verbs.c, [3]
max_inline_xrc       812                         # [lib] verbs.c, [3]
max_dm_size          131072              EINVAL  # [1] [2]; errno: [lib] verbs.c
dm_unit              64                          # [driver] dm.c
comp_vectors         63                          # [1]; 48 in [2]: depends on the host
max_mtu              4096                        # [1] [2], [driver] main.c
active_mtu           4096                        # [1]; 1024 in [2], with a netdev MTU of 1500
max_msg_sz           0x40000000                  # [1] [2] [3]
gid_tbl_len          255                         # [1] [2] [3]
local_ca_ack_delay   16                          # [1] [2] [3]
active_width         16                          # [1] [2]: 2X, a port of 100 Gb/s
active_speed         64                          # [1] [2]: 50 Gb/s a lane
max_vl_num           0                           # [1] [2]
gid_types            ROCE_V1 ROCE_V2             # [1] [2]
qp_types             RC UC UD XRC_SEND XRC_RECV  # [driver] qp.c
send_ops             RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV  # [lib] qp.c
access               LOCAL_WRITE REMOTE_WRITE REMOTE_READ REMOTE_ATOMIC MW_BIND ZERO_BASED ON_DEMAND HUGETLB  # [driver] mr.c, odp.c, ODP: [1] [2]
features             SRQ XRC MW_1 MW_2 DM DMABUF ODP_IMPLICIT NULL_MR REREG_MR ADVISE_MR IMPORT CQ_EX CQ_TIMESTAMP RESIZE_CQ MODERATE_CQ QP_EX PARENT_DOMAIN MCAST ATOMIC CLOCK ECE  EINVAL  # [lib] mlx5.c, [driver] qp.c (no SQD), srq.c (no resize); ODP, atomics: [1] [2]
quirks               MEMLOCK                     # [driver] core/umem.c
