// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Consistency checks of the connection manager's tables (shared/cm_tables.h)
 * and of the FIFOs of event channels.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/plural.h"
#include "cm/cm.h"
#include "inspect.h"

/* In this file cm->t is a copy of the tables; cm.h's lookups work on it. */

static void inspect_channel(struct inspection *l, struct cm *cm,
			    struct cm_chan *c, uint8_t *seen)
{
	uint32_t i = cm_chan_ref(cm, c) - 1, ref, n = 0;
	struct cm_event *e;
	struct stat st;
	char name[40];

	snprintf(name, sizeof(name), "cm.d/%u.%u", i, c->gen);
	if (c->state == CM_CHAN_LIVE &&
	    (fstatat(l->f->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	     st.st_ino != c->ino))
		found(l->out, "event channel %u (%.15s): FIFO is missing", i,
		      c->comm);
	for (ref = c->head; ref && n <= CM_MAX_EVENT; ref = e->next) {
		e = cm_event_at(cm, ref);
		if (!e || e->chan != i + 1 || seen[ref - 1]++) {
			found(l->out,
			      "event channel %u: invalid event %u in its queue",
			      i, ref - 1);
			return;
		}
		n++;
	}
	if (n != c->events)
		found(l->out, "event channel %u: %u event%s counted, %u found",
		      i, c->events, plural(c->events), n);
}

static void inspect_ids(struct inspection *l, struct cm *cm)
{
	struct cm_id *id;
	struct cm_mc *mc;

	cm_for_each_id(cm, id)
		if (!cm_chan_at(cm, id->chan))
			found(l->out, "rdma_cm_id %u has no event channel",
			      cm_id_ref(cm, id) - 1);
	cm_for_each_mc(cm, mc)
		if (!cm_id_at(cm, mc->id))
			found(l->out, "multicast join %u has no rdma_cm_id",
			      cm_mc_ref(cm, mc) - 1);
}

static void inspect_events(struct inspection *l, struct cm *cm)
{
	uint8_t *seen = calloc(CM_MAX_EVENT, 1);
	struct cm_event *e;
	struct cm_chan *c;

	if (!seen)
		return;
	cm_for_each_chan(cm, c)
		inspect_channel(l, cm, c, seen);
	cm_for_each_event(cm, e)
		if (!seen[cm_event_ref(cm, e) - 1])
			found(l->out, "event %u is in no event channel's queue",
			      cm_event_ref(cm, e) - 1);
	free(seen);
}

/* Check that each FIFO belongs to a channel in the table. */
static void inspect_fifos(struct inspection *l, struct cm *cm)
{
	DIR *dir = dir_open(l->f->dirfd, "cm.d");
	unsigned int i, gen;
	struct cm_chan *c;
	struct dirent *e;
	char rest;

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		c = NULL;
		if (sscanf(e->d_name, "%u.%u%c", &i, &gen, &rest) == 2)
			c = cm_chan_at(cm, i + 1);
		if (!c || c->gen != gen)
			found(l->out,
			      "the file cm.d/%s belongs to no event channel",
			      e->d_name);
	}
	if (dir)
		closedir(dir);
}

/* Copy the entries of one table below its high-water mark (cm_KINDs()). */
#define COPY(fd, cm, kind)                                           \
	copy_out(fd, offsetof(struct cm_table, kind), (cm)->t->kind, \
		 cm_##kind##s(cm) * sizeof(*(cm)->t->kind))

bool cm_copy_out(int fd, struct cm *cm)
{
	return copy_out(fd, 0, cm->t, offsetof(struct cm_table, chan)) &&
	       COPY(fd, cm, chan) && COPY(fd, cm, id) && COPY(fd, cm, event) &&
	       COPY(fd, cm, mc);
}

void inspect_cm(struct inspection *l)
{
	struct cm cm = { .f = l->f };
	int fd;

	fd = openat(l->f->dirfd, "cm", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* the connection manager was never used */
	cm.t = copy_space(sizeof(*cm.t));
	if (cm.t && !cm_copy_out(fd, &cm)) {
		found(l->out, "the file \"cm\" is truncated");
	} else if (cm.t) {
		inspect_events(l, &cm);
		inspect_ids(l, &cm);
		inspect_fifos(l, &cm);
	}
	copy_space_free(cm.t, sizeof(*cm.t));
	close(fd);
}
