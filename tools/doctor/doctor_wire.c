// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe doctor: check the address, UDP port, MTU and firewall that urxe run
 * --wire (RoCE v2) would use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "doctor.h"
#include "common/wire.h"
#include "wire/network.h"
#include "wire/socket.h"

static const char cost[] = "urxe run --wire: other hosts cannot be reached";

/* Maximum length of the headers of a RoCE packet, and maximum path MTU. */
#define HEADERS 80
#define MTU_MAX 4096

/* Return the MTU of the interface, or 0 if it is unknown. */
static int mtu_of(const struct wire_choice *w)
{
	struct ifreq r = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = 0;

	if (fd < 0)
		return 0;
	memcpy(r.ifr_name, w->interface, sizeof(r.ifr_name));
	if (!ioctl(fd, SIOCGIFMTU, &r))
		mtu = r.ifr_mtu;
	close(fd);
	return mtu;
}

/* URXE_WIRE is set.  If not, problems are reported as OK, not as warnings. */
static bool wanted;

static void check_mtu(const struct wire_choice *w)
{
	const int mtu = mtu_of(w);
	int path = MTU_MAX;

	while (path > 256 && path + HEADERS > mtu)
		path /= 2;
	if (path == MTU_MAX || !wanted)
		ok("wire: %s has MTU %d: path MTU %d at most", w->interface,
		   mtu, path);
	else
		report(WARN,
		       "more packets; QPs with a path MTU of 4096 cannot communicate",
		       "set MTU 4200 or more on both hosts and the path between them: ip link set DEVICE mtu 4200",
		       "wire: %s has MTU %d: path MTU %d at most", w->interface,
		       mtu, path);
}

/*
 * Report that the port is in use.  One fabric for each address can have it.
 */
static void port_in_use(const struct wire_choice *w)
{
	const bool rxe = !access("/sys/module/rdma_rxe", F_OK);
	const char *who =
		rxe ? "perhaps by the kernel's rxe (rdma_rxe is loaded)" :
		      "by a program, perhaps of another fabric";

	if (!wanted)
		ok("wire: port %d of %s is in use, %s", WIRE_PORT, w->text,
		   who);
	else
		report(WARN, cost,
		       rxe ? "delete the rxe link (rdma link delete), or use another network namespace" :
			     "ss -ulpn 'sport = 4791' prints the program; if it is in this fabric, nothing is wrong",
		       "wire: port %d of %s is in use, %s", WIRE_PORT, w->text,
		       who);
}

static void check_port(const struct wire_choice *w)
{
	struct wire_socket s;
	int ret = wire_socket_open(&s, w->gid.s6_addr, WIRE_PORT, 0);

	if (!ret) {
		wire_socket_close(&s);
		ok("wire: port %d of %s on %s is free", WIRE_PORT, w->text,
		   w->interface);
	} else if (ret == -EADDRINUSE) {
		port_in_use(w);
	} else {
		report(WARN, cost, NULL, "wire: port %d of %s: %s", WIRE_PORT,
		       w->text, strerror(-ret));
	}
}

void check_wire(void)
{
	const char *what = getenv("URXE_WIRE");
	struct wire_choice w;
	char why[256];

	wanted = what && *what;
	if (!wire_choose(wanted ? what : NULL, &w, why)) {
		check_port(&w);
		check_mtu(&w);
		check_firewall(wanted, w.ipv6);
	} else if (wanted) {
		report(WARN, cost,
		       "unset URXE_WIRE, or urxe run --wire=ADDRESS",
		       "wire: %s", why);
	} else {
		ok("wire: off; %s", why);
	}
}
