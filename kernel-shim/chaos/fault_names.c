// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The tables of names that fault rules can use (fault_names.h). */
#include <errno.h>
#include <infiniband/verbs.h>

#include "fault_names.h"

const char *const fault_call_name[FAULT_CALLS] = {
#define VERB(name) "ibv_" #name,
#define RDMA(name) "rdma_" #name,
#include "fault_calls.h"
};

#define E(name) { #name, name }
const struct fault_name fault_errnos[] = {
	E(EACCES),	  E(EADDRINUSE),   E(EADDRNOTAVAIL), E(EAGAIN),
	E(EBADF),	  E(EBUSY),	   E(ECONNREFUSED),  E(ECONNRESET),
	E(EEXIST),	  E(EFAULT),	   E(EHOSTUNREACH),  E(EINTR),
	E(EINVAL),	  E(EIO),	   E(EMFILE),	     E(EMSGSIZE),
	E(ENETUNREACH),	  E(ENFILE),	   E(ENOBUFS),	     E(ENODEV),
	E(ENOENT),	  E(ENOMEM),	   E(ENOSPC),	     E(ENOSYS),
	E(ENOTCONN),	  E(ENXIO),	   E(EOPNOTSUPP),    E(EPERM),
	E(EPROTO),	  E(EPROTONOSUPPORT), E(ERANGE),     E(ESTALE),
	E(ETIMEDOUT),
	{ 0 },
};
#undef E

const struct fault_name fault_transmits[] = {
	{ "LOST", FAULT_LOST },
	{ "DUPLICATED", FAULT_DUPLICATED },
	{ "LATE", FAULT_LATE },
	{ "DAMAGED", FAULT_DAMAGED },
	{ 0 },
};

const struct fault_name fault_types[] = {
	{ "RC", IBV_QPT_RC },
	{ "UC", IBV_QPT_UC },
	{ "UD", IBV_QPT_UD },
	{ "XRC_SEND", IBV_QPT_XRC_SEND },
	{ "XRC_RECV", IBV_QPT_XRC_RECV },
	{ 0 },
};

/* IBV_WR_*, not in older headers; engine/core/opcode.h has them, too */
#define WR_FLUSH 14
#define WR_ATOMIC_WRITE 15

const struct fault_name fault_ops[] = {
	{ "SEND", IBV_WR_SEND },
	{ "SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM },
	{ "SEND_WITH_INV", IBV_WR_SEND_WITH_INV },
	{ "RDMA_WRITE", IBV_WR_RDMA_WRITE },
	{ "RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "RDMA_READ", IBV_WR_RDMA_READ },
	{ "ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "LOCAL_INV", IBV_WR_LOCAL_INV },
	{ "BIND_MW", IBV_WR_BIND_MW },
	{ "FLUSH", WR_FLUSH },
	{ "ATOMIC_WRITE", WR_ATOMIC_WRITE },
	{ 0 },
};

#define LOCAL (FAULT_OP(IBV_WR_LOCAL_INV) | FAULT_OP(IBV_WR_BIND_MW))
#define ALL 0xffffu
#define REMOTE (ALL & ~LOCAL)
/* opcodes that consume a receive; opcodes that have an rkey */
#define RECEIVED                                               \
	(FAULT_OP(IBV_WR_SEND) | FAULT_OP(IBV_WR_SEND_WITH_IMM) | \
	 FAULT_OP(IBV_WR_SEND_WITH_INV) |                      \
	 FAULT_OP(IBV_WR_RDMA_WRITE_WITH_IMM))
#define KEYED                                                             \
	(REMOTE & ~(FAULT_OP(IBV_WR_SEND) | FAULT_OP(IBV_WR_SEND_WITH_IMM) | \
		    FAULT_OP(IBV_WR_SEND_WITH_INV)))
#define ANY 0xffffu
#define ANSWERED (FAULT_TYPE(IBV_QPT_RC) | FAULT_TYPE(IBV_QPT_XRC_SEND))

#define S(name, ops, types) { #name, IBV_WC_##name, ops, types }
const struct fault_status fault_statuses[] = {
	/* local errors, which the peer does not see */
	S(LOC_LEN_ERR, REMOTE, ANY),
	S(LOC_QP_OP_ERR, ALL, ANY),
	S(LOC_PROT_ERR, REMOTE, ANY),
	S(WR_FLUSH_ERR, ALL, ANY),
	S(MW_BIND_ERR, LOCAL, ANY),
	S(FATAL_ERR, ALL, ANY),
	S(GENERAL_ERR, ALL, ANY),
	/* the peer has not responded, or its response was invalid */
	S(BAD_RESP_ERR, REMOTE, ANSWERED),
	S(RETRY_EXC_ERR, REMOTE, ANSWERED),
	S(RNR_RETRY_EXC_ERR, RECEIVED, ANSWERED),
	/* the peer has responded with a NAK; its QP sees the error, too */
	S(REM_INV_REQ_ERR, REMOTE, ANSWERED),
	S(REM_ACCESS_ERR, KEYED, ANSWERED),
	S(REM_OP_ERR, REMOTE, ANSWERED),
	{ 0 },
};

#define EV(what, name) { #name, FAULT_##what, IBV_EVENT_##name }
const struct fault_event fault_events[] = {
	EV(QP, QP_FATAL),
	EV(QP, QP_REQ_ERR),
	EV(QP, QP_ACCESS_ERR),
	EV(QP, COMM_EST),
	EV(QP, PATH_MIG),
	EV(QP, PATH_MIG_ERR),
	EV(CQ, CQ_ERR),
	EV(SRQ, SRQ_ERR),
	EV(SRQ, SRQ_LIMIT_REACHED),
	EV(PORT, LID_CHANGE),
	EV(PORT, PKEY_CHANGE),
	EV(PORT, GID_CHANGE),
	EV(PORT, SM_CHANGE),
	EV(PORT, CLIENT_REREGISTER),
	EV(DEVICE, DEVICE_FATAL),
	{ 0 },
};
