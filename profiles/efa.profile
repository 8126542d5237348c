# AWS EFA 0xefa1 (efa), link layer unspecified, UD only
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sources:
# [1]      public ibv_devinfo -v outputs, EFA devices 0xefa0, 0xefa2 and 0xefa3
# [2]      public fi_info -v output of libfabric, EFA device 0xefa1; prov/efa of
#          repository ofiwg/libfabric tells what attributes it shows
# [3]      https://github.com/ofiwg/libfabric/pull/12858
# [driver] EFA driver 3.1.0, kernel/linux/efa (repository amzn/amzn-drivers)
# [core]   Linux, drivers/infiniband/core (repository torvalds/linux)
# [lib]    rdma-core, providers/efa (repository linux-rdma/rdma-core,
#          commit 691953d8)
#
# urxe shows its GIDs as RoCE v2.  SRD, the other transport of EFA, has no
# equivalent in urxe.

fw_ver               0.0.0.0      # [1] [2]
vendor_id            0x1d0f       # [1] [2]
vendor_part_id       61345        # [2]
hw_ver               0xefa1       # [assumed] the device id, as in [1]
device_cap_flags     0x00000000   # [1] (0xefa3)
max_qp               256          # [2]
max_qp_wr            4096         # [2], [lib] verbs.c; the send queue has at least 4096
max_sge              2            # [2]; [1] (0xefa3)
max_recv_sge         3            # [2]
max_cq               512          # [2]
max_mr               262144       # [2]; 524288 in [1] (0xefa3)
max_mw               0            # [driver] efa_verbs.c
max_srq              0            # [driver] efa_verbs.c
max_srq_wr           0            # [driver] efa_verbs.c
max_srq_sge          0            # [driver] efa_verbs.c
max_qp_rd_atom       0            # [1]
max_qp_init_rd_atom  0            # [1]
max_mcast_grp        0            # [driver] efa_verbs.c
max_mcast_qp_attach  0            # [driver] efa_verbs.c
max_inline_ud        32           # [3], [lib] verbs.c
max_mtu              4096         # [1]
active_mtu           4096         # [1]
max_msg_sz           8928         # [2]; urxe sends datagrams of at most active_mtu bytes
gid_tbl_len          2            # [driver] efa_verbs.c: 1, which urxe does not support
local_ca_ack_delay   0            # [driver] efa_verbs.c
active_width         2            # [driver] efa_verbs.c: 4X, for 100 Gb/s
active_speed         32           # [driver] efa_verbs.c: 25 Gb/s a lane
max_vl_num           1            # [driver] efa_verbs.c
gid_types            ROCE_V2      # urxe shows its GIDs as RoCE v2
qp_types             UD           # [lib] verbs.c; SRD is not in urxe
send_ops             SEND SEND_WITH_IMM  # [lib] verbs.c
access               LOCAL_WRITE  # [driver] efa_verbs.c; REMOTE_READ and REMOTE_WRITE only on some devices
features             SQD DMABUF CQ_EX QP_EX PARENT_DOMAIN  # [lib] efa.c, [driver] efa_verbs.c
quirks               MEMLOCK      # [core] umem.c

# Not known: board_id, max_mr_size, page_size_cap, max_sge_rd, max_cqe, max_pd,
# max_ah, comp_vectors.
