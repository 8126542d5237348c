/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections with other hosts: what message.c makes goes to QP 1 of the other
 * one as datagrams of RoCE v2, and what comes from there has the effect that
 * the other end's id would have in a fabric.
 *
 * Whoever has an id sends its messages, again, too, until they are answered
 * (cm_tick): at first after 250 ms, then after twice as long each time, up to
 * the response timeout that the REQ tells; ours tells 4.3 s.  Whoever holds the
 * fabric's socket takes what comes.
 */
#pragma once

#include "cm.h"
#include "wire/packet.h"

/* What our messages tell, as a kernel's: 4.096 us << this; and how often they
 * are sent again when that is over; 68 s: the time that an MRA asks for, and
 * the longest that one is honoured. */
#define CM_WIRE_TIMEOUT 20
#define CM_WIRE_RETRIES 15
#define CM_WIRE_LONGEST 24

/* Is the wire on (URXE_WIRE)?  Its address, then, without a port. */
bool cm_wire_address(union cm_addr *a);

/* By UDP, once; what cannot be sent is lost. */
void cm_wire_send(struct urxe_fabric *f, const struct cm_id *from,
		  const uint8_t mad[MAD_BYTES]);

/*
 * What came for QP 1 of this fabric: n bytes from path->sgid, which may be
 * anybody's.  By one thread of a process at a time.
 */
void cm_wire_receive(struct urxe_fabric *f, const struct wire_path *path,
		     const uint8_t *mad, size_t n);
/* The same, with the tables locked. */
void cm_wire_take(struct cm *cm, const struct wire_path *path,
		  const uint8_t *mad, size_t n);

/* It has sent a message, and waits for the answer. */
void cm_wire_wait(struct cm *cm, struct cm_id *id);
/* The answer did not come; false: nor will it. */
bool cm_wire_again(struct cm *cm, struct cm_id *id);
/* The other end's REQ came again: so does the REP; the timer goes on. */
void cm_wire_reply_again(struct cm *cm, const struct cm_id *id);
/* A REP or a SIDR_REP, to be sent again. */
void cm_wire_keep_reply(struct cm_id *id, const struct rdma_ucm_conn_param *p,
			const struct rdma_ucm_ece *ece);

/* The id of a connection goes, its time wait (12.9.8.4) does not. */
void cm_wire_ended(struct cm *cm, const struct cm_id *id);
/* Is that QP of another host in such a time wait? */
bool cm_wire_is_ended(const struct cm *cm, const uint8_t gid[16], uint32_t qpn);
