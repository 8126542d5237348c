// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Performance management agents (IB 16.1): the counters of a port, as sysfs
 * shows them, with 32 and with 64 bits.  A port of a switch has those of the
 * device at the other end, in the other direction; between switches they are 0.
 * Set clears counters: their
 * values at that time are subtracted from then on, in MADs only.
 */
#include <string.h>

#include "agents.h"

#define ALL_PORTS 255
#define CAP_ALL_PORTS (1u << 8)
#define CAP_EXTENDED (1u << 9)

/*
 * Counters of a port, and of the port of the switch at the other end of its
 * link; their fields in PortCounters and PortCountersExtended.
 */
static const struct {
	enum urxe_counter of, of_switch;
	enum attribute_field narrow, wide;
	uint32_t select; /* bit of CounterSelect in PortCounters */
	uint64_t most; /* of the narrow counter, which saturates */
} counters[] = {
	{ URXE_CNT_XMIT_DATA, URXE_CNT_RCV_DATA, ATTR_COUNTERS_xmit_data,
	  ATTR_EXTENDED_xmit_data, 12, UINT32_MAX },
	{ URXE_CNT_RCV_DATA, URXE_CNT_XMIT_DATA, ATTR_COUNTERS_rcv_data,
	  ATTR_EXTENDED_rcv_data, 13, UINT32_MAX },
	{ URXE_CNT_XMIT_PACKETS, URXE_CNT_RCV_PACKETS,
	  ATTR_COUNTERS_xmit_packets, ATTR_EXTENDED_xmit_packets, 14,
	  UINT32_MAX },
	{ URXE_CNT_RCV_PACKETS, URXE_CNT_XMIT_PACKETS,
	  ATTR_COUNTERS_rcv_packets, ATTR_EXTENDED_rcv_packets, 15,
	  UINT32_MAX },
	{ URXE_CNT_LINK_DOWNED, URXE_CNT_LINK_DOWNED, ATTR_COUNTERS_link_downed,
	  ATTRIBUTE_FIELDS, 2, UINT8_MAX },
};
#define COUNTERS (sizeof(counters) / sizeof(*counters))

/* The bit of CounterSelect in PortCountersExtended. */
#define EXTENDED_SELECT(i) (1u << (i))

static enum urxe_counter counter_at(unsigned int i, uint32_t node)
{
	return node_is_switch(node) ? counters[i].of_switch : counters[i].of;
}

/*
 * Return a counter of a port since it was cleared.  The two ends of a link are
 * cleared together.
 */
static uint64_t counter_since(struct urxe_dev *dev, uint32_t node,
			      uint32_t port, unsigned int i)
{
	const int k = node_is_switch(node) ? port_device(dev, node, port) :
					     (int)node;
	const enum urxe_counter which = counter_at(i, node);

	/* port 0, no link, or one between two switches */
	if (k < 0)
		return 0;
	return counter_read(dev, (uint32_t)k, which) -
	       load_relaxed(&dev->hca[k].cleared[which]);
}

static void counter_clear(struct urxe_dev *dev, uint32_t node, uint32_t port,
			  unsigned int i)
{
	const int k = node_is_switch(node) ? port_device(dev, node, port) :
					     (int)node;
	const enum urxe_counter which = counter_at(i, node);

	if (k >= 0)
		store_relaxed(&dev->hca[k].cleared[which],
			      counter_read(dev, (uint32_t)k, which));
}

struct pma {
	struct urxe_dev *dev;
	uint32_t node;
	uint32_t first, last; /* ports */
	uint8_t *data;
};

/*
 * Get the ports that the request selects.  False: they do not exist.  As HCAs
 * do, a device takes port 0 as the port that received the request.
 */
static bool pma_select(struct pma *p, uint32_t port)
{
	if (!port && !node_is_switch(p->node))
		port = 1;
	if (port == ALL_PORTS) {
		p->first = 1;
		p->last = node_ports(p->dev, p->node);
		return true;
	}
	p->first = p->last = port;
	return port <= node_ports(p->dev, p->node);
}

static uint64_t pma_sum(const struct pma *p, unsigned int i)
{
	uint64_t sum = 0;
	uint32_t port;

	for (port = p->first; port <= p->last; port++)
		sum += counter_since(p->dev, p->node, port, i);
	return sum;
}

static void pma_clear(const struct pma *p, unsigned int i)
{
	uint32_t port;

	for (port = p->first; port <= p->last; port++)
		counter_clear(p->dev, p->node, port, i);
}

static uint16_t port_counters(struct pma *p, bool set)
{
	const uint32_t port = (uint32_t)attr_get(p->data, ATTR_COUNTERS_port);
	const uint32_t select =
		(uint32_t)attr_get(p->data, ATTR_COUNTERS_select);
	unsigned int i;
	uint64_t value;

	if (!pma_select(p, port))
		return STATUS_BAD_VALUE;
	memset(p->data, 0, MAD_BYTES_MAX - GMP_DATA);
	attr_set(p->data, ATTR_COUNTERS_port, port);
	attr_set(p->data, ATTR_COUNTERS_select, select);
	for (i = 0; i < COUNTERS; i++) {
		if (set && select & 1u << counters[i].select)
			pma_clear(p, i);
		value = pma_sum(p, i);
		attr_set(p->data, counters[i].narrow,
			 value < counters[i].most ? value : counters[i].most);
	}
	return 0;
}

static uint16_t port_counters_extended(struct pma *p, bool set)
{
	const uint32_t port = (uint32_t)attr_get(p->data, ATTR_EXTENDED_port);
	const uint32_t select =
		(uint32_t)attr_get(p->data, ATTR_EXTENDED_select);
	unsigned int i;

	if (!pma_select(p, port))
		return STATUS_BAD_VALUE;
	memset(p->data, 0, MAD_BYTES_MAX - GMP_DATA);
	attr_set(p->data, ATTR_EXTENDED_port, port);
	attr_set(p->data, ATTR_EXTENDED_select, select);
	for (i = 0; i < COUNTERS; i++) {
		if (counters[i].wide == ATTRIBUTE_FIELDS)
			continue;
		if (set && select & EXTENDED_SELECT(i))
			pma_clear(p, i);
		attr_set(p->data, counters[i].wide, pma_sum(p, i));
	}
	attr_set(p->data, ATTR_EXTENDED_unicast_xmit,
		 attr_get(p->data, ATTR_EXTENDED_xmit_packets));
	attr_set(p->data, ATTR_EXTENDED_unicast_rcv,
		 attr_get(p->data, ATTR_EXTENDED_rcv_packets));
	return 0;
}

static uint16_t class_port_info(struct pma *p)
{
	memset(p->data, 0, MAD_BYTES_MAX - GMP_DATA);
	attr_set(p->data, ATTR_CLASS_base_version, 1);
	attr_set(p->data, ATTR_CLASS_class_version, 1);
	attr_set(p->data, ATTR_CLASS_cap_mask, CAP_ALL_PORTS | CAP_EXTENDED);
	attr_set(p->data, ATTR_CLASS_response_time, 16);
	return 0;
}

bool pma_answer(struct urxe_fabric *f, uint32_t node,
		uint8_t mad[MAD_BYTES_MAX])
{
	const uint32_t method = (uint32_t)attr_get(mad, ATTR_MAD_method);
	struct pma p = { .dev = f->dev, .node = node, .data = mad + GMP_DATA };
	uint16_t status = STATUS_BAD_ATTRIBUTE;

	if (attr_get(mad, ATTR_MAD_response) ||
	    (method != METHOD_GET && method != METHOD_SET))
		return false;
	switch (attr_get(mad, ATTR_MAD_attribute)) {
	case ATTRIBUTE_CLASS_PORT_INFO:
		if (method == METHOD_GET)
			status = class_port_info(&p);
		break;
	case PERF_PORT_COUNTERS:
		status = port_counters(&p, method == METHOD_SET);
		break;
	case PERF_PORT_COUNTERS_EXTENDED:
		status = port_counters_extended(&p, method == METHOD_SET);
		break;
	}
	mad_respond(mad, status);
	return true;
}
