# Alibaba eRDMA (erdma), Ethernet
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sources:
# [1]      public ibv_devinfo output (first lines), erdma_0; the same text tells
#          that UD and SRQs are missing
# [driver] Linux, drivers/infiniband/hw/erdma and drivers/infiniband/core
#          (repositories torvalds/linux and, newer, Aarav90-cpu/linux-kotlin)
# [lib]    rdma-core, providers/erdma (repository linux-rdma/rdma-core,
#          commit 691953d8)
#
# The driver presents an iWARP device.  urxe shows its GIDs as RoCE v2.

fw_ver               0.2.0                   # [1]
vendor_id            0x1ded                  # [driver] erdma_verbs.c
vendor_part_id       4223                    # [driver] erdma_verbs.c, [lib] erdma.c
page_size_cap        0x7ffff000              # [driver] erdma_verbs.h
device_cap_flags     0x00200000              # [driver] erdma_verbs.c
max_qp_wr            8192                    # [driver] erdma_verbs.c; the firmware may have less
max_sge              6                       # [driver] erdma_verbs.c; printed as 1
max_recv_sge         1                       # [driver] erdma_verbs.c
max_sge_rd           1                       # [driver] erdma_verbs.c
max_pd               131072                  # [driver] erdma_verbs.c
max_ah               0           EOPNOTSUPP  # [driver] erdma_verbs.c; errno: [lib] erdma.c
max_srq              0                       # [driver] erdma_verbs.c
max_srq_wr           0                       # [driver] erdma_verbs.c
max_srq_sge          0                       # [driver] erdma_verbs.c
max_qp_rd_atom       128                     # [driver] erdma_verbs.c
max_qp_init_rd_atom  128                     # [driver] erdma_verbs.c
max_mcast_grp        0                       # [driver] erdma_verbs.c
max_mcast_qp_attach  0                       # [driver] erdma_verbs.c
max_inline_rc        96                      # [driver] erdma_verbs.c, [lib] erdma_verbs.c
comp_vectors         31                      # [driver] erdma_main.c, on hosts of at least 31 CPUs
max_mtu              4096                    # [driver] erdma_verbs.c, with a netdev MTU above 4096
active_mtu           4096                    # [driver] erdma_verbs.c, with a netdev MTU above 4096
max_msg_sz           0xffffffff              # [driver] erdma_verbs.c
local_ca_ack_delay   0                       # [driver] erdma_verbs.c
max_vl_num           0                       # [driver] erdma_verbs.c
gid_types            ROCE_V2                 # urxe shows its GIDs as RoCE v2
qp_types             RC                      # [driver] erdma_verbs.c, [1]
send_ops             RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD SEND_WITH_INV  # [lib] erdma_verbs.c
access               LOCAL_WRITE REMOTE_WRITE REMOTE_READ REMOTE_ATOMIC MW_BIND ZERO_BASED HUGETLB  # [driver] erdma_verbs.c; MW_BIND, ZERO_BASED and HUGETLB have no effect
features                                     # [lib] erdma.c: none of the optional verbs
quirks               MEMLOCK                 # [driver] core/umem.c

# Not known: board_id, hw_ver, max_mr_size, max_qp, max_cq, max_cqe, max_mr, max_mw,
# active_width, active_speed, and whether atomic_cap is other than NONE.
# gid_tbl_len is 1 on the device (iWARP).  It is left out: in urxe, rdma_cm needs
# the GIDs of IP addresses.
