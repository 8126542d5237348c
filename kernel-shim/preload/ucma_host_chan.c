// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The descriptors of the host's rdma_cm beside our channels, and the thread
 * that waits for their events.
 *
 * The thread waits for the end of a channel, too: beside each one there is
 * also a descriptor that can write into its FIFO, and that reports an error
 * when the last one that can read it is closed.
 *
 * The numbers of these descriptors are this process's, and its children's.
 * Programs close descriptors that they did not open, so before one is used it
 * must prove to be what it was.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "ucma_host.h"

#define DEVICE "/dev/infiniband/rdma_cm"
#define BUSY_NS 10000000 /* until a full queue is looked at again */

_Atomic int ucma_host_used;

/* Beside each channel of the tables; used under their lock. */
static struct beside {
	uint32_t gen; /* the channel's; 0: unused */
	int fd; /* of the host's device */
	int writer; /* of the channel's FIFO */
	uint64_t ino; /* of both */
} * beside; /* NULL: there never was one */
static uint32_t count;
static dev_t device;

static int epfd = -1;
static int32_t owner; /* the process whose thread waits on epfd */
static uint32_t threads; /* so many were started; the last one counts */

static bool is_device(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISCHR(st.st_mode) && st.st_rdev == device;
}

static bool is_fifo(const struct beside *b)
{
	struct stat st;

	return !fstat(b->writer, &st) && S_ISFIFO(st.st_mode) &&
	       st.st_ino == b->ino;
}

int host_fd(struct cm *cm, struct cm_chan *c)
{
	const struct beside *b = beside ? &beside[cm_chan_ref(cm, c) - 1] :
					  NULL;

	return b && b->gen && b->gen == c->gen && is_device(b->fd) ? b->fd : -1;
}

static struct beside *end(const struct cm *cm)
{
	const uint32_t high = cm->t->chan_high;

	return beside + (high < CM_MAX_CHAN ? high : CM_MAX_CHAN);
}

/* What epoll says of an event: the entry and its generation. */
static uint64_t tag(const struct beside *b)
{
	return (uint64_t)b->gen << 32 | (uint32_t)(b - beside);
}

static bool wait_for(const struct beside *b)
{
	struct epoll_event in = { .events = EPOLLIN, .data.u64 = tag(b) };
	struct epoll_event end = { .data.u64 = tag(b) };

	return !epoll_ctl(epfd, EPOLL_CTL_ADD, b->fd, &in) &&
	       !epoll_ctl(epfd, EPOLL_CTL_ADD, b->writer, &end);
}

static void forget(struct beside *b)
{
	if (is_device(b->fd)) {
		epoll_ctl(epfd, EPOLL_CTL_DEL, b->fd, NULL);
		close(b->fd);
	}
	if (is_fifo(b)) {
		epoll_ctl(epfd, EPOLL_CTL_DEL, b->writer, NULL);
		close(b->writer);
	}
	b->gen = 0;
	count--;
}

/* A new epfd for what is left: after fork, or when one was closed. */
static void wait_anew(struct cm *cm)
{
	struct beside *b;

	epfd = epoll_create1(EPOLL_CLOEXEC);
	count = 0;
	for (b = beside; b < end(cm); b++) {
		if (!b->gen)
			continue;
		count++;
		if (!is_device(b->fd) || !is_fifo(b) || !wait_for(b))
			forget(b);
	}
}

/* ---------------------------------------------------------------- thread */

static void nap(void)
{
	const struct timespec ts = { .tv_nsec = BUSY_NS };

	nanosleep(&ts, NULL);
}

/* Events of this channel; false: they must wait, its queue is full. */
static bool fetch(struct cm *cm, struct beside *b, struct cm_chan *c)
{
	int n, ret = 1;

	for (n = 0; ret > 0 && n < HOST_EVENTS_MAX; n++) {
		if (c->events >= HOST_EVENTS_MAX)
			return false;
		ret = host_fetch_one(cm, b->fd);
	}
	if (ret < 0)
		forget(b);
	return true;
}

/* One report of epoll's; false: there is more to do, but not now. */
static bool look_at(struct cm *cm, const struct epoll_event *ev)
{
	struct beside *b = &beside[(uint32_t)ev->data.u64 % CM_MAX_CHAN];
	struct cm_chan *c;

	if (!b->gen || tag(b) != ev->data.u64 || !is_device(b->fd) ||
	    !is_fifo(b)) {
		/* what was closed cannot be taken out of epoll any more */
		close(epfd);
		wait_anew(cm);
		return true;
	}
	c = cm_chan_at(cm, (uint32_t)(b - beside) + 1);
	if (c && c->gen == b->gen && ev->events == EPOLLIN)
		return fetch(cm, b, c);
	forget(b);
	if (c)
		cm_chan_alive(cm, c); /* to tell its peers at once */
	return true;
}

/* What epoll said: n reports, or an error.  The thread ends if false. */
static bool go_on(const struct epoll_event *ev, int n, uint32_t *self,
		  bool *full)
{
	struct cm cm;
	bool more;
	int i;

	*full = false;
	if (ucma_begin(&cm))
		return false;
	cm_lock(&cm);
	if (!*self)
		*self = threads;
	if (*self != threads) {
		cm_unlock(&cm);
		return false;
	}
	if (n < 0 || epfd < 0)
		wait_anew(&cm);
	for (i = 0; i < n; i++)
		*full |= !look_at(&cm, &ev[i]);
	more = count && epfd >= 0;
	if (!more) {
		close(epfd);
		epfd = -1;
		owner = 0;
	}
	cm_unlock(&cm);
	return more;
}

static void *wait_main(void *arg)
{
	struct epoll_event ev[16];
	uint32_t self = 0;
	bool full;
	int n = 0;

	shim_inside++;
	while (go_on(ev, n, &self, &full)) {
		if (full)
			nap();
		do
			n = epoll_wait(epfd, ev, 16, -1);
		while (n < 0 && errno == EINTR);
	}
	return arg;
}

/* The child goes on with what its parent opened, and epfd is the parent's. */
static void after_fork(void)
{
	int saved = shim_enter();

	if (owner) {
		close(epfd);
		epfd = -1;
		threads++;
		owner = thread_start(NULL, wait_main, NULL) ? getpid() : 0;
	}
	shim_leave(saved);
}

static bool ensure_thread(struct cm *cm)
{
	static bool registered;

	if (owner == getpid())
		return true;
	if (!registered && pthread_atfork(NULL, NULL, after_fork))
		return false;
	registered = true;
	threads++;
	wait_anew(cm);
	if (epfd < 0 || !thread_start(NULL, wait_main, NULL)) {
		close(epfd);
		epfd = -1;
		return false;
	}
	owner = getpid();
	return true;
}

/* ---------------------------------------------------------------- open */

/* What a number that comes again stood for has been closed. */
static void forget_number(struct cm *cm, int fd)
{
	struct beside *b;

	for (b = beside; b < end(cm); b++) {
		if (!b->gen || (b->fd != fd && b->writer != fd))
			continue;
		if (b->fd == fd)
			b->fd = -1;
		else
			b->writer = -1;
		forget(b);
	}
}

/* Not in every process: they may lock what memory they have. */
static bool have_table(void)
{
	void *p;

	if (beside)
		return true;
	p = mmap(NULL, CM_MAX_CHAN * sizeof(*beside), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED)
		beside = p;
	return beside;
}

static bool add(struct cm *cm, struct cm_chan *c, int fd)
{
	struct beside *b;
	int writer;

	if (!have_table())
		return false;
	b = &beside[cm_chan_ref(cm, c) - 1];
	writer = cm_chan_writer(cm, c);
	if (writer < 0)
		return false;
	forget_number(cm, fd);
	forget_number(cm, writer);
	if (b->gen)
		forget(b);
	if (!ensure_thread(cm))
		goto err_close;
	b->fd = fd;
	b->writer = writer;
	b->ino = c->ino;
	b->gen = c->gen;
	if (!wait_for(b)) {
		/* epfd was closed: its thread will not hear of another one */
		b->gen = 0;
		owner = 0;
		if (!ensure_thread(cm))
			goto err_close;
		b->gen = c->gen;
		if (!wait_for(b))
			goto err_unset;
	}
	count++;
	return true;

err_unset:
	b->gen = 0;
err_close:
	close(writer);
	return false;
}

void ucma_host_open(int fd)
{
	struct ucma u = { .fd = fd };
	struct stat st;
	bool ok = false;
	int host;

	host = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (host < 0)
		return;
	if (fstat(host, &st) || !S_ISCHR(st.st_mode) || ucma_begin(&u.cm))
		goto out_close;
	cm_lock(&u.cm);
	u.c = ucma_chan(&u, fd);
	device = st.st_rdev;
	ok = u.c && add(&u.cm, u.c, host);
	cm_unlock(&u.cm);
out_close:
	if (ok)
		atomic_store_explicit(&ucma_host_used, 1, memory_order_relaxed);
	else
		close(host);
}
