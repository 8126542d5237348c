// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reading of trace files, with pread(2) rather than mmap(2): if a file is
 * truncated meanwhile, a read is short and there is no SIGBUS.
 *
 * Lockless reader of a ring (format.h). It loads `written`, then copies the
 * slots before it, then loads `oldest` and drops copied slots before that
 * position. The acquire fences between these steps pair with the release
 * fence and release store of the recording thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/commands.h"
#include "trace_file.h"

static bool read_at(const struct trace_input *in, void *buf, size_t n,
		    uint64_t at)
{
	return pread(in->fd, buf, n, (off_t)at) == (ssize_t)n;
}

int trace_input_open(struct trace_input *in, const char *path)
{
	struct trace_file head;

	memset(in, 0, sizeof(*in));
	in->path = path;
	in->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0)
		return fail_file(1, "", path, errno,
				 "; urxe run --trace FILE records one");
	if (!read_at(in, &head, sizeof(head), 0) || head.magic != TRACE_MAGIC)
		return fail(1, "%s is not a urxe trace", path);
	if (head.version != TRACE_VERSION)
		return fail(
			1,
			"%s has trace format version %u; this urxe reads version %u",
			path, head.version, TRACE_VERSION);
	if (head.slots < TRACE_MIN_SLOTS || head.slots > TRACE_MAX_SLOTS ||
	    head.slots & (head.slots - 1))
		return fail(1, "%s: the header is damaged", path);
	in->slots = head.slots;
	in->wall = head.wall;
	memcpy(in->boot, head.boot, TRACE_BOOT - 1);
	return 0;
}

bool trace_exists(const char *path)
{
	struct trace_input in = { .fd = -1 };
	uint64_t magic;
	struct stat st;
	bool is;

	/* open() of a FIFO would block until it has a writer */
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	in.fd = open(path, O_RDONLY | O_CLOEXEC);
	is = in.fd >= 0 && read_at(&in, &magic, sizeof(magic), 0) &&
	     magic == TRACE_MAGIC;
	if (in.fd >= 0)
		close(in.fd);
	return is;
}

/* CLOCK_MONOTONIC starts at 0 with each boot. */
int trace_input_fits(const struct trace_input *in,
		     const struct trace_input *first)
{
	if (!*in->boot || !*first->boot || !strcmp(in->boot, first->boot))
		return 0;
	return fail(
		1,
		"%s and %s are of two machines or two boots: their clocks cannot be compared",
		first->path, in->path);
}

void trace_input_close(struct trace_input *in)
{
	unsigned int i;

	for (i = 0; i < in->threads; i++)
		free(in->thread[i]);
	free(in->thread);
	close(in->fd);
}

uint64_t trace_input_lost(const struct trace_input *in)
{
	struct trace_file head;

	return read_at(in, &head, sizeof(head), 0) ? load_relaxed(&head.lost) :
						     0;
}

/* ------------------------------------------------------- threads */

static bool thread_is_known(const struct trace_input *in, uint64_t at)
{
	unsigned int i;

	for (i = 0; i < in->threads; i++)
		if (in->thread[i]->at == at)
			return true;
	return false;
}

/*
 * Copy a name from the file. Control characters become '?': they could be
 * escape sequences for the terminal.
 */
static void name_copy(char to[TRACE_NAME], const char from[TRACE_NAME])
{
	unsigned int i;

	for (i = 0; i < TRACE_NAME - 1 && from[i]; i++)
		to[i] = (unsigned char)from[i] < ' ' ? '?' : from[i];
	to[i] = 0;
}

/*
 * Processes that recorded, of all inputs. A PID alone is ambiguous: it can be
 * reused, or used in another PID namespace.
 */
static struct process {
	int32_t pid;
	uint64_t pidns, began;
} * processes;
static unsigned int processes_n;

/*
 * Number of other processes with the PID of r's process that were found
 * before. Return -1 if there is no memory.
 */
static int process_nth(const struct trace_ring *r)
{
	struct process *more, *p;
	unsigned int i;
	int nth = 0;

	for (i = 0; i < processes_n; i++) {
		p = &processes[i];
		if (p->pid != r->pid)
			continue;
		if (p->pidns == r->pidns && p->began == r->began)
			return nth;
		nth++;
	}
	more = realloc(processes, (processes_n + 1) * sizeof(*more));
	if (!more)
		return -1;
	processes = more;
	processes[processes_n++] =
		(struct process){ r->pid, r->pidns, r->began };
	return nth;
}

#define PID_LIMIT (1 << 22) /* PID_MAX_LIMIT of the kernel */
#define SAME_PID_MAX (INT32_MAX / PID_LIMIT)

static int thread_add(struct trace_input *in, const struct trace_ring *r,
		      uint64_t at)
{
	struct trace_thread **more, *t = calloc(1, sizeof(*t));
	int nth = process_nth(r);

	more = realloc(in->thread, (in->threads + 1) * sizeof(*more));
	if (more)
		in->thread = more;
	if (!t || !more || nth < 0) {
		free(t);
		return fail(1, "no memory");
	}
	in->thread[in->threads++] = t;
	t->input = in;
	t->at = at;
	t->fabric = load_relaxed(&r->fabric);
	t->pid = r->pid;
	t->tid = r->tid;
	t->nth = nth < SAME_PID_MAX ? nth : SAME_PID_MAX;
	t->process = t->nth * PID_LIMIT + r->pid % PID_LIMIT;
	t->ahead = r->ahead;
	name_copy(t->program, r->program);
	name_copy(t->thread, r->thread);
	return 0;
}

/* Add the rings that are new. A ring whose magic is not set is not ready. */
static int threads_find(struct trace_input *in)
{
	uint64_t bytes = TRACE_RING_BYTES(in->slots), at, end;
	struct trace_file head;
	struct trace_ring r;
	int ret;

	if (!read_at(in, &head, sizeof(head), 0))
		return 0;
	end = load_relaxed(&head.end);
	for (at = TRACE_PAGE; at < end; at += bytes) {
		if (!read_at(in, &r, sizeof(r), at))
			break;
		if (load_relaxed(&r.magic) != TRACE_RING_MAGIC ||
		    thread_is_known(in, at))
			continue;
		ret = thread_add(in, &r, at);
		if (ret)
			return ret;
	}
	return 0;
}

void trace_who(const struct trace_thread *t, char who[TRACE_WHO])
{
	int n = snprintf(who, TRACE_WHO, "%s[%d", t->program, t->pid);

	if (t->nth)
		n += sprintf(who + n, "#%d", t->nth + 1);
	if (t->tid != t->pid)
		n += sprintf(who + n, "/%d", t->tid);
	strcpy(who + n, "]");
}

/* ------------------------------------------------------- records */

/* Copy the slots from position @from to @to, which may wrap around. */
static bool slots_read(const struct trace_thread *t, uint32_t slots,
		       struct trace_slot *out, uint64_t from, uint64_t to)
{
	uint64_t mask = slots - 1, n;

	for (; from != to; from += n, out += n) {
		n = mask + 1 - (from & mask);
		if (n > to - from)
			n = to - from;
		if (!read_at(t->input, out, n * sizeof(*out),
			     t->at + TRACE_PAGE + (from & mask) * sizeof(*out)))
			return false;
	}
	return true;
}

static bool slot_is_valid(const struct trace_slot *s, uint64_t left)
{
	return s->slots && s->slots <= left &&
	       s->slots == TRACE_SLOTS_OF(s->values);
}

static int batch_add(struct trace_batch *b, const struct trace_thread *t,
		     const struct trace_slot *s, uint64_t n)
{
	struct trace_record *more;
	uint64_t i;

	more = realloc(b->record, (b->records + n) * sizeof(*more));
	if (!more)
		return fail(1, "no memory");
	b->record = more;
	for (i = 0; i < n && slot_is_valid(&s[i], n - i); i += s[i].slots)
		b->record[b->records++] = (struct trace_record){
			.thread = t,
			.time = s[i].time - (uint64_t)t->ahead,
			.what = s[i].what,
			.qpn = s[i].qpn,
			.n = s[i].values,
			.value = s[i].value,
		};
	return i == n ? 0 :
			fail(1, "%s: a record of %s[%d] is damaged",
			     t->input->path, t->program, t->tid);
}

static int batch_keep(struct trace_batch *b, void *copy)
{
	void **more = realloc(b->copy, (b->copies + 1) * sizeof(*more));

	if (!more)
		return fail(1, "no memory");
	b->copy = more;
	b->copy[b->copies++] = copy;
	return 0;
}

/*
 * Read the header of the ring. The fence makes later reads of the file at
 * least as new as this header.
 */
static bool ring_read_header(struct trace_thread *t, struct trace_ring *r)
{
	if (!read_at(t->input, r, sizeof(*r), t->at))
		return false;
	t->fabric = load_relaxed(&r->fabric);
	atomic_thread_fence(memory_order_acquire);
	return true;
}

static int ring_fail(const struct trace_thread *t, const char *what)
{
	char who[TRACE_WHO];

	trace_who(t, who);
	return fail(1, "%s: the ring buffer of %s %s", t->input->path, who,
		    what);
}

/*
 * Position of the first record up to @to that was not read before and is not
 * overwritten.
 */
static uint64_t ring_begin(const struct trace_thread *t,
			   const struct trace_ring *r, uint64_t to)
{
	uint64_t oldest = load_relaxed(&r->oldest);

	if (oldest < t->seen)
		return t->seen;
	return oldest < to ? oldest : to;
}

static bool ring_is_valid(const struct trace_thread *t,
			  const struct trace_ring *r, uint64_t to)
{
	uint32_t slots = load_relaxed(&r->slots);

	return slots >= TRACE_MIN_SLOTS && slots <= t->input->slots &&
	       !(slots & (slots - 1)) && to >= t->seen &&
	       to - ring_begin(t, r, to) <= slots;
}

static int records_read(struct trace_thread *t, struct trace_batch *b,
			struct trace_ring *r, uint64_t to)
{
	uint64_t from = ring_begin(t, r, to), begin;
	struct trace_slot *copy = malloc((to - from + 1) * sizeof(*copy));

	if (!copy || batch_keep(b, copy)) {
		free(copy);
		return fail(1, "no memory");
	}
	if (!slots_read(t, load_relaxed(&r->slots), copy, from, to))
		return ring_fail(t, "is truncated");
	atomic_thread_fence(memory_order_acquire);
	if (!ring_read_header(t, r))
		return ring_fail(t, "is truncated");
	begin = ring_begin(t, r, to);
	if (begin < from) /* `oldest` went backwards: the file is damaged */
		begin = from;
	t->lost += begin - t->seen;
	t->seen = to;
	return batch_add(b, t, copy + (begin - from), to - begin);
}

static int thread_read(struct trace_thread *t, struct trace_batch *b)
{
	struct trace_ring r;
	uint64_t to;

	if (!ring_read_header(t, &r))
		return ring_fail(t, "is truncated");
	to = load_relaxed(&r.written);
	if (!ring_read_header(t, &r))
		return ring_fail(t, "is truncated");
	if (!ring_is_valid(t, &r, to))
		return ring_fail(t, "is damaged");
	return to == t->seen ? 0 : records_read(t, b, &r, to);
}

/*
 * Compare records by time. Records of one thread are in the order of their
 * copies, which is the order in which they were recorded.
 */
static int by_time(const void *a, const void *b)
{
	const struct trace_record *x = a, *y = b;
	const struct trace_thread *t = x->thread, *u = y->thread;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (t == u)
		return x->value < y->value ? -1 : x->value > y->value;
	if (t->tid != u->tid)
		return t->tid < u->tid ? -1 : 1;
	/* two files, or two copies of the library in one thread */
	return t < u ? -1 : 1;
}

int trace_read(struct trace_input *in, unsigned int n, struct trace_batch *b)
{
	unsigned int i, j;
	int ret = 0;

	memset(b, 0, sizeof(*b));
	for (i = 0; i < n; i++) {
		ret |= threads_find(&in[i]);
		for (j = 0; j < in[i].threads; j++)
			ret |= thread_read(in[i].thread[j], b);
	}
	if (b->records)
		qsort(b->record, b->records, sizeof(*b->record), by_time);
	return ret;
}

void trace_batch_free(struct trace_batch *b)
{
	size_t i;

	for (i = 0; i < b->copies; i++)
		free(b->copy[i]);
	free(b->copy);
	free(b->record);
}
