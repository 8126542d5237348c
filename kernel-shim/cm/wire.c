// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages that go out to other hosts. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wire.h"
#include "wire/address.h"
#include "wire/socket.h"

#define FIRST_NS 250000000ull
#define MOST_NS                                                       \
	4295000000ull /* 4.096 us << 20: message.c's RESPONSE_TIMEOUT \
		       */
/* Together 68 s, as 15 of the latter and no others would be. */
#define TRIES 18

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

/* Any PSN does; the other end does not look at it. */
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
	socklen_t n;

	if (wire_socket_open(&s, from->sgid, 0,
			     WIRE_NONBLOCKING | WIRE_SENDS_ONLY))
		return;
	memcpy(path.sgid, from->sgid, sizeof(path.sgid));
	memcpy(path.dgid, from->dgid, sizeof(path.dgid));
	path.source_port = s.port;
	len = wire_build(&path, &p, frame);
	at = WIRE_ETHERNET_BYTES + WIRE_UDP_BYTES +
	     (s.ipv6 ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES);
	n = wire_sockaddr_of(&to, path.dgid, WIRE_PORT, s.interface);
	if (len > at && s.ipv6 == !wire_gid_is_ipv4(path.dgid))
		count_sent(f,
			   sendto(s.fd, frame + at, len - at, MSG_NOSIGNAL,
				  &to.sa, n) >= 0,
			   len - at);
	wire_socket_close(&s);
}

/* ---------------------------------------------------------------- time */

static uint64_t wait_ns(const struct cm_id *id)
{
	return id->tries < 8 ? cm_min(FIRST_NS << id->tries, MOST_NS) : MOST_NS;
}

void cm_wire_wait(struct cm *cm, struct cm_id *id)
{
	id->tries = 0;
	id->deadline = clock_now() + wait_ns(id);
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

static void reply_again(struct cm *cm, const struct cm_id *id)
{
	struct rdma_ucm_conn_param p = {
		.private_data_len =
			(uint8_t)cm_min(id->private_len, CM_REP_PRIVATE),
		.flow_control = id->flow_control,
		.rnr_retry_count = id->reply_rnr,
		.srq = !!(id->flags & CM_F_SRQ),
	};

	memcpy(p.private_data, id->private_data, p.private_data_len);
	cm_sent_rep(cm, id, &p, &id->ece);
}

bool cm_wire_again(struct cm *cm, struct cm_id *id)
{
	if (id->flags & CM_F_UNSENT || id->tries >= TRIES)
		return false;
	switch (id->cm) {
	case CM_REQ_SENT:
	case CM_SIDR_SENT:
		cm_sent_request(cm, id);
		break;
	case CM_REP_SENT:
		reply_again(cm, id);
		break;
	case CM_DREQ_SENT:
		cm_sent_dreq(cm, id);
		break;
	default:
		return false;
	}
	id->tries++;
	id->deadline = clock_now() + wait_ns(id);
	return true;
}
