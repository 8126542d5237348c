/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reasons why a WR fails or waits: REASON(name, text, source of the rule,
 * usual cause).
 *
 * In the text, % and a letter stand for the next value: %u a number, %b a
 * number of bytes, %x a hexadecimal number, %k a key with its kind
 * (REASON_KEY), %a what a key allows, %q what a QP allows (both enum
 * ibv_access_flags), %s a state (enum ibv_qp_state), %e an errno, %i the name
 * of an interface, which takes two values.
 */
#ifndef REASON
#define REASON(name, message, source, cause)
#endif

#define OF_KEY "%k used on QP %x for %b at %x: "

/*
 * Keys.  The first values are the key, its QP, and the length and address of
 * the access.
 */
REASON(KEY_NONE, OF_KEY "no such key: never issued, or deregistered long ago",
       "IBA 10.6.3, ibv_reg_mr(3)",
       "the value sent to the peer is not the key (byte order)")
REASON(KEY_DEREGISTERED,
       OF_KEY "the MR was deregistered, or the memory window deallocated",
       "IBA 10.6.3, ibv_dereg_mr(3)",
       "ibv_dereg_mr or ibv_dealloc_mw was called too early")
REASON(KEY_DISABLED, OF_KEY "the MR is disabled", "IBA 10.6.3, ibv_rereg_mr(3)",
       "ibv_rereg_mr failed, or is in progress")
REASON(KEY_UNBOUND,
       OF_KEY
       "the memory window at this key index is not bound: never bound, or invalidated",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "the bind is not complete, or LOCAL_INV, SEND_WITH_INV or a bind of length 0 invalidated the key")
REASON(KEY_REBOUND,
       OF_KEY
       "the memory window at this key index is bound with another rkey, %x",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "each bind creates a new rkey, which must be sent to the peer")
REASON(KEY_ENDED,
       OF_KEY
       "deregistered or never issued; this key index is in use by key %x",
       "IBA 10.6.3, ibv_reg_mr(3)",
       "a key from before ibv_dereg_mr, and the memory was registered again")
REASON(KEY_FOREIGN,
       OF_KEY "not a key of device context %u, but of device context %u",
       "IBA 10.6.3, ibv_reg_mr(3)",
       "the key of another process, or of another ibv_open_device")
REASON(KEY_PD, OF_KEY "the key is of PD %u, but the QP is of PD %u",
       "IBA 10.2.3, ibv_alloc_pd(3)",
       "the program has two PDs; an rkey must be of the PD of the responder's QP")
REASON(KEY_ACCESS, OF_KEY "the key allows %a, but %a is required",
       "IBA 10.6.3, ibv_reg_mr(3)",
       "ibv_reg_mr was called without that access flag")
REASON(KEY_RANGE,
       OF_KEY "the key covers %x to %x, but the access needs %x to %x",
       "IBA 10.6.3, ibv_reg_mr(3)",
       "the address is not based on the iova of the MR (0 with ZERO_BASED), or the length is too long")
REASON(KEY_WINDOW_QP,
       OF_KEY "the key is of a type 2 window that is bound on QP %x",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "a type 2 window is valid only on the QP on which it was bound")
REASON(KEY_WINDOW_LOCAL, OF_KEY "a memory window has no lkey",
       "IBA 10.6.7.2, ibv_alloc_mw(3)",
       "an SGE has the key of a memory window in place of the lkey of the MR")
REASON(KEY_PAGES, OF_KEY "the pages of the on-demand MR cannot be mapped",
       "ibv_reg_mr(3)", "the memory was unmapped, or is not writable")
REASON(KEY_LATE,
       "the lkey of a receive on QP %x was invalidated before its completion was polled",
       "IBA 10.6.3, ibv_dereg_mr(3)",
       "ibv_dereg_mr was called before the completion of the receive was polled")

/* Local errors of the requester */
REASON(TOO_LONG, "a message of %b exceeds max_msg_sz %u",
       "IBA 9.7.7, ibv_query_port(3)", "an integer overflow in the length")
REASON(DATAGRAM, "a datagram of %b exceeds the port's MTU %u",
       "IBA 9.8.1, ibv_query_port(3)",
       "a datagram is a single packet: split the message")
REASON(AH_PD, "the AH of a datagram is not of PD %u, the PD of the QP",
       "IBA 10.2.3, ibv_create_ah(3)", "the program has two PDs")
REASON(DEPTH,
       "max_rd_atomic is 0 (ibv_modify_qp to RTS), but READ, atomics, ATOMIC_WRITE and FLUSH need at least 1",
       "IBA 11.2.5.2, ibv_modify_qp(3)", "max_rd_atomic was left at 0")
REASON(WORD, "the SGEs of an atomic have %b, but an atomic needs 8",
       "IBA 9.4.5, ibv_post_send(3)", "an SGE with a wrong length")
REASON(FLUSH_TYPE, "invalid FLUSH type %x or level %u", "IBA A19",
       "arguments of ibv_wr_flush in the wrong order")
REASON(OPCODE, "opcode %u is not supported by this QP",
       "IBA 10.8.2, ibv_post_send(3)",
       "the QP is of a type without this operation")
REASON(CQ_FULL, "the CQ of QP %x overran", "IBA 11.6.3.2, ibv_create_cq(3)",
       "more WRs are posted than the CQ has entries, or completions are polled too rarely")

/* Bind and invalidate */
REASON(BIND_NONE, "a memory window cannot be bound: no window has rkey %x",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "the window was deallocated")
REASON(BIND_CONTEXT,
       "a memory window cannot be bound: rkey %x is of another device context than QP %x",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "the program opened the device twice")
REASON(BIND_PD,
       "a memory window cannot be bound: the window is of PD %u, but the QP is of PD %u",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "the program has two PDs")
REASON(BIND_BOUND,
       "a memory window cannot be bound: rkey %x is of a type 2 window that is already bound",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "the window was not invalidated (LOCAL_INV or SEND_WITH_INV) first")
REASON(BIND_LENGTH,
       "a memory window cannot be bound: rkey %x is of a type 2 window, and the bind has length 0",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "length 0 unbinds only windows of type 1; invalidate a window of type 2")
REASON(BIND_NO_MR, "a memory window cannot be bound: no MR has lkey %x",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "ibv_dereg_mr was called before the bind")
REASON(BIND_MR_PD,
       "a memory window cannot be bound: the MR is of PD %u, but the window is of PD %u",
       "IBA 10.6.7.2, ibv_bind_mw(3)", "the program has two PDs")
REASON(BIND_MR_RIGHT,
       "a memory window cannot be bound: the MR allows %a, but lacks IBV_ACCESS_MW_BIND",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "ibv_reg_mr was called without IBV_ACCESS_MW_BIND")
REASON(BIND_MR_WRITE,
       "a memory window cannot be bound: %a needs an MR with LOCAL_WRITE, but the MR allows %a",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "ibv_reg_mr was called without IBV_ACCESS_LOCAL_WRITE")
REASON(BIND_RANGE,
       "a memory window cannot be bound: the MR covers %x to %x, but the bind requests %x to %x",
       "IBA 10.6.7.2, ibv_bind_mw(3)",
       "addresses are relative to the iova of the MR")
REASON(BIND_FLAGS,
       "a memory window cannot be bound: access flags %x are not supported, only those in %x",
       "ibv_bind_mw(3)", "flags of ibv_reg_mr that are invalid for windows")
REASON(BIND_LOCK, "a memory window cannot be changed: %e",
       "docs/reliability.md",
       "another process was stopped while it held the lock of the context")
REASON(INVALIDATE,
       "rkey %x cannot be invalidated: not a type 2 window bound to QP %x",
       "IBA 10.6.7.2, ibv_post_send(3)",
       "the window was already invalidated, is bound on another QP, or the key is of an MR")

/* Errors that the responder detects */
REASON(ACCESS,
       "QP %x does not allow this operation: qp_access_flags are %q, but %q is required",
       "IBA 9.7.4.1, ibv_modify_qp(3)",
       "qp_access_flags at INIT lack the flag; the flags of the MR do not replace them")
REASON(RESOURCES,
       "%u outstanding READs or atomics, but QP %x has max_dest_rd_atomic %u",
       "IBA 9.7.4.1, ibv_modify_qp(3)",
       "max_rd_atomic of the requester exceeds max_dest_rd_atomic of the responder")
REASON(ALIGNMENT,
       "the address of an atomic must be a multiple of 8, but %x is not",
       "IBA 9.4.5", "a packed structure, or an unaligned offset into a buffer")
REASON(PATH_MTU,
       "a packet of path MTU %u is too long for QP %x, which has path MTU %u",
       "IBA 9.7.4.1, ibv_modify_qp(3)", "path_mtu differs between the two ends")
REASON(NO_SRQ, "no XRC SRQ %x is in the XRC domain of QP %x",
       "IBA A14, ibv_create_srq_ex(3)",
       "remote_srqn is not the value that ibv_get_srq_num returned at the peer, or the SRQ was destroyed")
REASON(TOO_SHORT, "a message of %b exceeds the receive of %b on QP %x",
       "IBA 9.9.3, ibv_post_recv(3)",
       "the receive is too short; a datagram needs 40 bytes more, for the GRH")
REASON(RQ_DAMAGED, "a receive queue is damaged: posted %u, consumed %u",
       "docs/reliability.md", "a process overwrote shared memory")
REASON(MEMORY, "memory of process %u at %x is unmapped or not writable",
       "ibv_reg_mr(3)", "the memory was unmapped or freed before ibv_dereg_mr")
REASON(REVOKED, "a key of process %u was invalidated while data was copied",
       "IBA 10.6.3, ibv_dereg_mr(3)",
       "ibv_dereg_mr was called while requests were outstanding")
REASON(FORBIDDEN,
       "the memory of process %u is not accessible, and the process has no thread that copies",
       "urxe doctor",
       "process_vm_readv is denied (Yama, seccomp or another user), and the process cannot create a thread")
REASON(BOUNCER_STUCK,
       "process %u, which must copy its own memory, did not copy for %u s, and the request cannot be repeated",
       "docs/reliability.md", "the process is stopped (a debugger, SIGSTOP)")
REASON(BOUNCE_MEMORY,
       "process %u, which must copy its own memory, has no shared memory for it",
       "docs/reliability.md", "/dev/shm or the memory of the cgroup is full")
REASON(PERSIST, "the file mapped by key %x cannot be synced to disk", "IBA A19",
       "the disk is full, or the process that mapped the file has exited")

/* No response, or no receive */
REASON(RNR,
       "QP %x has no receive posted (RNR): %u were posted, all are consumed",
       "IBA 9.7.5.2.8, ibv_modify_qp(3)",
       "ibv_post_recv is called after the message arrives, or too rarely; rnr_retry 7 retries forever")
REASON(NO_QP, "no QP %x of this type is connected to QP %x",
       "IBA 9.7.6.1.3, ibv_modify_qp(3)",
       "dest_qp_num is wrong at one end, or the peer has exited or is not in RTR yet")
REASON(DIED, "the process of QP %x, PID %u, has exited", "IBA 9.7.6.1.3",
       "the process crashed, or exited before the peer was done")
REASON(PROCESS_DIED, "process %u has exited", "IBA 9.7.6.1.3",
       "the process crashed, or exited before the peer was done")
REASON(PORT_DOWN, "the port is down", "ibv_query_port(3)",
       "urxe port down, or a fault rule")
REASON(PEER_STATE, "QP %x is in %s, and responds only in RTR, RTS, SQD and SQE",
       "IBA 10.3.1, ibv_modify_qp(3)",
       "the peer is slower and not in RTR yet, or its QP failed: see the log of the peer")
REASON(ROCE, "sgid_index is a GID of RoCE v%u, but QP %x has a GID of RoCE v%u",
       "IBA A17.4.7", "sgid_index differs between the two ends")
REASON(GIDS, "the GIDs (sgid_index, dgid) do not match those of QP %x",
       "IBA 9.6.1, ibv_modify_qp(3)",
       "dgid is not the GID at the peer's sgid_index")
REASON(NO_LINK, "no link joins the port and that of QP %x",
       "docs/infiniband.md",
       "one device has the link layer InfiniBand, the other one Ethernet")
REASON(LID,
       "packets to LID %u do not reach the port of QP %x, which has LID %u",
       "IBA 9.6.1, ibv_modify_qp(3)",
       "dlid is not the lid of the peer's ibv_query_port, or the LID has changed")
REASON(LID_BACK,
       "QP %x expects packets from LID %u, but the port that sends has LID %u",
       "IBA 9.6.1, ibv_modify_qp(3)",
       "dlid at the peer is not the lid of ibv_query_port here, or the LID has changed")
REASON(GRH, "is_global is %u at this end, and different at QP %x",
       "IBA 9.6.1, ibv_modify_qp(3)",
       "one end sends with a GRH, the other one without")
REASON(PKEY, "P_Key %x does not match P_Key %x of QP %x",
       "IBA 10.9.3, ibv_modify_qp(3)",
       "pkey_index of the two ends is that of different partitions, or both are limited members (bit 15 is 0)")
REASON(PSN,
       "PSN %x is not the PSN %x that QP %x expects (sq_psn and rq_psn must agree)",
       "IBA 9.7.4.1, ibv_modify_qp(3)",
       "one end was reset and connected again, or rq_psn is not the peer's sq_psn")
REASON(STOPPED, "process %u, which must copy its own memory, does not respond",
       "IBA 9.7.6.1.3",
       "the process is stopped (a debugger, SIGSTOP), or is exiting")
REASON(ATOMIC_LOCK,
       "no response to an atomic: process %u, which is not running, holds the lock of this address",
       "docs/reliability.md", "the process was stopped during an atomic")

/* The peer is on another host */
REASON(WIRE_SILENT,
       "QP %x of another host does not respond to PSN %x, which was retransmitted %u times",
       "IBA 9.7.6.1.3",
       "the QP does not exist or expects other PSNs; UDP port 4791 is blocked, or the MTU of the network is less than path_mtu + 60 bytes")
REASON(WIRE_RNR, "QP %x of another host has no receive posted (RNR)",
       "IBA 9.7.5.2.8, ibv_modify_qp(3)",
       "ibv_post_recv is called after the message arrives, or too rarely; rnr_retry 7 retries forever")
REASON(WIRE_NAK, "QP %x of another host refused PSN %x with NAK %x",
       "IBA 9.7.5.2",
       "see the log of the peer (URXE_LOG=1, if the peer is urxe)")
REASON(WIRE_SEND, "packets for QP %x of another host cannot be sent: %e",
       "docs/wire.md",
       "no local interface has the address of sgid_index, there is no route to dgid, or packets are longer than the interface's MTU")
REASON(WIRE_MTU,
       "packets for QP %x of another host cannot be sent: they have up to %b of payload, the path MTU, and %u of headers, but the MTU of %i is %u",
       "docs/wire.md",
       "the MTU of the interface, or of a route, was reduced; path_mtu must not exceed active_mtu of ibv_query_port")
REASON(WIRE_MEMORY,
       "%b of shared memory for responses of another host cannot be allocated",
       "docs/wire.md",
       "/dev/shm is full, or too many QPs of one context send to other hosts")
REASON(WIRE_V1,
       "RoCE v1 does not leave the fabric, and QP %x is not in the fabric",
       "IBA A16, docs/wire.md",
       "sgid_index is a GID of RoCE v1; the next index is the same address with RoCE v2")

/* Not the result of a check */
REASON(FAULT, "injected by a fault rule", "docs/faults.md",
       "the program is tested with fault injection")
REASON(MODIFIED, "ibv_modify_qp moved the QP to ERR", "ibv_modify_qp(3)",
       "the program itself, or rdma_disconnect")
