/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The agents that hardware and a built-in subnet manager provide: subnet
 * management (sma.c), performance (pma.c), a vendor's class (vendor.c), and
 * subnet administration (sa.c).
 * Each answers a request in the thread that sends it, from the state of the
 * fabric.  Any thread may call these functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "attribute.h"
#include "topology.h"

#define MAD_BYTES_MAX 256 /* of a MAD without RMPP */

/*
 * Answer a SMP at a node, which arrived through in_port; mad becomes the
 * response.  False: the node has no answer, and programs may have one.
 */
bool sma_answer(struct urxe_fabric *f, uint32_t node, uint32_t in_port,
		uint8_t mad[MAD_BYTES_MAX]);
/* The same for a performance MAD. */
bool pma_answer(struct urxe_fabric *f, uint32_t node,
		uint8_t mad[MAD_BYTES_MAX]);
/* The same for the vendor class of Mellanox HCAs. */
bool vendor_answer(struct urxe_fabric *f, uint32_t node,
		   uint8_t mad[MAD_BYTES_MAX]);
/*
 * The same for a request of a device to the built-in subnet administrator.
 * The response may be longer: *out is allocated, and *len its length.
 * False: there is no answer, or no memory for it.
 */
bool sa_answer(struct urxe_fabric *f, uint32_t from,
	       const uint8_t mad[MAD_BYTES_MAX], uint8_t **out, size_t *len);

/* Make mad the response to itself. */
static inline void mad_respond(uint8_t *mad, uint16_t status)
{
	attr_set(mad, ATTR_MAD_response, 1);
	if (attr_get(mad, ATTR_MAD_method) == METHOD_SET)
		attr_set(mad, ATTR_MAD_method, METHOD_GET);
	if (attr_get(mad, ATTR_MAD_mgmt_class) == CLASS_SUBN_DIRECTED) {
		attr_set(mad, ATTR_SMP_status, status);
		attr_set(mad, ATTR_SMP_direction, 1);
		attr_set(mad, ATTR_SMP_hop_pointer, 0);
	} else {
		attr_set(mad, ATTR_MAD_status, status);
	}
}

/*
 * Attributes of a node, for the SMA and for the records of the SA; out has 64
 * zeroed bytes.
 */
void sma_node_info(const struct urxe_dev *dev, uint32_t node, uint32_t port,
		   uint8_t *out);
void sma_port_info(struct urxe_fabric *f, uint32_t node, uint32_t port,
		   uint8_t *out);
void sma_switch_info(struct urxe_dev *dev, uint32_t node, uint8_t *out);
void sma_sm_info(const struct urxe_dev *dev, uint8_t *out);
void sma_guids(const struct urxe_dev *dev, uint32_t node, uint8_t *out);
void sma_pkeys(struct urxe_dev *dev, uint32_t node, uint8_t *out);
/* Block of 64 LIDs of the switch's forwarding table. */
void sma_lft(struct urxe_dev *dev, uint32_t node, uint32_t block, uint8_t *out);
