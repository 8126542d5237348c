// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Event channels: their birth, and the death that somebody notices. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cm.h"

#define SWEEP 16 /* channels to look after when one is opened */

static void fifo_name(struct cm *cm, const struct cm_chan *c, char buf[40])
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
	fifo_name(cm, c, name);
	fd = openat(cm->f->dirfd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && (errno == ENXIO || errno == ENOENT))
		cm_chan_set_dying(cm, c);
	return fd;
}

bool cm_chan_alive(struct cm *cm, struct cm_chan *c)
{
	int fd = cm_chan_writer(cm, c);

	if (fd >= 0)
		close(fd);
	/* out of descriptors: cannot tell */
	return c->state == CM_CHAN_LIVE;
}

static void free_slot(struct cm *cm, struct cm_chan *c)
{
	const uint32_t index = cm_chan_ref(cm, c) - 1;

	c->state = CM_CHAN_FREE;
	if (index < cm->t->chan_low)
		cm->t->chan_low = index;
}

static void reap(struct cm *cm, struct cm_chan *c)
{
	const uint32_t ref = cm_chan_ref(cm, c);
	struct cm_id *id;
	char name[40];
	uint32_t i;

	for (i = 1; i <= cm_ids(cm); i++) {
		id = cm_id_at(cm, i);
		if (id && id->chan == ref)
			cm_id_destroy(cm, id, -1);
	}
	cm_event_free_all(cm, c);
	fifo_name(cm, c, name);
	unlinkat(cm->f->dirfd, name, 0);
	free_slot(cm, c);
}

void cm_chan_reap(struct cm *cm)
{
	struct cm_chan *c;
	uint32_t i;

	/* telling the peers may find more of them dead */
	while (cm->t->dying) {
		cm->t->dying = 0;
		for (i = 1; i <= cm_chans(cm); i++) {
			c = cm_chan_at(cm, i);
			if (c && c->state == CM_CHAN_DYING)
				reap(cm, c);
		}
	}
}

void cm_chan_sweep(struct cm *cm, unsigned int n)
{
	struct cm_table *t = cm->t;
	struct cm_chan *c;

	if (n > cm_chans(cm))
		n = cm_chans(cm);
	for (; n; n--) {
		if (t->sweep_next >= cm_chans(cm))
			t->sweep_next = 0;
		c = cm_chan_at(cm, ++t->sweep_next);
		if (c)
			cm_chan_alive(cm, c);
	}
	cm_chan_reap(cm);
}

static int make_fifo(struct cm *cm, struct cm_chan *c)
{
	struct stat st;
	char name[40];
	int fd;

	fifo_name(cm, c, name);
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

static struct cm_chan *find_free(struct cm *cm)
{
	struct cm_table *t = cm->t;
	const off_t start = offsetof(struct cm_table, chan);
	const uint32_t per_page = URXE_PAGE / sizeof(struct cm_chan);
	uint32_t i;
	int fd, ret;

	for (i = t->chan_low; i < cm_chans(cm); i++) {
		if (t->chan[i].state == CM_CHAN_FREE) {
			t->chan_low = i + 1;
			return &t->chan[i];
		}
	}
	if (i >= CM_MAX_CHAN)
		return NULL;
	fd = openat(cm->f->dirfd, "cm", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	ret = posix_fallocate(fd, start + (off_t)(i * sizeof(struct cm_chan)),
			      URXE_PAGE);
	close(fd);
	if (ret)
		return NULL;
	t->chan_high = i + per_page;
	t->chan_low = i + 1;
	return &t->chan[i];
}

int cm_chan_open(struct cm *cm)
{
	struct cm_chan *c;
	uint32_t gen;
	int fd;

	cm_chan_sweep(cm, SWEEP);
	c = find_free(cm);
	if (!c) {
		cm_chan_sweep(cm, CM_MAX_CHAN);
		c = find_free(cm);
		if (!c)
			return -ENOMEM;
	}
	gen = c->gen + 1;
	memset(c, 0, sizeof(*c));
	c->gen = gen;
	c->pid = getpid();
	prctl(PR_GET_NAME, c->comm);
	fd = make_fifo(cm, c);
	if (fd >= 0)
		c->state = CM_CHAN_LIVE;
	else
		free_slot(cm, c);
	return fd;
}

struct cm_chan *cm_chan_find(struct cm *cm, uint64_t ino, uint32_t hint)
{
	struct cm_chan *c = cm_chan_at(cm, hint);
	uint32_t i;

	if (c && c->ino == ino && c->state == CM_CHAN_LIVE)
		return c;
	for (i = 1; i <= cm_chans(cm); i++) {
		c = cm_chan_at(cm, i);
		if (c && c->ino == ino && c->state == CM_CHAN_LIVE)
			return c;
	}
	return NULL;
}
