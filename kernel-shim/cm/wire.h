/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections with other hosts: the CM protocol of the IB specification, 12.6
 * to 12.11, in UD packets of RoCE v2 to QP 1 of the peer's port.  message.c
 * builds the MADs.  A received MAD changes the id as a call from the peer's
 * id would within a fabric (wire_recv.c).
 *
 *	sending		the process of the id, from commands and cm_tick()
 *	receiving	the thread that reads the fabric's socket, in the
 *			process that owns it (provider/wire/responder/server.c).
 *			It also sends the responses that need no
 *			application: MRA, REJ, DREP; repeated REP, RTU and
 *			SIDR_REP
 *
 * Both hold the lock of the tables.
 *
 * Retransmission: cm_tick() retransmits REQ, SIDR_REQ, REP and DREQ until
 * they are answered.  The interval is 250 ms at first, then doubled each
 * time, up to the response timeout in the REQ, which is 4.3 s in our REQs.  A
 * lost RTU, DREP or SIDR_REP is repeated when the peer's message is received
 * again.  The DREQ of an id that is destroyed is retransmitted by ended.c.
 *
 * Packets may be forged, lost, duplicated and reordered.  A received message
 * must match the communication ID and the GID of the id, and its state.
 * tests/unit/rdma_cm/test_cm_wire.c checks the exchange between two hosts.
 */
#pragma once

#include "cm.h"
#include "wire/packet.h"

/* as in the kernel's messages; times are 4.096 us << value */
#define CM_WIRE_TIMEOUT 20 /* response timeout: 4.3 s */
#define CM_WIRE_RETRIES 15 /* retransmissions */
/* service timeout in our MRAs, and the limit for received ones: 68 s */
#define CM_WIRE_LONGEST 24

/*
 * Return whether other hosts can be reached (URXE_WIRE is set to an IP
 * address), and store that address, with port 0.
 */
bool cm_wire_address(union cm_addr *a);

/*
 * Send a MAD once, from the GID of @from to its dgid.  Does not block.  A MAD
 * that cannot be sent is lost; errors of sendto() are counted.
 */
void cm_wire_send(struct urxe_fabric *f, const struct cm_id *from,
		  const uint8_t mad[MAD_BYTES]);

/*
 * Handle @n bytes received for QP 1 of this fabric from path->sgid.  The
 * bytes are not trusted.  Maps the tables and takes their lock; if the lock
 * is not free soon, the message is dropped.  Not thread-safe: only one thread
 * of a process may call it at a time.
 */
void cm_wire_receive(struct urxe_fabric *f, const struct wire_path *path,
		     const uint8_t *mad, size_t n);
/* As cm_wire_receive(), with the lock held.  The caller calls cm_settle(). */
void cm_wire_take(struct cm *cm, const struct wire_path *path,
		  const uint8_t *mad, size_t n);

/* Start the retransmission timer of the message that was sent. */
void cm_wire_wait(struct cm *cm, struct cm_id *id);
/*
 * The retransmission timer expired: retransmit the message and restart the
 * timer.  Return false if the retries are exhausted or the state has no
 * message to retransmit.
 */
bool cm_wire_retransmit(struct cm *cm, struct cm_id *id);
/*
 * Repeat the REP or SIDR_REP, because the request was received again or the
 * timer expired.  Does not change the timer.
 */
void cm_wire_repeat_reply(struct cm *cm, const struct cm_id *id);
/* Store the contents of a REP or SIDR_REP for cm_wire_repeat_reply(). */
void cm_wire_keep_reply(struct cm_id *id, const struct rdma_ucm_conn_param *p,
			const struct rdma_ucm_ece *ece);

/* ended.c */

/*
 * Record the TIMEWAIT state (12.9.8.4) of a connection with another host
 * whose id is being destroyed, and its DREQ.  Nothing is done for other ids.
 */
void cm_ended_add(struct cm *cm, const struct cm_id *id);
/* Return whether QP @qpn of the host with that GID is in TIMEWAIT. */
bool cm_ended_has(const struct cm *cm, const uint8_t gid[16], uint32_t qpn);
/* The DREQ from communication ID @comm_id is answered by that host. */
void cm_ended_answered(struct cm *cm, const uint8_t gid[16], uint32_t comm_id);
/*
 * Retransmit DREQs that are due.  Return the ns until process @pid has to do
 * so again, or UINT64_MAX.
 */
uint64_t cm_ended_tick(struct cm *cm, int32_t pid, uint64_t now);
/*
 * Wait until the DREQs of ids that this process has destroyed are answered,
 * and retransmit them meanwhile.  At most 0.3 s, and 0.1 s more if the lock is
 * held.  Maps the tables and takes their lock.
 */
void cm_ended_linger(struct urxe_fabric *f);
