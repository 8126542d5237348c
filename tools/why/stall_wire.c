// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Waits of QPs whose peer is on another host. The state of that host is not
 * known, only its responses. The reasons found here are local: port, socket
 * owner, inbox, route, neighbour and MTU.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "base/plural.h"
#include "stall.h"
#include "wire/address.h"
#include "wire/neighbour.h"
#include "wire/psn.h"
#include "wire/socket.h"

static const char *host_name(const uint8_t gid[16])
{
	static char text[INET6_ADDRSTRLEN];
	const bool v4 = wire_gid_is_ipv4(gid);

	if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, text,
		       sizeof(text)))
		return "?";
	return text;
}

const char *wire_peer_name(const struct view_qp *q)
{
	static char text[INET6_ADDRSTRLEN + 32];
	uint8_t gid[16];

	shared_gid_get(&q->sh.dgid, gid);
	snprintf(text, sizeof(text), "QP 0x%x of %s",
		 URXE_CONN_DEST(load_relaxed(&q->sh.conn)), host_name(gid));
	return text;
}

/* ---------------------------------------------------------- this host */

/*
 * Whether no running process receives from the RoCE v2 socket of the fabric:
 * it has no owner, or its owner is stopped. If so, set the kind and append
 * the reason, as the next two functions do.
 */
static bool socket_owner_is_missing(struct stall *s, const struct view *v)
{
	const uint32_t id = load_relaxed(&v->dev->wire.socket_owner);
	struct view_process p;

	if (!view_process_of(v, id, &p) || p.state == '-') {
		s->kind = "no-holder";
		stall_append(
			s,
			": no process of the fabric owns the RoCE socket (UDP port 4791), so no packets are received");
		stall_ends(
			s,
			"a process that opens the device and can bind the port (urxe doctor)");
		return true;
	}
	if (!process_is_stopped(&p))
		return false;
	s->kind = "holder-stopped";
	stall_append(s, ": %s, which owns the RoCE socket, is stopped",
		     process_name(&p));
	stall_ends(s, "SIGCONT or SIGKILL to %s", process_name(&p));
	return true;
}

/* Whether responses are in the QP's inbox that its owner has not read. */
static bool response_is_queued(struct stall *s, const struct view_qp *q)
{
	if (load_relaxed(&q->inbox.head) == load_relaxed(&q->inbox.tail))
		return false;
	s->kind = "answer-unread";
	stall_append(s, ": a response has arrived, and %s has not read it%s",
		     process_name(&q->process),
		     process_is_stopped(&q->process) ?
			     ", because the process is stopped" :
			     "");
	stall_ends(s, process_is_stopped(&q->process) ?
			      "SIGCONT to the process" :
			      "the next poll or timer of the process");
	return true;
}

/*
 * Whether the peer's address has no route or does not resolve. Link-local
 * addresses are not checked: their interface is not known here.
 */
static bool cannot_reach(struct stall *s, const struct view_qp *q)
{
	uint8_t gid[16], own[16];
	int err;

	shared_gid_get(&q->sh.dgid, gid);
	shared_gid_get(&q->sh.sgid, own);

	if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80)
		return false;
	err = -neighbour_find(gid, own, 0);
	if (err == EINPROGRESS) {
		s->kind = "no-neighbour";
		stall_append(
			s,
			": the address of %s, or of the router to it, does not resolve (ip neigh)",
			host_name(gid));
		stall_ends(s, "a running host with this address");
	} else if (err == ENETUNREACH || err == EHOSTUNREACH) {
		s->kind = "no-route";
		stall_append(s, ": no route to %s (ip route get)",
			     host_name(gid));
		stall_ends(s, "a route");
	} else {
		return false;
	}
	return true;
}

/* Whether packets of the path MTU do not fit into the MTU of the interface. */
static bool mtu_is_too_small(struct stall *s, const struct view_qp *q)
{
	const uint32_t payload = 128u << (load_relaxed(&q->sh.path_mtu) & 7);
	char name[IF_NAMESIZE];
	uint32_t mtu, bytes;
	uint8_t own[16];

	shared_gid_get(&q->sh.sgid, own);
	bytes = payload + WIRE_HEADERS - (wire_gid_is_ipv4(own) ? 20 : 0);
	mtu = wire_interface_mtu(own, name);
	if (!mtu || mtu >= bytes)
		return false;
	s->kind = "mtu";
	stall_append(
		s,
		": packets of the path MTU %u have up to %u bytes, but the MTU of %s is %u",
		payload, bytes, name, mtu);
	stall_ends(s, "ip link set %s mtu %u", name, bytes);
	return true;
}

/* ---------------------------------------------------------- WRs */

static bool is_fetch(const struct view_qp *q)
{
	const uint8_t op = load_relaxed(&q->sh.wait.opcode);

	return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/*
 * Append the range of outstanding packets, and the number of retransmissions.
 */
static void stall_append_packets(struct stall *s, const struct view_qp *q)
{
	const struct urxe_wire_status *w = &q->inbox.published;
	const uint32_t una = load_relaxed(&w->una);
	const uint32_t out = (load_relaxed(&w->next) - una) & WIRE_PSN_MASK;
	const uint32_t queued =
		(load_relaxed(&w->end) - load_relaxed(&w->next)) &
		WIRE_PSN_MASK;
	const uint32_t window = load_relaxed(&w->window);
	const uint32_t retransmits = load_relaxed(&w->retransmits);

	stall_append(s, " from PSN 0x%x on (%u packet%s outstanding", una, out,
		     plural_is(out));
	if (queued && out >= window)
		stall_append(s, ", and the window of %u is full", window);
	if (load_relaxed(&w->waits_turn))
		stall_append(s, ", and a READ waits for its turn");
	if (retransmits)
		stall_append(s, "; retransmitted %u time%s", retransmits,
			     plural(retransmits));
	stall_append(s, ")");
}

/* A READ that has requested nothing, because other QPs have requested much */
static bool waits_for_turn(struct stall *s, const struct view *v,
			   const struct view_qp *q)
{
	const struct urxe_wire_status *w = &q->inbox.published;

	if (!load_relaxed(&w->waits_turn) ||
	    load_relaxed(&w->una) != load_relaxed(&w->next))
		return false;
	s->kind = "read-turn";
	stall_append(
		s,
		"for its turn to request data of %s: other QPs of its context have READs outstanding, or wait before it",
		wire_peer_name(q));
	if (!socket_owner_is_missing(s, v))
		stall_ends(s, "responses to READs of other QPs");
	return true;
}

void stall_of_wire(struct stall *s, const struct view *v,
		   const struct view_qp *q)
{
	const bool rnr = load_relaxed(&q->sh.wait.what) == URXE_WAIT_RECEIVE;

	if (!hca_is_up(&v->dev->hca[0])) {
		s->kind = "port-down";
		stall_append(s, "for a response");
		stall_port_down(s, v, 0);
		return;
	}
	if (rnr) {
		stall_append(s, "for a receive (RNR): %s has no receive posted",
			     wire_peer_name(q));
		stall_ends(s, "ibv_post_recv by the peer");
		return;
	}
	if (waits_for_turn(s, v, q))
		return;
	stall_append(s, "for %s of %s", is_fetch(q) ? "the data" : "an ACK",
		     wire_peer_name(q));
	stall_append_packets(s, q);
	if (!socket_owner_is_missing(s, v) && !response_is_queued(s, q) &&
	    !cannot_reach(s, q) && !mtu_is_too_small(s, q))
		stall_ends(s, "a response");
}

void stall_wire_ends(struct stall *s, const struct view *v,
		     const struct view_qp *q)
{
	const struct urxe_wire_status *w = &q->inbox.published;
	const uint64_t until = load_relaxed(&w->until);
	const uint32_t left = load_relaxed(&w->left);

	if (left != URXE_WIRE_ENDLESS && !until) /* no timer is running */
		return;
	if (*s->ends)
		stall_ends(s, "; ");
	if (left == URXE_WIRE_ENDLESS)
		stall_ends(s, "no ACK timeout (timeout is 0)");
	else
		stall_ends(
			s,
			"RETRY_EXC_ERR after %u more retr%s, the next in %llu ms",
			left, left == 1 ? "y" : "ies",
			(unsigned long long)(until > v->at ?
						     (until - v->at) / 1000000 :
						     0));
}

/* ---------------------------------------------------------- receives */

void stall_of_wire_receives(struct stall *s, const struct view *v,
			    const struct view_qp *q, uint32_t n)
{
	stall_append(s, "%u receive%s posted: no message arrives from %s", n,
		     plural_is(n), wire_peer_name(q));
	if (socket_owner_is_missing(s, v))
		s->level = STALL_STALLS;
	else
		stall_ends(s, "a message from the peer");
}
