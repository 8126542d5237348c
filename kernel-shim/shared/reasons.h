/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Why a WR fails or waits: REASON(name, what is said, the rule's source, what
 * is mostly the cause).
 *
 * In what is said a letter stands for the next value: %u a number, %x the same
 * in hexadecimal, %k a key after whose it is (REASON_KEY), %a what a key
 * allows, %q what a QP does (both enum ibv_access_flags), %s a state (enum
 * ibv_qp_state), %e an errno.
 */
#ifndef REASON
#define REASON(name, said, source, cause)
#endif

#define OF_KEY "%k at QP %x, %u bytes at %x: "

/* Keys: first the key, its QP, length and address that were asked for. */
REASON(KEY_NONE,
       OF_KEY "there is none: it was never given out, or ended long ago",
       "IBA 10.6.3, ibv_reg_mr(3)",
       "what the peer was sent is not the key (byte order)")
REASON(KEY_DEREGISTERED,
       OF_KEY "its MR was deregistered, or its memory window deallocated",
       "IBA 10.6.3, ibv_dereg_mr(3)",
       "ibv_dereg_mr or ibv_dealloc_mw came too early")
REASON(KEY_DISABLED, OF_KEY "its MR is disabled", "IBA 10.6.3, ibv_rereg_mr(3)",
       "ibv_rereg_mr has failed, or is at work")
REASON(KEY_UNBOUND,
       OF_KEY
       "the memory window in its place is not bound: it never was, or was invalidated",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "the bind is not complete, or LOCAL_INV, SEND_WITH_INV or a bind of length 0 ended it")
REASON(KEY_REBOUND,
       OF_KEY "the memory window in its place is bound with rkey %x",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "each bind makes a new rkey, which the peer has to be sent")
REASON(KEY_ENDED, OF_KEY "it was ended, or never was, and what is in its place has key %x",
       "IBA 10.6.3, ibv_reg_mr(3)",
       "a key from before ibv_dereg_mr, while the peer registers anew")
REASON(KEY_FOREIGN, OF_KEY "it is no key of this device context, %u, but of %u",
       "IBA 10.6.3, ibv_reg_mr(3)",
       "the key of another process, or of another ibv_open_device")
REASON(KEY_PD, OF_KEY "it is of PD %u, and the QP is of PD %u",
       "IBA 10.2.3, ibv_alloc_pd(3)",
       "the program has two PDs; the QP that counts is the one at the key's end")
REASON(KEY_ACCESS, OF_KEY "it allows %a, and %a is needed",
       "IBA 10.6.3, ibv_reg_mr(3)", "ibv_reg_mr was not given that access flag")
REASON(KEY_RANGE, OF_KEY "it covers %x to %x, and %x to %x is asked for",
       "IBA 10.6.3, ibv_reg_mr(3)",
       "addresses count from another beginning (iova, ZERO_BASED), or some bytes too many")
REASON(KEY_WINDOW_QP, OF_KEY "it is a window of type 2 that was bound on QP %x",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "windows of type 2 serve one QP")
REASON(KEY_WINDOW_LOCAL, OF_KEY "a memory window has no lkey",
       "IBA 10.6.7.2, ibv_alloc_mw(3)",
       "a window's key in an SGE, in place of the MR's lkey")
REASON(KEY_PAGES, OF_KEY "its pages cannot be had (on demand)", "ibv_reg_mr(3)",
       "memory that was unmapped, or may not be written")
REASON(KEY_LATE,
       "the lkey of a receive on QP %x was taken away before its message was polled",
       "IBA 10.6.3, ibv_dereg_mr(3)",
       "ibv_dereg_mr before the receive's completion was polled")

/* What the requester finds at its own end */
REASON(TOO_LONG, "a message of %u bytes, and max_msg_sz is %u",
       "IBA 9.7.7, ibv_query_port(3)", "a length that wrapped around")
REASON(DATAGRAM, "a datagram of %u bytes, and the port's MTU is %u",
       "IBA 9.8.1, ibv_query_port(3)",
       "datagrams are one packet: divide the message")
REASON(AH_PD,
       "the AH of a datagram is of another PD than the QP, which is of %u",
       "IBA 10.2.3, ibv_create_ah(3)", "the program has two PDs")
REASON(DEPTH,
       "max_rd_atomic is 0 (ibv_modify_qp to RTS), and READs, atomics, ATOMIC_WRITEs and FLUSHes need 1 at least",
       "IBA 11.2.5.2, ibv_modify_qp(3)", "max_rd_atomic was left at 0")
REASON(WORD, "an atomic has 8 bytes, and the SGEs of this one %u",
       "IBA 9.4.5, ibv_post_send(3)", "the length of the SGE")
REASON(FLUSH_TYPE, "FLUSH has no type %x and level %u", "IBA A19",
       "arguments of ibv_wr_flush in another order")
REASON(OPCODE, "opcode %u is not for this QP", "IBA 10.8.2, ibv_post_send(3)",
       "the QP's type")
REASON(CQ_FULL, "the CQ of QP %x overran", "IBA 11.6.3.2, ibv_create_cq(3)",
       "more WRs are posted than the CQ has entries, or they are polled too rarely")

/* Binding and invalidating */
REASON(BIND_NONE,
       "a memory window cannot be bound: %x does not exist (any more)",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "it was deallocated")
REASON(BIND_CONTEXT,
       "a memory window cannot be bound: %x is of another context than QP %x",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "two calls of ibv_open_device")
REASON(BIND_PD,
       "a memory window cannot be bound: it is of PD %u, and the QP is of another PD, %u",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "the program has two PDs")
REASON(BIND_BOUND,
       "a memory window cannot be bound: %x is of type 2, and it is bound already",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "it was not invalidated (LOCAL_INV or SEND_WITH_INV) first")
REASON(BIND_LENGTH,
       "a memory window cannot be bound: %x is of type 2, which needs a length",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "length 0 unbinds a window of type 1 only; type 2 is invalidated")
REASON(BIND_NO_MR, "a memory window cannot be bound: the MR %x does not exist",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "ibv_dereg_mr came before the bind")
REASON(BIND_MR_PD,
       "a memory window cannot be bound: the MR is of another PD, %u, and the window of %u",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "the program has two PDs")
REASON(BIND_MR_RIGHT,
       "a memory window cannot be bound: the MR allows %a, and does not have IBV_ACCESS_MW_BIND",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "ibv_reg_mr was not given IBV_ACCESS_MW_BIND")
REASON(BIND_MR_WRITE,
       "a memory window cannot be bound: it is to allow %a, which needs an MR with LOCAL_WRITE, and this one allows %a",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "ibv_reg_mr was not given IBV_ACCESS_LOCAL_WRITE")
REASON(BIND_RANGE,
       "a memory window cannot be bound: the MR covers %x to %x, and %x to %x is asked for",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "addresses count from the MR's iova")
REASON(BIND_FLAGS,
       "a memory window cannot be bound: access flags %x are not known here, only those in %x",
       "ibv_bind_mw(3)", "flags of ibv_reg_mr that windows do not have")
REASON(BIND_LOCK, "a window cannot be changed: %e", "docs/reliability.md",
       "another process was stopped within the few instructions under the context's lock")
REASON(INVALIDATE,
       "rkey %x, to be invalidated, is not a type 2 window that is bound to QP %x",
       "IBA 10.6.7.2, ibv_post_send(3)",
       "it was invalidated already, is bound on another QP, or is an MR's")

/* What the responder finds */
REASON(ACCESS,
       "QP %x does not allow this operation: its qp_access_flags have %q, and %q is needed",
       "IBA 9.7.4.1, ibv_modify_qp(3)",
       "qp_access_flags at INIT lack it; those of the MR do not replace them")
REASON(RESOURCES,
       "%u READs or atomics at once, and QP %x has max_dest_rd_atomic %u",
       "IBA 9.7.4.1, ibv_modify_qp(3)",
       "max_rd_atomic here is more than max_dest_rd_atomic there")
REASON(ALIGNMENT,
       "an atomic wants an address that is a multiple of 8, and %x is not",
       "IBA 9.4.5",
       "a packed structure, or a buffer from malloc() and an odd offset")
REASON(PATH_MTU, "a packet of path_mtu %u is too long for QP %x, which has %u",
       "IBA 9.7.4.1, ibv_modify_qp(3)", "the two ends set another path_mtu")
REASON(NO_SRQ, "%x is no XRC SRQ of the domain of QP %x",
       "IBA A14, ibv_create_srq_ex(3)",
       "remote_srqn is not what ibv_get_srq_num says there, or the SRQ is gone")
REASON(TOO_SHORT, "a message of %u bytes met a receive of %u on QP %x",
       "IBA 9.9.3, ibv_post_recv(3)",
       "the receive is too short; of a datagram, the 40 bytes of the GRH count")
REASON(RQ_DAMAGED, "a receive queue is damaged: posted %u, taken %u",
       "docs/reliability.md", "a process wrote into shared memory")
REASON(MEMORY,
       "memory of process %u at %x is not mapped there any more, or may not be written",
       "ibv_reg_mr(3)", "it was unmapped or freed before ibv_dereg_mr")
REASON(REVOKED,
       "a key of process %u was taken away while its bytes were copied",
       "IBA 10.6.3, ibv_dereg_mr(3)",
       "ibv_dereg_mr while requests are on their way")
REASON(FORBIDDEN,
       "the memory of process %u cannot be reached, and nobody copies for it",
       "urxe doctor",
       "Yama, seccomp or another user, and it can make no thread")
REASON(PERSIST, "the file behind key %x cannot be brought to its disk",
       "IBA A19", "the disk is full, or the process that mapped it is gone")

/* Nobody answers, or there is no receive */
REASON(RNR,
       "QP %x has no receive posted (RNR): of %u that were posted all are taken",
       "IBA 9.7.5.2.8, ibv_modify_qp(3)",
       "ibv_post_recv comes after the message, or too rarely; rnr_retry 7 waits without end")
REASON(NO_QP, "there is no QP %x of this type that is connected to QP %x",
       "IBA 9.7.6.1.3, ibv_modify_qp(3)",
       "dest_qp_num is wrong at one end, or the peer is gone or not in RTR yet")
REASON(DIED, "the process of QP %x, %u, has ended", "IBA 9.7.6.1.3",
       "it crashed, or ended before its peer was done")
REASON(PROCESS_DIED, "process %u has ended", "IBA 9.7.6.1.3",
       "it crashed, or ended before its peer was done")
REASON(PORT_DOWN, "the port is down", "ibv_query_port(3)",
       "urxe port down, or a rule of faults")
REASON(DEAF, "QP %x is in %s, and listens only from RTR to SQE",
       "IBA 10.3.1, ibv_modify_qp(3)",
       "the peer is slower and not in RTR yet, or its QP failed: see what it says")
REASON(ROCE,
       "its sgid_index is a GID of RoCE v%u, and that of QP %x one of RoCE v%u: neither hears the other",
       "IBA A17.4.7", "sgid_index differs between the two ends")
REASON(GIDS,
       "its GIDs (sgid_index, dgid) are not those of QP %x the other way round",
       "IBA 9.6.1, ibv_modify_qp(3)",
       "dgid is not the GID at the peer's sgid_index")
REASON(PSN,
       "PSN %x is not the %x that QP %x expects (sq_psn and rq_psn must agree)",
       "IBA 9.7.4.1, ibv_modify_qp(3)",
       "one end was reset and connected anew, or rq_psn is not the peer's sq_psn")
REASON(STOPPED, "process %u, whose memory only it can reach, does not answer",
       "IBA 9.7.6.1.3", "it is stopped (a debugger, SIGSTOP), or is ending")
REASON(ATOMIC_LOCK,
       "an atomic is not answered: process %u, which does not run, is at a word with the same lock",
       "docs/reliability.md", "it was stopped in the middle of an atomic")

/* Its other end is on another host */
REASON(WIRE_SILENT,
       "QP %x of another host does not answer PSN %x, which went out %u times more",
       "IBA 9.7.6.1.3",
       "it is not there, or expects other PSNs; UDP port 4791 is closed on the way, or the network's MTU is less than path_mtu and 60 bytes")
REASON(WIRE_RNR, "QP %x of another host has no receive posted (RNR)",
       "IBA 9.7.5.2.8, ibv_modify_qp(3)",
       "ibv_post_recv comes after the message, or too rarely; rnr_retry 7 waits without end")
REASON(WIRE_NAK, "QP %x of another host refused PSN %x with NAK %x",
       "IBA 9.7.5.2", "what that end says of its QP, with URXE_LOG if it is urxe's")
REASON(WIRE_SEND, "packets for QP %x of another host cannot be sent: %e",
       "docs/architecture.md",
       "no interface here has the address of sgid_index, there is no way to dgid, or packets are longer than the interface's MTU")
REASON(WIRE_MEMORY, "no %u bytes of shared memory are left for answers of another host",
       "docs/architecture.md", "/dev/shm is full, or too many QPs of one context send to other hosts")
REASON(WIRE_V1, "RoCE v1 does not leave the fabric, and QP %x is not in it",
       "IBA A16, docs/architecture.md", "sgid_index of RoCE v1; the next index is the same address with RoCE v2")

/* No check failed */
REASON(FAULT, "a rule of faults says so", "docs/faults.md",
       "what this program is tried with")
REASON(MODIFIED, "ibv_modify_qp brought it to ERR", "ibv_modify_qp(3)",
       "the program itself, or rdma_disconnect")
