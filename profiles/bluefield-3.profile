# NVIDIA BlueField-3 (mlx5_ib), Ethernet
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sources:
# [1]      public ibv_devinfo output (in part), BlueField-3 B3220, InfiniBand
#          link layer, firmware 32.47.1088
# [2]      vendor_id of the other mlx5 NICs: public ibv_devinfo outputs,
#          ConnectX-6 Dx and ConnectX-7
# [3]      device_cap_flags of other mlx5 NICs without MLNX_OFED, which agree from
#          ConnectX-4 Lx to ConnectX-6 Lx; among them
#          https://github.com/openucx/ucx/issues/10317
# [driver] Linux, drivers/infiniband/hw/mlx5 and drivers/infiniband/core
#          (repository torvalds/linux)
# [lib]    rdma-core, providers/mlx5 (repository linux-rdma/rdma-core,
#          commit 691953d8)
# [assumed] as ConnectX-6 Dx: no public value of this NIC was found.  The limits
#          that ConnectX-6 Dx prints are the same on ConnectX-5 Ex.
#
# EINVAL of `features` is the errno value of a change of max_wr by
# ibv_modify_srq(3); no other refusal of urxe uses it with this profile.

fw_ver               32.47.1088                  # [1]
board_id             MT_0000000965               # [1]
vendor_id            0x02c9                      # [assumed] as [2]
vendor_part_id       41692                       # [1]
hw_ver               1                           # [1]
max_mr_size          0xffffffffffffffff          # [driver] main.c
page_size_cap        0xfffffffffffff000          # [driver] main.c, page size of the firmware: [assumed] as ConnectX-6 Dx
device_cap_flags     0x25321c36                  # [assumed] as [3]; InfiniBand link layer: 0x21361c36 [1]
max_qp               131072                      # [assumed] as ConnectX-6 Dx
max_qp_wr            32768                       # [assumed] as ConnectX-6 Dx
max_sge              30                          # [driver] main.c, WQE sizes of the firmware: [assumed] as ConnectX-6 Dx
max_recv_sge         30                          # [driver] main.c, WQE sizes of the firmware: [assumed] as ConnectX-6 Dx
max_sge_rd           30                          # [driver] main.c
max_cq               16777216                    # [assumed] as ConnectX-6 Dx
max_cqe              4194303                     # [assumed] as ConnectX-6 Dx
max_mr               16777216                    # [assumed] as ConnectX-6 Dx
max_mw               16777216                    # [assumed] as ConnectX-6 Dx; equals max_mr: [driver] main.c
max_pd               8388608                     # [assumed] as ConnectX-6 Dx
max_ah               2147483647                  # [driver] main.c
max_srq              8388608                     # [assumed] as ConnectX-6 Dx
max_srq_wr           32767                       # [assumed] as ConnectX-6 Dx
max_srq_sge          31                          # [driver] main.c, WQE size of the firmware: [assumed] as ConnectX-6 Dx
max_qp_rd_atom       16                          # [1]
max_qp_init_rd_atom  16                          # [assumed] as ConnectX-6 Dx
max_mcast_grp        2097152                     # [assumed] as ConnectX-6 Dx
max_mcast_qp_attach  240                         # [assumed] as ConnectX-6 Dx
max_inline_rc        828                         # [lib] verbs.c, WQE size of the firmware: [assumed] as ConnectX-6 Dx
max_inline_uc        828                         # [lib] verbs.c, WQE size of the firmware: [assumed] as ConnectX-6 Dx
max_inline_ud        956                         # [lib] verbs.c, WQE size of the firmware: [assumed] as ConnectX-6 Dx
max_inline_xrc       812                         # [lib] verbs.c, WQE size of the firmware: [assumed] as ConnectX-6 Dx
max_dm_size          131072              EINVAL  # [assumed] as ConnectX-6 Dx; errno: [lib] verbs.c
dm_unit              64                          # [driver] dm.c
max_mtu              4096                        # [driver] main.c
active_mtu           4096                        # [assumed] as ConnectX-6 Dx; 1024 with a netdev MTU of 1500
max_msg_sz           0x40000000                  # [assumed] as ConnectX-6 Dx
gid_tbl_len          255                         # [assumed] as ConnectX-6 Dx
local_ca_ack_delay   16                          # [assumed] as ConnectX-6 Dx
active_width         16                          # [driver] main.c: 2X, a port of 200 Gb/s
active_speed         128                         # [driver] main.c: 100 Gb/s a lane
max_vl_num           0                           # [driver] main.c
gid_types            ROCE_V1 ROCE_V2             # [assumed] as ConnectX-6 Dx
qp_types             RC UC UD XRC_SEND XRC_RECV  # [driver] qp.c
send_ops             RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV  # [lib] qp.c
access               LOCAL_WRITE REMOTE_WRITE REMOTE_READ REMOTE_ATOMIC MW_BIND ZERO_BASED ON_DEMAND HUGETLB  # [driver] mr.c, odp.c, ODP: [assumed] as ConnectX-6 Dx
features             SRQ XRC MW_1 MW_2 DM DMABUF ODP_IMPLICIT NULL_MR REREG_MR ADVISE_MR IMPORT CQ_EX CQ_TIMESTAMP RESIZE_CQ MODERATE_CQ QP_EX PARENT_DOMAIN MCAST ATOMIC CLOCK ECE  EINVAL  # [lib] mlx5.c, [driver] qp.c (no SQD), srq.c (no resize); atomics: [1]; ODP: [assumed] as ConnectX-6 Dx
quirks               MEMLOCK                     # [driver] core/umem.c

# Not known: comp_vectors (depends on the host).
