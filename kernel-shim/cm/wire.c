// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transmission of CM messages to other hosts: UDP datagrams, retransmission.
 * wire.h has the protocol.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wire.h"
#include "wire/address.h"
#include "wire/socket.h"
#include "wire/watch.h"

#define FIRST_NS 250000000ull /* first retransmission */

bool cm_wire_address(union cm_addr *a)
{
	const char *text = getenv("URXE_WIRE");

	memset(a, 0, sizeof(*a));
	if (!text)
		return false;
	a->sa.sa_family = AF_INET;
	if (inet_pton(AF_INET, text, &a->in.sin_addr) == 1)
		return true;
	a->sa.sa_family = AF_INET6;
	return inet_pton(AF_INET6, text, &a->in6.sin6_addr) == 1;
}

/* UD packets may have any PSN: the receiver does not check it. */
static uint32_t next_psn(void)
{
	static _Atomic uint32_t psn;

	return fetch_add_relaxed(&psn, 1) & WIRE_PSN_MASK;
}

static void count_sent(struct urxe_fabric *f, bool went, size_t bytes)
{
	counter_add_wire(f, COUNTER_REQUESTER,
			 went ? URXE_CNT_XMIT_PACKETS : URXE_CNT_SEND_ERR, 1);
	if (went)
		counter_add_wire(f, COUNTER_REQUESTER, URXE_CNT_XMIT_DATA,
				 bytes / 4);
}

void cm_wire_send(struct urxe_fabric *f, const struct cm_id *from,
		  const uint8_t mad[MAD_BYTES])
{
	struct wire_path path = { .traffic_class = from->path_tos,
				  .hop_limit = CM_HOP_LIMIT };
	const struct wire_packet p = {
		.bth = { .opcode = (uint8_t)WIRE_UD | WIRE_SEND_ONLY,
			 .pkey = CM_PKEY,
			 .qpn = MAD_QPN,
			 .psn = next_psn() },
		.deth = { .qkey = MAD_QKEY, .qpn = MAD_QPN },
		.length = MAD_BYTES,
		.payload = mad,
		.known = MAD_BYTES,
	};
	uint8_t frame[WIRE_MAX_BYTES];
	union wire_sockaddr to;
	struct wire_socket s;
	size_t len, at;
	uint64_t when;
	socklen_t n;
	bool went;

	if (wire_socket_open(&s, from->sgid, 0,
			     WIRE_NONBLOCKING | WIRE_SENDS_ONLY | WIRE_UNICAST))
		return;
	memcpy(path.sgid, from->sgid, sizeof(path.sgid));
	memcpy(path.dgid, from->dgid, sizeof(path.dgid));
	path.source_port = s.port;
	path.port = WIRE_PORT;
	path.qpn = from->qpn;
	len = wire_build(&path, &p, frame);
	at = WIRE_ETHERNET_BYTES + WIRE_UDP_BYTES +
	     (s.ipv6 ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES);
	n = wire_sockaddr_of(&to, path.dgid, WIRE_PORT, s.interface);
	if (len > at && s.ipv6 == !wire_gid_is_ipv4(path.dgid)) {
		when = wire_watch_time();
		went = sendto(s.fd, frame + at, len - at, MSG_NOSIGNAL, &to.sa,
			      n) >= 0;
		count_sent(f, went, len - at);
		if (went && when)
			wire_watcher->packet(
				when, &(struct wire_watched){
					      .path = &path,
					      .bth = frame + at,
					      .bytes = (uint32_t)(len - at) });
	}
	wire_socket_close(&s);
}

/* ------------------------------------------------------ retransmission */

/*
 * Return the response timeout in ns: for a REP the peer's, from its REQ, else
 * CM_WIRE_TIMEOUT.
 */
static uint64_t response_timeout_ns(const struct cm_id *id)
{
	return 4096ull << (id->cm == CM_REP_SENT ? 8u + id->cm_timeout :
						   CM_WIRE_TIMEOUT);
}

/*
 * Return the interval before retransmission @tries + 1: doubled each time, at
 * most the response timeout.
 */
static uint64_t wait_ns(const struct cm_id *id, unsigned int tries)
{
	return cm_min(FIRST_NS << cm_min(tries, 8), response_timeout_ns(id));
}

/*
 * Return whether a further interval keeps the total within that of a kernel,
 * which waits one response timeout for each of its retries + 1 transmissions.
 */
static bool may_wait_longer(const struct cm_id *id)
{
	const unsigned int retries = id->cm == CM_REP_SENT ? id->cm_retries :
							     CM_WIRE_RETRIES;
	uint64_t spent = 0;
	unsigned int i;

	for (i = 0; i <= id->tries + 1u; i++)
		spent += wait_ns(id, i);
	return spent <= response_timeout_ns(id) * (retries + 1);
}

void cm_wire_wait(struct cm *cm, struct cm_id *id)
{
	id->tries = 0;
	id->deadline = clock_now() + wait_ns(id, 0);
	cm->watch = true;
}

void cm_wire_keep_reply(struct cm_id *id, const struct rdma_ucm_conn_param *p,
			const struct rdma_ucm_ece *ece)
{
	id->private_len = (uint8_t)cm_min(p->private_data_len, CM_REP_PRIVATE);
	memcpy(id->private_data, p->private_data, id->private_len);
	id->flow_control = p->flow_control & 1;
	id->reply_rnr = cm_min(p->rnr_retry_count, CM_MAX_RETRIES);
	id->flags |= p->srq ? CM_F_SRQ : 0;
	id->ece = *ece;
}

void cm_wire_repeat_reply(struct cm *cm, const struct cm_id *id)
{
	struct rdma_ucm_conn_param p = {
		.private_data_len =
			(uint8_t)cm_min(id->private_len, CM_REP_PRIVATE),
		.flow_control = id->flow_control,
		.rnr_retry_count = id->reply_rnr,
		.srq = !!(id->flags & CM_F_SRQ),
	};

	memcpy(p.private_data, id->private_data, p.private_data_len);
	if (id->qp_type == CM_QPT_UD)
		cm_sent_sidr_rep(cm, id, 0, p.private_data, p.private_data_len);
	else
		cm_sent_rep(cm, id, &p, &id->ece);
}

bool cm_wire_retransmit(struct cm *cm, struct cm_id *id)
{
	if (id->flags & CM_F_UNSENT || !may_wait_longer(id))
		return false;
	switch (id->cm) {
	case CM_REQ_SENT:
	case CM_SIDR_SENT:
		cm_sent_request(cm, id);
		break;
	case CM_REP_SENT:
		cm_wire_repeat_reply(cm, id);
		break;
	case CM_DREQ_SENT:
		cm_sent_dreq(cm, id);
		break;
	default:
		return false;
	}
	id->tries++;
	id->deadline = clock_now() + wait_ns(id, id->tries);
	return true;
}
