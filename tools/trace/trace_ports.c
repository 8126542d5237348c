// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "trace_ports.h"

static void port_describe(const struct port *p, char *text, size_t n)
{
	if (!strcmp(p->device, PORT_ONLY))
		snprintf(
			text, n,
			"urxe trace: packets that a wire would have carried, and packets exchanged with other hosts");
	else if (!strcmp(p->device, PORT_UNKNOWN))
		snprintf(
			text, n,
			"urxe trace: packets of devices that are not known, because the trace does not have the creation of their QPs");
	else
		snprintf(text, n, "urxe trace: packets that %s would have sent",
			 p->device);
}

static void port_write(const struct port *p, FILE *to)
{
	char text[256];

	port_describe(p, text, sizeof(text));
	pcapng_interface(to, p->link, p->device, text);
}

static struct port *port_add(struct ports *ports, struct port **at,
			     const struct port *port, const struct port *same)
{
	struct port *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	*p = *port;
	p->interface = same ? same->interface : ports->interfaces++;
	*at = p;
	if (ports->to && !same)
		port_write(p, ports->to);
	return p;
}

struct port *ports_get(struct ports *ports, uint64_t fabric, const char *device,
		       enum pcapng_link link)
{
	struct port port = { .fabric = fabric, .link = link }, **at, *same;

	same = NULL;
	for (at = &ports->first; *at; at = &(*at)->next) {
		if (strcmp((*at)->device, device) || (*at)->link != link)
			continue;
		if ((*at)->fabric == fabric)
			return *at;
		same = *at;
	}
	snprintf(port.device, sizeof(port.device), "%s", device);
	return port_add(ports, at, &port, same);
}

void ports_write(struct ports *ports, FILE *to)
{
	const struct port *p;
	uint32_t written = 0;

	for (p = ports->first; p; p = p->next) {
		if (p->interface < written)
			continue;
		port_write(p, to);
		written++;
	}
	ports->to = to;
}

void ports_free(struct ports *ports)
{
	struct port *p, *next;

	for (p = ports->first; p; p = next) {
		next = p->next;
		free(p);
	}
}
