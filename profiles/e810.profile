# Intel E810 (irdma), Ethernet, RoCE v2 mode
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sources:
# [1]      public ibv_devinfo -v output, E810, firmware 1.54, irdma of Linux
# [driver] Linux, drivers/infiniband/hw/irdma and drivers/infiniband/core
#          (repository torvalds/linux; newer: intel-lab-lkp/linux)
# [lib]    rdma-core, providers/irdma (repository linux-rdma/rdma-core,
#          commit 691953d8)
#
# With the driver that Intel distributes outside of Linux, an E810 has other
# limits: https://github.com/deepseek-ai/3FS/issues/192 (max_qp 4092, max_sge 6).

fw_ver               1.54            # [1]
vendor_id            0x8086          # [1]
vendor_part_id       5522            # [1]
hw_ver               2               # [1]
max_mr_size          0x200000000000  # [1]
page_size_cap        0x40201000      # [1]
device_cap_flags     0x00229000      # [1]; since about Linux 5.19: 0x00221000
max_qp               65533           # [1]
max_qp_wr            4063            # [1]
max_sge              13              # [1], [lib] uverbs.c
max_recv_sge         13              # [1], [lib] uverbs.c
max_sge_rd           13              # [1]
max_cq               131069          # [1]
max_cqe              1048574         # [1]
max_mr               2097150         # [1]
max_mw               2097150         # [1]
max_pd               262141          # [1]
max_ah               131072          # [1]
max_srq              0               # [1]
max_srq_wr           0               # [1]
max_srq_sge          0               # [1]
max_qp_rd_atom       127             # [1]
max_qp_init_rd_atom  255             # [1]
max_mcast_grp        65536           # [1]
max_mcast_qp_attach  8               # [1]
max_inline_rc        101             # [lib] uverbs.c
max_inline_ud        101             # [lib] uverbs.c
comp_vectors         48              # [1]; depends on the host
max_mtu              4096            # [1]
active_mtu           1024            # [1], with a netdev MTU of 1500
max_msg_sz           0x7fffffff      # [1]
gid_tbl_len          32              # [1]
local_ca_ack_delay   0               # [1]
active_width         2               # [1]: 4X
active_speed         32              # [1]: 25 Gb/s a lane
max_vl_num           0               # [1]
gid_types            ROCE_V2         # [1]
qp_types             RC UD           # [driver] verbs.c, [lib] uverbs.c
send_ops             RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ LOCAL_INV BIND_MW SEND_WITH_INV  # [lib] uverbs.c
access               LOCAL_WRITE REMOTE_WRITE REMOTE_READ REMOTE_ATOMIC MW_BIND ZERO_BASED HUGETLB  # [driver] verbs.c; REMOTE_ATOMIC and HUGETLB have no effect
features             SQD MW_1 MW_2 DMABUF REREG_MR CQ_EX RESIZE_CQ MCAST  # [lib] umain.c, [driver] verbs.c; DMABUF and REREG_MR: newer Linux
quirks               MEMLOCK RD_ATOMIC_0_IS_MAX  # [driver] core/umem.c, verbs.c

# Not known: board_id.
