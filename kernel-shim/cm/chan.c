// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event channels: creation, lookup, and reclamation when no process has the
 * FIFO open for reading any more.
 *
 * All functions run under the lock of the tables.
 *
 *	FREE	the entry is unused
 *	LIVE	in use; the FIFO had a reader when it was last checked, or the
 *		opener was killed before it had made the FIFO
 *	DYING	a thread found no reader (ENXIO) or no FIFO (ENOENT); the next
 *		cm_settle() destroys the channel and its ids
 *
 * A process that exits, or is killed, leaves its channels LIVE.  They are
 * found dead by the next thread that sends an event to them, by cm_tick() in
 * the process of a peer, by a listener or port lookup that checks them, or by
 * the sweep in cm_chan_open().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cm.h"

#define SWEEP 16 /* channels checked each time one is opened */

static void chan_fifo_name(struct cm *cm, const struct cm_chan *c, char buf[40])
{
	snprintf(buf, 40, "cm.d/%u.%u", cm_chan_ref(cm, c) - 1, c->gen);
}

void cm_chan_set_dying(struct cm *cm, struct cm_chan *c)
{
	c->state = CM_CHAN_DYING;
	cm->t->dying = 1;
}

int cm_chan_writer(struct cm *cm, struct cm_chan *c)
{
	char name[40];
	int fd;

	if (c->state != CM_CHAN_LIVE)
		return -1;
	chan_fifo_name(cm, c, name);
	/*
	 * Bypass the interposed openat(), which would take a FIFO of this
	 * mode for the rdma_cm device and open a new channel.
	 */
	fd = (int)syscall(SYS_openat, cm->f->dirfd, name,
			  O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && (errno == ENXIO || errno == ENOENT))
		cm_chan_set_dying(cm, c);
	return fd;
}

bool cm_chan_alive(struct cm *cm, struct cm_chan *c)
{
	int fd = cm_chan_writer(cm, c);

	if (fd >= 0)
		close(fd);
	/* LIVE as well if the open failed for another reason (EMFILE) */
	return c->state == CM_CHAN_LIVE;
}

static void chan_reap(struct cm *cm, struct cm_chan *c)
{
	const uint32_t ref = cm_chan_ref(cm, c);
	struct cm_id *id;
	char name[40];

	cm_for_each_id(cm, id)
		if (id->chan == ref)
			cm_id_destroy(cm, id, -1);
	cm_event_free_all(cm, c);
	chan_fifo_name(cm, c, name);
	unlinkat(cm->f->dirfd, name, 0);
	cm_chan_free(cm, c);
}

void cm_chan_reap(struct cm *cm)
{
	struct cm_chan *c;

	/* sending events to the peers may find more channels dead */
	while (cm->t->dying) {
		cm->t->dying = 0;
		cm_for_each_chan(cm, c)
			if (c->state == CM_CHAN_DYING)
				chan_reap(cm, c);
	}
}

void cm_chan_sweep(struct cm *cm, unsigned int n)
{
	struct cm_table *t = cm->t;
	struct cm_chan *c;

	for (n = cm_min(n, cm_chans(cm)); n; n--) {
		if (t->sweep_next >= cm_chans(cm))
			t->sweep_next = 0;
		c = cm_chan_at(cm, ++t->sweep_next);
		if (c)
			cm_chan_alive(cm, c);
	}
	cm_chan_reap(cm);
}

static int chan_make_fifo(struct cm *cm, struct cm_chan *c)
{
	struct stat st;
	char name[40];
	int fd;

	chan_fifo_name(cm, c, name);
	unlinkat(cm->f->dirfd, name, 0);
	if (mkfifoat(cm->f->dirfd, name, 0600))
		return -errno;
	fd = openat(cm->f->dirfd, name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		goto err_unlink;
	if (fchmod(fd, CM_FIFO_MODE & 07777) || fstat(fd, &st))
		goto err_close;
	c->ino = st.st_ino;
	return fd;

err_close:
	close(fd);
err_unlink:
	fd = -errno;
	unlinkat(cm->f->dirfd, name, 0);
	return fd;
}

int cm_chan_open(struct cm *cm)
{
	struct cm_chan *c;
	int fd;

	cm_chan_sweep(cm, SWEEP);
	c = cm_chan_new(cm);
	if (!c) {
		cm_chan_sweep(cm, CM_MAX_CHAN);
		c = cm_chan_new(cm);
		if (!c)
			return -ENOMEM;
	}
	c->pid = getpid();
	prctl(PR_GET_NAME, c->comm);
	/* before the FIFO exists: if this process dies, a sweep finds it */
	c->state = CM_CHAN_LIVE;
	fd = chan_make_fifo(cm, c);
	if (fd < 0)
		cm_chan_free(cm, c);
	return fd;
}

struct cm_chan *cm_chan_find(struct cm *cm, uint64_t ino, uint32_t hint)
{
	struct cm_chan *c = cm_chan_at(cm, hint);

	if (c && c->ino == ino && c->state == CM_CHAN_LIVE)
		return c;
	cm_for_each_chan(cm, c)
		if (c->ino == ino && c->state == CM_CHAN_LIVE)
			return c;
	return NULL;
}
