// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sending MADs (write on a umad device).  The sender's thread finds the node to
 * which the MAD goes.  The agents of hardware and the built-in subnet
 * administrator answer at once (mad/agents.h); for other requests the MAD is
 * written to the device of the agent that has registered for it, in any
 * process.  A response goes to the agent that its TID names: as in the kernel,
 * the high half of the TID of a request identifies the agent.
 */
#include <endian.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

#define LID_OWN LID_PERMISSIVE /* in a directed route, and to the own port */
#define RMPP_HEADER_END 36

/* Where a MAD goes: a node, and the port through which it arrives. */
struct route {
	uint32_t node, in_port;
};

static uint32_t mad_class(const uint8_t *mad)
{
	return (uint32_t)attr_get(mad, ATTR_MAD_mgmt_class);
}

static bool mad_is_subnet(const uint8_t *mad)
{
	return mad_class(mad) == CLASS_SUBN ||
	       mad_class(mad) == CLASS_SUBN_DIRECTED;
}

static bool mad_is_response(const uint8_t *mad)
{
	return attr_get(mad, ATTR_MAD_response) ||
	       attr_get(mad, ATTR_MAD_method) == METHOD_TRAP_REPRESS;
}

/* The node with a LID, if the routes of switches lead to it. */
static bool route_by_lid(struct urxe_dev *dev, uint32_t k, uint16_t lid,
			 struct route *r)
{
	r->node = k;
	r->in_port = 1;
	return lid == LID_OWN || port_has_lid(node_subnet(dev, k), lid) ||
	       route_follow(dev, lid, &r->node, &r->in_port);
}

/*
 * Follow the initial path of a directed route, and enter the return path (IB
 * 14.2.2).  It begins at this port or, if dr_slid is a LID, at the node to
 * which the MAD is sent by LID.  False: it leads nowhere.
 */
static bool route_directed(struct urxe_dev *dev, uint32_t k, uint16_t lid,
			   uint8_t *mad, struct route *r)
{
	const uint32_t hops = (uint32_t)attr_get(mad, ATTR_SMP_hop_count);
	uint32_t i, out;

	if (attr_get(mad, ATTR_SMP_dr_slid) == LID_PERMISSIVE)
		lid = LID_OWN;
	if (hops > SMP_HOPS ||
	    attr_get(mad, ATTR_SMP_dr_dlid) != LID_PERMISSIVE ||
	    !route_by_lid(dev, k, lid, r))
		return false;
	for (i = 1; i <= hops; i++) {
		out = mad[SMP_INITIAL_PATH + i];
		/* only a switch forwards */
		if (i > 1 && !node_is_switch(r->node))
			return false;
		r->in_port = out;
		if (!port_cross(dev, &r->node, &r->in_port))
			return false;
		mad[SMP_RETURN_PATH + i] = (uint8_t)r->in_port;
	}
	return true;
}

/* The header of a received MAD, which comes from a LID. */
static void record_from(struct umad_record *rec, uint32_t agent, uint16_t lid,
			uint32_t qpn)
{
	memset(&rec->hdr, 0, sizeof(rec->hdr));
	rec->hdr.id = agent;
	rec->hdr.lid = htobe16(lid);
	rec->hdr.qpn = htobe32(qpn);
}

/*
 * Return a response to the agent that its TID names.  k: the device to which
 * the response is sent, or -1 if that is not known.  The response is dropped
 * if the request has ended, by a response or by its timeout.
 */
static void deliver_response(struct urxe_fabric *f, const uint8_t *mad,
			     size_t len, uint16_t from, int k)
{
	const uint64_t tid = attr_get(mad, ATTR_MAD_tid);
	const uint32_t qpn = mad_is_subnet(mad) ? 0 : 1;
	uint32_t index, agent;
	struct umad_record rec;

	if (!umad_of_tid(f->dev, (uint32_t)(tid >> 32), &index, &agent) ||
	    (k >= 0 && f->dev->umad[index].device != (uint32_t)k) ||
	    !umad_pending_end(f->dev, index, tid))
		return;
	record_from(&rec, agent, from, qpn);
	/* no room: as if it were lost; the request is repeated */
	if (umad_device_put(f, index, &rec, mad, len) == -EAGAIN)
		umad_pending_add(f->dev, index, tid);
}

/* The LID that a receiver sees as the source. */
static uint16_t source_lid(struct urxe_dev *dev, uint32_t node,
			   const uint8_t *mad)
{
	return mad_class(mad) == CLASS_SUBN_DIRECTED ?
		       (uint16_t)LID_PERMISSIVE :
		       port_lid(node_subnet(dev, node));
}

/* Pass a request to the agent of a program.  False: none has registered. */
static bool deliver_request(const struct umad_send *s, const uint8_t *mad,
			    const struct route *r)
{
	struct urxe_fabric *f = s->umad.f;
	const uint32_t qpn = mad_is_subnet(mad) ? 0 : 1;
	uint32_t index, agent;
	struct umad_record rec;

	if (node_is_switch(r->node) ||
	    !umad_find_agent(f->dev, r->node, qpn, mad, &index, &agent))
		return false;
	record_from(&rec, agent, source_lid(f->dev, s->umad.device, mad), qpn);
	/* not if no process has the device open any more */
	return umad_device_put(f, index, &rec, mad, s->len) != -ENXIO;
}

/*
 * Let the agents of the node answer.  True: *answer, which is allocated if it
 * is not mad, is the response of *len bytes.
 */
static bool node_answers(const struct umad_send *s, const struct route *r,
			 uint8_t *mad, uint8_t **answer, size_t *len)
{
	struct urxe_fabric *f = s->umad.f;

	*answer = mad;
	*len = MAD_BYTES_MAX;
	if (mad_is_subnet(mad))
		return sma_answer(f, r->node, r->in_port, mad);
	if (mad_class(mad) == CLASS_PERF)
		return pma_answer(f, r->node, mad);
	if (mad_class(mad) == CLASS_MELLANOX)
		return vendor_answer(f, r->node, mad);
	return mad_class(mad) == CLASS_SA && !f->dev->sm_external &&
	       r->node == subnet_sm_home(f->dev) &&
	       sa_answer(f, s->umad.device, mad, answer, len);
}

/* As in the kernel: a Get or Set that no agent takes is refused. */
static bool refuse(uint8_t *mad)
{
	const uint32_t method = (uint32_t)attr_get(mad, ATTR_MAD_method);

	if (method != METHOD_GET && method != METHOD_SET)
		return false;
	mad_respond(mad, STATUS_BAD_ATTRIBUTE);
	return true;
}

static void transmit_request(const struct umad_send *s)
{
	struct urxe_fabric *f = s->umad.f;
	const uint16_t lid = be16toh(s->rec.hdr.lid);
	uint8_t mad[MAD_BYTES_MAX], *answer = mad;
	size_t len = MAD_BYTES_MAX;
	struct route r;

	memcpy(mad, s->rec.mad, sizeof(mad));
	if (mad_class(mad) == CLASS_SUBN_DIRECTED ?
		    !route_directed(f->dev, s->umad.device, lid, mad, &r) :
		    !route_by_lid(f->dev, s->umad.device, lid, &r))
		return;
	if (!node_answers(s, &r, mad, &answer, &len)) {
		if (deliver_request(s, s->len > MAD_BYTES_MAX ? s->mad : mad,
				    &r))
			return;
		if (!refuse(mad))
			return;
	}
	deliver_response(f, answer, len, source_lid(f->dev, r.node, mad), -1);
	if (answer != mad)
		free(answer);
}

/*
 * Send the response of a program: by its LID, or without one back along the
 * directed route.
 */
static void transmit_response(const struct umad_send *s)
{
	struct urxe_dev *dev = s->umad.f->dev;
	const uint32_t k = s->umad.device;
	struct route r = { 0, 0 };
	int to = -1;

	if (mad_class(s->rec.mad) != CLASS_SUBN_DIRECTED) {
		if (!route_by_lid(dev, k, be16toh(s->rec.hdr.lid), &r))
			return;
		to = (int)r.node;
	}
	deliver_response(s->umad.f, s->mad, s->len,
			 source_lid(dev, k, s->rec.mad), to);
}

void umad_transmit(const struct umad_send *s)
{
	if (mad_is_response(s->rec.mad))
		transmit_response(s);
	else
		transmit_request(s);
}

/* Is it an RMPP message, whose length is that of its data? */
static bool mad_is_rmpp(const struct urxe_mad_agent *agent, const uint8_t *mad)
{
	return agent->rmpp_version && attr_get(mad, ATTR_SA_rmpp_flags) & 1;
}

/* Take the parameters of a write: 0 or -errno. */
static int send_parse(struct umad_send *s, const uint8_t *buf, size_t len)
{
	struct urxe_dev *dev = s->umad.f->dev;
	const struct urxe_mad_agent *agent;
	const size_t header = s->umad.header;
	uint32_t id;

	if (len < header + RMPP_HEADER_END)
		return -EINVAL;
	memset(&s->rec, 0, sizeof(s->rec));
	memcpy(&s->rec.hdr, buf, header);
	s->mad = buf + header;
	s->len = len - header;
	memcpy(s->rec.mad, s->mad,
	       s->len < MAD_BYTES_MAX ? s->len : MAD_BYTES_MAX);
	id = s->rec.hdr.id;
	if (id >= URXE_UMAD_AGENTS)
		return -EINVAL;
	agent = &dev->umad[s->umad.index].agent[id];
	if (!load_acquire(&agent->used))
		return -EINVAL;
	if (mad_is_rmpp(agent, s->rec.mad))
		return 0;
	if (s->len > MAD_BYTES_MAX)
		return -EINVAL;
	/* other MADs always have 256 bytes */
	s->mad = s->rec.mad;
	s->len = MAD_BYTES_MAX;
	return 0;
}

/* Send a request, with the TID of its agent. */
static int send_request(struct umad_send *s)
{
	uint8_t *copy = malloc(s->len);
	int ret = 0;

	if (!copy)
		return -ENOMEM;
	attr_set(s->rec.mad, ATTR_MAD_tid_high,
		 umad_tid(s->umad.f->dev, s->umad.index, s->rec.hdr.id));
	memcpy(copy, s->mad, s->len);
	memcpy(copy, s->rec.mad,
	       s->len < MAD_BYTES_MAX ? s->len : MAD_BYTES_MAX);
	s->mad = copy;
	/* before it is sent: the answer may come at once */
	if (s->rec.hdr.timeout_ms)
		ret = pending_add(s);
	if (!ret)
		umad_transmit(s);
	free(copy);
	return ret;
}

static int umad_do_write(struct umad_send *s, const void *buf, size_t len)
{
	int ret = send_parse(s, buf, len);

	if (ret)
		return ret;
	if (!mad_is_response(s->rec.mad))
		return send_request(s);
	umad_transmit(s);
	return 0;
}

bool umad_write(int fd, const void *buf, size_t len, ssize_t *ret)
{
	const int saved = shim_enter();
	struct umad_send s;
	int err;

	if (!umad_of_fd(fd, &s.umad)) {
		shim_leave(saved);
		return false;
	}
	err = umad_do_write(&s, buf, len);
	shim_leave(err ? -err : saved);
	*ret = err ? -1 : (ssize_t)len;
	return true;
}
