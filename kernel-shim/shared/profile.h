/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The profile of a device: the limits, features and attributes of a NIC that
 * it shows and enforces.  urxe-profile(5) describes the files that profiles
 * are read from (fabric/profile.c).  A profile adds nothing: a limit or
 * feature that urxe itself does not have is not shown.
 */
#pragma once

#include <stdint.h>

#include "limits.h"

/*
 * The keys of a profile.  An X-macro list:
 *
 *	LIMIT(name, own)	a number; own: the limit of urxe itself
 *	VALUE(name, own, most)	a number, at most `most`
 *	MASK(name, own)		a number; its bits are flags
 *	NAMES(name, own)	flags that have names, in fabric/profile_names.c
 *
 * The names of attributes are those that ibv_devinfo(1) prints.
 */
#define PROFILE_KEYS(LIMIT, VALUE, MASK, NAMES)                            \
	VALUE(vendor_id, 0x757278, UINT32_MAX) /* "urx", no OUI */         \
	VALUE(vendor_part_id, 1, UINT32_MAX)                               \
	VALUE(hw_ver, 1, UINT32_MAX)                                       \
	LIMIT(max_mr_size, UINT64_MAX)                                     \
	MASK(page_size_cap, UINT64_MAX)                                    \
	MASK(device_cap_flags, UINT32_MAX)                                 \
	LIMIT(max_qp, URXE_MAX_QP - 2)                                     \
	LIMIT(max_qp_wr, URXE_MAX_QP_WR)                                   \
	LIMIT(max_sge, URXE_MAX_SGE)                                       \
	LIMIT(max_recv_sge, URXE_MAX_SGE)                                  \
	LIMIT(max_sge_rd, URXE_MAX_SGE)                                    \
	LIMIT(max_cq, URXE_MAX_CQ - 1)                                     \
	LIMIT(max_cqe, URXE_MAX_CQE)                                       \
	LIMIT(max_mr, URXE_MAX_MR)                                         \
	LIMIT(max_mw, URXE_MAX_MW)                                         \
	LIMIT(max_pd, URXE_MAX_PD - 1)                                     \
	LIMIT(max_ah, URXE_MAX_AH)                                         \
	LIMIT(max_srq, URXE_MAX_SRQ - 1)                                   \
	LIMIT(max_srq_wr, URXE_MAX_SRQ_WR)                                 \
	LIMIT(max_srq_sge, URXE_MAX_SGE)                                   \
	LIMIT(max_qp_rd_atom, URXE_MAX_RD_ATOM)                            \
	LIMIT(max_qp_init_rd_atom, URXE_MAX_RD_ATOM)                       \
	LIMIT(max_mcast_grp, URXE_MAX_MCAST_GRP)                           \
	LIMIT(max_mcast_qp_attach, URXE_MAX_MCAST_ATTACH)                  \
	LIMIT(max_inline_rc, URXE_MAX_INLINE)                              \
	LIMIT(max_inline_uc, URXE_MAX_INLINE)                              \
	LIMIT(max_inline_ud, URXE_MAX_INLINE)                              \
	LIMIT(max_inline_xrc, URXE_MAX_INLINE)                             \
	LIMIT(max_dm_size, URXE_DM_MAX_BYTES)                              \
	VALUE(dm_unit, 1, 1 << 20) /* granularity of allocations, bytes */ \
	LIMIT(comp_vectors, URXE_NUM_COMP_VECTORS)                         \
	LIMIT(max_mtu, 4096)                                               \
	LIMIT(active_mtu, 4096)                                            \
	LIMIT(max_msg_sz, URXE_MAX_MSG)                                    \
	LIMIT(gid_tbl_len, URXE_MAX_GID)                                   \
	VALUE(local_ca_ack_delay, 0, 31)                                   \
	VALUE(active_width, 2, 255) /* 4X */                               \
	VALUE(active_speed, 64, 255) /* HDR */                             \
	VALUE(max_vl_num, 1, 15)                                           \
	NAMES(gid_types, UINT64_MAX)                                       \
	NAMES(qp_types, UINT64_MAX)                                        \
	NAMES(send_ops, UINT64_MAX)                                        \
	NAMES(access, UINT64_MAX)                                          \
	NAMES(features, UINT64_MAX)                                        \
	NAMES(quirks, 0)

enum profile_key {
#define KEY(name, ...) PROFILE_##name,
	PROFILE_KEYS(KEY, KEY, KEY, KEY)
#undef KEY
		PROFILE_KEYS_COUNT
};

/* Optional verbs, the bits of the key `features`. */
#define PROFILE_FEATURES(FEATURE) \
	FEATURE(SQD)              \
	FEATURE(SRQ)              \
	FEATURE(SRQ_RESIZE)       \
	FEATURE(XRC)              \
	FEATURE(MW_1)             \
	FEATURE(MW_2)             \
	FEATURE(DM)               \
	FEATURE(DMABUF)           \
	FEATURE(ODP_IMPLICIT)     \
	FEATURE(ODP_UC)           \
	FEATURE(ODP_UD_RECV)      \
	FEATURE(ODP_ATOMIC)       \
	FEATURE(NULL_MR)          \
	FEATURE(REREG_MR)         \
	FEATURE(ADVISE_MR)        \
	FEATURE(IMPORT)           \
	FEATURE(CQ_EX)            \
	FEATURE(CQ_TIMESTAMP)     \
	FEATURE(RESIZE_CQ)        \
	FEATURE(MODERATE_CQ)      \
	FEATURE(COMP_CNTR)        \
	FEATURE(QP_EX)            \
	FEATURE(PARENT_DOMAIN)    \
	FEATURE(MCAST)            \
	FEATURE(ATOMIC)           \
	FEATURE(CLOCK)            \
	FEATURE(ECE)

enum profile_feature_number {
#define FEATURE(name) PROFILE_NUMBER_##name,
	PROFILE_FEATURES(FEATURE)
#undef FEATURE
};
#define PROFILE_HAS(name) (1ull << PROFILE_NUMBER_##name)

/*
 * Bits of the key `quirks`: RLIMIT_MEMLOCK is enforced, as with
 * URXE_MEMLOCK=enforce; max_rd_atomic or max_dest_rd_atomic 0 in
 * ibv_modify_qp(3) is the limit of the device.
 */
#define PROFILE_MEMLOCK (1ull << 0)
#define PROFILE_RD_ATOMIC_0_IS_MAX (1ull << 1)

struct urxe_profile {
	char name[32]; /* "": the device has no profile */
	char fw_ver[64], board_id[64];
	uint64_t value[PROFILE_KEYS_COUNT];
	/* errno value if the limit is exceeded; 0: that of urxe */
	uint8_t error[PROFILE_KEYS_COUNT];
};
