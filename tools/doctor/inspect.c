// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe doctor --fabric NAME: check the consistency of a fabric's shared
 * state (inspect.h).  First the resources of dead processes are reaped and
 * each lock is taken once, to find locks that are stuck.  The checks follow.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/plural.h"
#include "cm/cm.h"
#include "common/commands.h"
#include "doctor.h"
#include "inspect.h"

#define PASSES 8 /* passes; a transient state does not persist over all */
#define PAUSE_NS 50000000

/* The remedies: for a lock, for the state of a context, for other state. */
static const char mend_lock[] =
	"continue the process that holds the lock, or end it";
static const char mend_context[] =
	"end the process of this context (urxe info lists it): the state of the context is then removed";
static const char mend_fabric[] =
	"end the processes of this fabric (urxe info lists them), then remove it with urxe rm";

void found(struct findings *out, const char *fmt, ...)
{
	struct finding *more = realloc(out->line, (out->n + 1) * sizeof(*more));
	va_list ap;

	if (!more)
		return;
	out->line = more;
	va_start(ap, fmt);
	more[out->n].mend = out->mend;
	if (vasprintf(&more[out->n].text, fmt, ap) >= 0)
		out->n++;
	va_end(ap);
}

static bool findings_have(const struct findings *in, const char *line)
{
	unsigned int i;

	for (i = 0; i < in->n; i++)
		if (!strcmp(in->line[i].text, line))
			return true;
	return false;
}

/* Remove from out the findings that `in` does not have. */
static void findings_keep(struct findings *out, const struct findings *in)
{
	unsigned int i, kept = 0;

	for (i = 0; i < out->n; i++) {
		if (findings_have(in, out->line[i].text))
			out->line[kept++] = out->line[i];
		else
			free(out->line[i].text);
	}
	out->n = kept;
}

static void findings_print(const struct findings *in)
{
	unsigned int i;

	for (i = 0; i < in->n; i++)
		report(FAIL, NULL, in->line[i].mend, "%s", in->line[i].text);
}

static void findings_free(struct findings *out)
{
	while (out->n)
		free(out->line[--out->n].text);
	free(out->line);
	out->line = NULL;
}

void *copy_space(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

void copy_space_free(void *at, size_t size)
{
	if (at)
		munmap(at, size);
}

/* Clear private memory.  Its whole pages are dropped, which takes no time. */
static void clear(char *buf, size_t len)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t at = (uintptr_t)buf;
	const size_t head = (page - at % page) % page;
	const size_t tail = (at + len) % page;

	if (len < head + tail + page ||
	    madvise(buf + head, len - head - tail, MADV_DONTNEED)) {
		memset(buf, 0, len);
		return;
	}
	memset(buf, 0, head);
	memset(buf + len - tail, 0, tail);
}

static bool copy_data(int fd, uint64_t offset, char *buf, size_t len)
{
	size_t done;
	ssize_t n;

	for (done = 0; done < len; done += (size_t)n) {
		n = pread(fd, buf + done, len - done, (off_t)(offset + done));
		if (n <= 0)
			return false;
	}
	return true;
}

/*
 * Most of an arena and of the device is holes.  To copy them as data would
 * take a gigabyte of memory for a few contexts.
 */
bool copy_out(int fd, uint64_t offset, void *buf, size_t len)
{
	const uint64_t end = offset + len;
	char *const to = buf;
	uint64_t at, data, hole;
	struct stat st;

	if (fstat(fd, &st) || end < offset || (uint64_t)st.st_size < end)
		return false;
	for (at = offset; at < end; at = hole) {
		data = (uint64_t)lseek(fd, (off_t)at, SEEK_DATA);
		if ((off_t)data < 0) /* ENXIO: a hole up to the end */
			data = errno == ENXIO ? end : at;
		if (data > end)
			data = end;
		clear(to + (at - offset), data - at);
		hole = (uint64_t)lseek(fd, (off_t)data, SEEK_HOLE);
		if ((off_t)hole < 0 || hole > end)
			hole = end;
		if (!copy_data(fd, data, to + (data - offset), hole - data))
			return false;
	}
	return true;
}

bool inspection_has_context(const struct inspection *l, uint32_t slot,
			    uint32_t gen)
{
	return slot < URXE_MAX_CTX &&
	       load_relaxed(&l->dev->ctx[slot].state) != URXE_CTX_FREE &&
	       load_relaxed(&l->dev->ctx[slot].gen) == gen;
}

uint32_t bits_count(const uint64_t *map, uint32_t bits)
{
	uint32_t i, n = 0;

	for (i = 0; i < bits / 64; i++)
		n += (uint32_t)__builtin_popcountll(map[i]);
	return n;
}

/* --------------------------------------------------------------- locks */

/* Take the lock of the connection manager and reap dead event channels. */
static void reap_channels(struct urxe_fabric *f, struct findings *out)
{
	struct cm cm = { .f = f };

	if (cm_map_existing(f, &cm.t))
		return; /* never used, or inspect_cm() reports the error */
	if (cm_lock(&cm)) {
		found(out, "%s", fabric_why());
	} else {
		cm_chan_sweep(&cm, CM_MAX_CHAN);
		cm_settle(&cm);
		cm_unlock(&cm);
	}
	munmap(cm.t, sizeof(*cm.t));
}

/*
 * Reap the resources of dead processes, as each open of the device does.
 * Locks that cannot be taken are findings.
 */
static void clear_up(struct urxe_fabric *f, struct findings *out)
{
	if (fabric_lock(f)) {
		found(out, "%s", fabric_why());
	} else {
		fabric_unlock(f);
		fabric_reap(f);
	}
	reap_channels(f, out);
}

/* Take the arena lock of a context once. */
static void try_arena_lock(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
			   struct findings *out)
{
	struct urxe_arena *a;
	int fd;

	if (arena_map_peer(f, slot, gen, &a, &fd))
		return; /* inspect_arena() reports it */
	if (arena_lock(f, a))
		found(out, "context %u.%u: %s", slot, gen, fabric_why());
	else
		arena_unlock(f, a);
	arena_unmap(a);
	close(fd);
}

static void try_arena_locks(struct urxe_fabric *f, struct findings *out)
{
	const struct urxe_ctx_slot *c;
	uint32_t i, gen;

	for (i = 0; i < URXE_MAX_CTX; i++) {
		c = &f->dev->ctx[i];
		gen = load_relaxed(&c->gen);
		if (load_relaxed(&c->state) == URXE_CTX_LIVE &&
		    fabric_context_alive(f, i, gen))
			try_arena_lock(f, i, gen, out);
	}
}

/* -------------------------------------------------------------- passes */

static void inspect_arenas(struct inspection *l)
{
	const struct urxe_ctx_slot *c;
	uint32_t i, gen;

	for (i = 0; i < URXE_MAX_CTX; i++) {
		c = &l->dev->ctx[i];
		gen = load_relaxed(&c->gen);
		if (load_relaxed(&c->state) != URXE_CTX_LIVE ||
		    !fabric_context_alive(l->f, i, gen))
			continue;
		l->live++;
		inspect_arena(l, i);
	}
}

/* Make one pass over the fabric.  Add its findings to out. */
static void inspect_once(struct inspection *l, struct findings *out)
{
	int fd;

	l->out = out;
	l->out->mend = mend_fabric;
	l->live = 0;
	memset(l->dm_mrs, 0, sizeof(l->dm_mrs));
	fd = openat(l->f->dirfd, "device", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !copy_out(fd, 0, l->dev, sizeof(*l->dev))) {
		found(out, "the file \"device\" is missing or truncated");
	} else {
		inspect_device(l);
		l->out->mend = mend_context;
		inspect_arenas(l);
		l->out->mend = mend_fabric;
		inspect_device_memory(l);
		inspect_files(l);
	}
	if (fd >= 0)
		close(fd);
	inspect_cm(l);
}

/*
 * Repeat the pass, and keep the findings that all passes have.  This excludes
 * transient states of operations in progress.
 */
static void inspect_repeatedly(struct inspection *l, struct findings *out)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct findings more = { 0 };
	int i;

	inspect_once(l, out);
	for (i = 1; i < PASSES && out->n; i++) {
		nanosleep(&pause, NULL);
		fabric_reap(l->f); /* processes that died meanwhile */
		inspect_once(l, &more);
		findings_keep(out, &more);
		findings_free(&more);
	}
}

static int inspection_alloc(struct inspection *l)
{
	/*
	 * the heap and bounce rings are not copied: their pages stay unused
	 */
	l->arena = copy_space(sizeof(*l->arena));
	l->dev = copy_space(sizeof(*l->dev));
	return l->arena && l->dev ? 0 : -1;
}

void inspect_fabric(const char *dir)
{
	struct findings locks = { .mend = mend_lock }, out = { 0 };
	struct inspection *l = calloc(1, sizeof(*l));
	char text[FABRICS_TEXT];
	int ret;

	if (!l || inspection_alloc(l)) {
		report(FAIL, NULL, "end other programs",
		       "no memory for the check");
		return;
	}
	ret = fabric_open(dir, false, &l->f);
	if (ret) {
		if (ret == -ENOENT)
			report(FAIL, "no device in this fabric",
			       "name a fabric that urxe info lists", "%s",
			       no_fabric_text(dir, text));
		else
			report_closed_fabric(dir, ret);
		goto out_free;
	}
	clear_up(l->f, &locks);
	try_arena_locks(l->f, &locks);
	inspect_repeatedly(l, &out);
	findings_print(&locks);
	findings_print(&out);
	if (!locks.n && !out.n)
		ok("fabric %s: shared state is consistent; %u context%s open%s",
		   dir, l->live, plural_is(l->live),
		   l->live ? "; transient states were ignored" : "");
	fabric_close(l->f);
	findings_free(&locks);
	findings_free(&out);
out_free:
	copy_space_free(l->arena, sizeof(*l->arena));
	copy_space_free(l->dev, sizeof(*l->dev));
	free(l);
}
