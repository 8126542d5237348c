// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * cmstat DIR [wait N]: print the channels and ids of the connection manager
 * in the fabric at DIR.  With "wait": print nothing, but wait until there are
 * N listeners, at most 20 s.
 *
 * cmstat DIR executes PID: succeed if the process, a socket owner of the wire,
 * is executing a packet of a connected QP.  PID may be stopped: no lock is
 * taken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm/cm.h"

static const char *const cma[] = { "idle",    "bound",	    "addr",  "route",
				   "connect", "disconnect", "listen",
				   "route-query", "addr-query" };
static const char *const state[] = { "idle",	  "req-sent",  "req-rcvd",
				     "rep-sent",  "rep-rcvd",  "established",
				     "dreq-sent", "dreq-rcvd", "timewait",
				     "sidr-sent", "sidr-rcvd" };

static int listeners(struct cm *cm, bool show)
{
	struct cm_chan *c;
	struct cm_id *id;
	int n = 0;

	cm_for_each_id(cm, id) {
		c = cm_chan_at(cm, id->chan);
		n += id->cma == CMA_LISTEN;
		if (show)
			printf("id %u channel %u pid %d (%.15s) ps 0x%x port %u to %u %s %s peer %d reported %u\n",
			       cm_id_ref(cm, id) - 1, id->chan - 1, c ? c->pid : -1,
			       c ? c->comm : "?", id->ps,
			       cm_addr_port(&id->src), cm_addr_port(&id->dst),
			       cma[id->cma % 9], state[id->cm % 11],
			       (int)id->peer.id - 1, id->events_reported);
	}
	return n;
}

static void channels(struct cm *cm)
{
	struct cm_chan *c;

	cm_for_each_chan(cm, c)
		printf("channel %u pid %d (%.15s) events %u\n",
		       cm_chan_ref(cm, c) - 1, c->pid, c->comm, c->events);
}

static bool executes(const struct urxe_dev *dev, int pid)
{
	const struct urxe_owner_slot *s = dev->wire.owner_slot;
	const struct urxe_process *p;
	uint32_t i, owner;

	for (i = 0; i < URXE_OWNER_SLOTS; i++) {
		owner = load_acquire(&s[i].owner);
		p = &dev->process[URXE_PROCESS_NUMBER(owner)];
		if (owner && load_relaxed(&p->pid) == pid &&
		    load_acquire(&s[i].at))
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	int want = argc == 4 && !strcmp(argv[2], "wait") ? atoi(argv[3]) : 0;
	struct urxe_fabric *f;
	struct cm cm = { 0 };
	int tries, n = 0;

	if (argc < 2)
		return 2;
	if (argc == 4 && !strcmp(argv[2], "executes"))
		return fabric_open(argv[1], false, &f) ||
		       !executes(f->dev, atoi(argv[3]));
	for (tries = 0; tries < 2000; tries++) {
		if (!cm.t && !fabric_open(argv[1], false, &f)) {
			cm.f = f;
			if (cm_map(f, &cm.t))
				return 1;
		}
		if (cm.t) {
			cm_lock(&cm);
			/* free the channels of dead processes first */
			cm_chan_sweep(&cm, CM_MAX_CHAN);
			n = listeners(&cm, !want);
			if (!want)
				channels(&cm);
			cm_unlock(&cm);
		}
		if (n >= want)
			return 0;
		usleep(10000);
	}
	fprintf(stderr, "cmstat: %d listeners, not %d\n", n, want);
	return 1;
}
