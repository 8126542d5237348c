/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ports that send the packets of a capture. A device is an interface of
 * the pcapng file; if fabrics have Ethernet and InfiniBand devices of one
 * name, these are two interfaces.
 */
#pragma once

#include "pcapng.h"
#include "trace_print.h"

/* Name of the device, if its fabric has no other one */
#define PORT_ONLY "urxe0"
/* Name, if the trace does not have the creation of the QP that sends */
#define PORT_UNKNOWN "unknown"

struct port {
	struct port *next;
	uint64_t fabric;
	char device[TRACE_NAME_ROOM];
	enum pcapng_link link;
	/* ports of several fabrics with one name share an interface */
	uint32_t interface;
	uint32_t psn; /* of the next packet of QP 1 (GSI) */
};

struct ports {
	struct port *first;
	uint32_t interfaces;
	FILE *to; /* NULL until ports_write() */
};

/*
 * Find or add a port. After ports_write(), write the interface of a new one.
 * Return NULL if there is no memory.
 */
struct port *ports_get(struct ports *ports, uint64_t fabric, const char *device,
		       enum pcapng_link link);
/* Write the interfaces to the file. */
void ports_write(struct ports *ports, FILE *to);
void ports_free(struct ports *ports);
