# Broadcom BCM57508 "Thor" (bnxt_re), Ethernet
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sources:
# [1]      public ibstat and rdma link outputs, Broadcom NetXtreme-E of 100 Gb/s
#          (model not given), https://github.com/openucx/ucx/issues/11048
# [2]      GIDs of a bnxt_re device, mailing list linux-rdma, February 2020
# [driver] Linux, drivers/infiniband/hw/bnxt_re and drivers/infiniband/core
#          (repository Kingxukai/linux, a mirror of 2025)
# [lib]    rdma-core, providers/bnxt_re (repository linux-rdma/rdma-core,
#          commit 691953d8)
#
# No public ibv_devinfo -v output was found: most limits come from the firmware
# and are not known.  The values are those of static WQEs.
# EINVAL of `features` is the errno value of a change of max_wr by
# ibv_modify_srq(3); verbs that the library lacks fail with EOPNOTSUPP.

fw_ver               231.0.154.0           # [1]
vendor_id            0x14e4                # [driver] ib_verbs.c
vendor_part_id       5968                  # [driver] ib_verbs.c: the PCI device, 0x1750: [lib] main.c
max_mr_size          0x8000000000  ENOMEM  # [driver] ib_verbs.c
page_size_cap        0x7ffff000            # [driver] ib_verbs.c
device_cap_flags     0x01225d81            # [driver] ib_verbs.c
max_sge              6                     # [driver] qplib_sp.c
max_recv_sge         6                     # [driver] qplib_sp.c
max_sge_rd           6                     # [driver] qplib_sp.c
max_cqe              1048575               # [driver] qplib_sp.c; the firmware may have less
max_pd               65536                 # [driver] qplib_sp.c
max_mcast_grp        0                     # [driver] ib_verbs.c
max_mcast_qp_attach  0                     # [driver] ib_verbs.c
max_inline_rc        96                    # [lib] verbs.c
max_inline_ud        96                    # [lib] verbs.c
max_mtu              4096                  # [driver] ib_verbs.c
active_mtu           1024                  # [driver] ib_verbs.c, with a netdev MTU of 1500
max_msg_sz           0x40000000            # [driver] ib_verbs.c
local_ca_ack_delay   16                    # [driver] ib_verbs.c
active_width         2                     # [1]: 100 Gb/s; [driver]: 4X
active_speed         32                    # [1]: 100 Gb/s; [driver]: 25 Gb/s a lane
max_vl_num           4                     # [driver] ib_verbs.c
gid_types            ROCE_V1 ROCE_V2       # [2]
qp_types             RC UD                 # [lib] verbs.c, [driver] ib_verbs.c
send_ops             RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD SEND_WITH_INV  # [lib] verbs.c
access               LOCAL_WRITE REMOTE_WRITE REMOTE_READ REMOTE_ATOMIC MW_BIND ZERO_BASED HUGETLB  # [driver] ib_verbs.c; HUGETLB has no effect
features             SQD SRQ DMABUF RESIZE_CQ QP_EX ATOMIC  EINVAL  # [lib] main.c, [driver] ib_verbs.c; ATOMIC: if PCIe routes atomic operations
quirks               MEMLOCK               # [driver] core/umem.c

# Not known: board_id, hw_ver, max_qp, max_qp_wr, max_cq, max_mr, max_mw, max_ah,
# max_srq, max_srq_wr, max_srq_sge, max_qp_rd_atom, max_qp_init_rd_atom,
# comp_vectors, gid_tbl_len.
