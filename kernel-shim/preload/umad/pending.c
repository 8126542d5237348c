// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests that this process has sent and that have no answer yet.  A thread,
 * started with the first one, sends those again whose timeout has passed, and
 * returns a request to its sender after its last timeout (IB 13.4.6.3; as the
 * kernel, with status ETIMEDOUT).  It exits when there are none.
 *
 * `lock` protects the list.  It is not held while a MAD is sent.  Whether a
 * request has an answer is in shared memory (struct urxe_umad.pending), since
 * a response comes from another process.  A child of fork() begins with an
 * empty list: the requests belong to the parent, whose thread continues.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "internal.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define ENTRIES_MAX 65536
#define MAD_HEADER_BYTES 24 /* what a timeout returns of a request */

struct pending {
	struct pending *next;
	struct umad_send send; /* send.mad is in `mad`, if it is longer */
	uint64_t tid, deadline;
	uint32_t retries;
	uint8_t mad[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct pending *first;
static uint32_t entries;
static bool runs; /* the thread */
static pthread_once_t begun = PTHREAD_ONCE_INIT;

static void pending_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void pending_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* In the child, the requests and the thread are those of the parent. */
static void pending_in_child(void)
{
	struct pending *p;

	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	while ((p = first)) {
		first = p->next;
		free(p);
	}
	entries = 0;
	runs = false;
}

static void pending_begin(void)
{
	pthread_atfork(pending_before_fork, pending_after_fork,
		       pending_in_child);
}

/* With the lock held: remove and return a request whose time has passed. */
static struct pending *take_expired(uint64_t now, uint64_t *next)
{
	struct pending **at, *p;

	*next = UINT64_MAX;
	for (at = &first; (p = *at); at = &p->next) {
		if (p->deadline <= now) {
			*at = p->next;
			entries--;
			return p;
		}
		if (p->deadline < *next)
			*next = p->deadline;
	}
	return NULL;
}

/* With the lock held. */
static void put(struct pending *p)
{
	p->next = first;
	first = p;
	entries++;
}

/*
 * With the lock held: forget requests with that TID that have an answer.  A
 * program may use the TID again, and the new request has a timeout of its own.
 */
static void forget_ended(const struct umad *u, uint64_t tid)
{
	struct pending **at = &first, *p;

	if (umad_pending_has(u->f->dev, u->index, tid))
		return;
	while ((p = *at)) {
		if (p->tid != tid || p->send.umad.index != u->index) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		entries--;
		free(p);
	}
}

/*
 * With the lock held: report the timeout of a request to its sender, unless a
 * response has ended it.  If there is no room, later.
 */
static void give_back(struct pending *p, uint64_t now)
{
	struct urxe_dev *dev = p->send.umad.f->dev;
	struct umad_record rec = p->send.rec;
	const uint32_t index = p->send.umad.index;

	if (!umad_pending_end(dev, index, p->tid)) {
		free(p);
		return;
	}
	rec.hdr.status = ETIMEDOUT;
	if (umad_device_put(p->send.umad.f, index, &rec, p->send.mad,
			    MAD_HEADER_BYTES) == -EAGAIN &&
	    umad_pending_add(dev, index, p->tid)) {
		p->deadline = now + 10 * MS;
		put(p);
		return;
	}
	free(p);
}

/*
 * With the lock held, which is released meanwhile: handle a request whose time
 * has passed.  It is in the list while it is sent: the answer may come at once.
 */
static void expire(struct pending *p, uint64_t now)
{
	struct umad_send send;
	uint8_t *copy;

	if (!p->retries || !umad_pending_has(p->send.umad.f->dev,
					     p->send.umad.index, p->tid)) {
		give_back(p, now);
		return;
	}
	p->retries--;
	p->deadline = now + p->send.rec.hdr.timeout_ms * MS;
	send = p->send;
	copy = malloc(send.len);
	if (copy)
		memcpy(copy, p->send.mad, send.len);
	put(p);
	if (!copy)
		return;
	send.mad = copy;
	pthread_mutex_unlock(&lock);
	umad_transmit(&send);
	free(copy);
	pthread_mutex_lock(&lock);
}

/* With the lock held, which is released meanwhile. */
static void sleep_for(uint64_t ns)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	ns += (uint64_t)at.tv_nsec;
	at.tv_sec += (time_t)(ns / SECOND);
	at.tv_nsec = (long)(ns % SECOND);
	pthread_cond_timedwait(&changed, &lock, &at);
}

static void *pending_main(void *arg)
{
	uint64_t now, next;
	struct pending *p;

	shim_inside++;
	pthread_mutex_lock(&lock);
	while (first) {
		now = clock_now();
		p = take_expired(now, &next);
		if (p)
			expire(p, now);
		else
			sleep_for(next - now);
	}
	runs = false;
	pthread_mutex_unlock(&lock);
	return arg;
}

int pending_add(const struct umad_send *s)
{
	struct pending *p = malloc(sizeof(*p) + s->len);
	int ret = 0;

	if (!p)
		return -ENOMEM;
	*p = (struct pending){ .send = *s, .retries = s->rec.hdr.retries };
	memcpy(p->mad, s->mad, s->len);
	p->send.mad = p->mad;
	p->tid = attr_get(s->rec.mad, ATTR_MAD_tid);
	p->deadline = clock_now() + s->rec.hdr.timeout_ms * MS;
	pthread_once(&begun, pending_begin);
	pthread_mutex_lock(&lock);
	forget_ended(&s->umad, p->tid);
	if (entries >= ENTRIES_MAX ||
	    !umad_pending_add(s->umad.f->dev, s->umad.index, p->tid))
		ret = -ENOMEM;
	else if (!runs && !thread_start(NULL, pending_main, NULL))
		ret = -ENOMEM;
	if (ret) {
		umad_pending_end(s->umad.f->dev, s->umad.index, p->tid);
		free(p);
	} else {
		runs = true;
		put(p);
		pthread_cond_signal(&changed);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}
