/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The layout version, the limits of the device, and the names and modes of the
 * files of a fabric.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

/*
 * Version of the shared layout.  The build computes it from the text of all
 * headers in kernel-shim/shared and kernel-shim/base.  All shared structures
 * and the protocols on them must therefore be defined there and nowhere else.
 */
extern const uint32_t urxe_layout_version;

#define URXE_LINE 64 /* cache line for alignment: a hint, not an assumption */
/* unit of both allocators, whatever the CPU's page size */
#define URXE_PAGE 4096

/*
 * Device limits.  The values that ibv_query_device reports are enforced.
 * Limits on QPs, XRC domains and device memory apply to the fabric, the
 * others to each context.
 */
#define URXE_MAX_HCA 1024 /* devices of a fabric */
#define URXE_HOST_HCAS 8 /* devices of a host; one digit of their numbers */
#define URXE_MAX_HOST URXE_MAX_HCA
#define URXE_MAX_SWITCH 128
#define URXE_SWITCH_PORTS 64 /* of each switch */
#define URXE_MAX_CTX 512 /* 9 bits of every lkey and rkey */
#define URXE_MAX_PROCESS 4096 /* 12 bits of a process id */
#define URXE_GEN_MASK 0x7fffffffu /* a slot generation has 31 bits */
#define URXE_MAX_QP 8192 /* 13 bits of every QPN */
#define URXE_MAX_CQ 8192
#define URXE_MAX_SRQ 4096
#define URXE_MAX_PD 8192
#define URXE_MAX_KEY 32768 /* MRs and MWs of one context: 15 bits of a key */
#define URXE_MAX_MR (URXE_MAX_KEY - 1) /* MRs and MWs share the key table */
#define URXE_MAX_MW (URXE_MAX_KEY - 1)
#define URXE_MAX_AH INT32_MAX /* AHs are stored in no table */
#define URXE_MAX_XRCD 256
#define URXE_MAX_COMP_CNTR 4096
#define URXE_MAX_DM 16384 /* one per allocation unit: URXE_DM_UNIT */
#define URXE_MAX_GID 256 /* as on ConnectX: 2 for each address */
#define URXE_MAX_PKEY 32 /* of an InfiniBand port; an Ethernet port has 1 */
#define URXE_MAX_MCAST_GRP 256
#define URXE_MAX_MCAST_ATTACH 64 /* QPs per group */
#define URXE_MAX_QP_WR 16384
#define URXE_MAX_CQE 262144 /* the default request of libfabric */
#define URXE_MAX_SRQ_WR 16384
#define URXE_MAX_SGE 32
#define URXE_MAX_INLINE 1024
#define URXE_MAX_RD_ATOM 16
#define URXE_MAX_MSG (1u << 30)
#define URXE_NUM_COMP_VECTORS 8
#define URXE_QPN_MASK 0xffffffu /* QP numbers have 24 bits */
#define URXE_PSN_MASK 0xffffffu /* packet sequence numbers have 24 bits */
/* IB 10.5: destination QP of multicast datagrams */
#define URXE_MCAST_QPN 0xffffffu
#define URXE_DM_MAX_BYTES (1ull << 30)
/*
 * Device-memory allocation unit in pages.  For any heap size, the heap is
 * exhausted before dm[] is.
 */
#define URXE_DM_UNIT(heap_pages) \
	(((uint32_t)(heap_pages) + URXE_MAX_DM - 1) / URXE_MAX_DM)
#define URXE_DM_FIRST 1024 /* dm[] entries that get memory at a time */

enum urxe_obj {
	URXE_OBJ_PD,
	URXE_OBJ_MR,
	URXE_OBJ_MW,
	URXE_OBJ_CQ,
	URXE_OBJ_QP,
	URXE_OBJ_SRQ,
	URXE_OBJ_AH,
	URXE_OBJ_XRCD,
	URXE_OBJ_DM,
	URXE_OBJ_COMP_CNTR,
	URXE_OBJ_COUNT
};

/*
 * File modes and sizes by which fstat() identifies CM channels, stand-ins for
 * character devices, and attributes that cannot be read.
 */
#define CM_FIFO_MODE (S_IFIFO | 01600)
#define UMAD_FIFO_MODE (S_IFIFO | 03600)
#define TREE_CDEV_MODE (S_IFREG | 01600)
#define TREE_CDEV_SIZE 0x7570 /* + number of the device */
#define TREE_CM_SIZE 0x7579 /* /dev/infiniband/rdma_cm */
#define TREE_UMAD_SIZE 0x7580 /* + number of the device */
#define TREE_ISSM_SIZE 0x7588 /* + number of the device */
/* attribute of an empty GID slot: read fails */
#define TREE_EINVAL_MODE (S_IFREG | 01400)
#define URXE_ARENA_NAME "ctx/%u.%u" /* slot, generation */
#define URXE_FIFO_NAME "ev/%u.%u.%u" /* slot, generation, number */
/* suffix of the name until a reader has opened it */
#define URXE_FIFO_NASCENT '+'
