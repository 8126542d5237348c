// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "trace.h"

/*
 * The trace file.  No descriptor is kept open, because some programs close
 * descriptors that they did not open.  The file is opened again to make a
 * ring or to grow one, and compared with dev and ino.
 */
static struct {
	struct trace_file *head; /* mapped; NULL: not open */
	char *path; /* absolute */
	dev_t dev;
	ino_t ino;
	uint32_t slots; /* maximum of a ring */
	_Atomic uint64_t fabric;
} file;

enum recorder_state {
	RECORDER_NEW, /* has no ring yet */
	RECORDER_READY,
	/* recording; what a signal handler records now is lost */
	RECORDER_BUSY,
	RECORDER_NOBODY, /* will never have a ring (again) */
};

/*
 * A recorder is the writer of one ring.  Each thread has two: one for the
 * creation of objects and ibv_modify_qp (recorder_of()), the other for all
 * other events.  The events of WRs thus do not overwrite those of objects.
 *
 * The positions are kept here as well: the ring's copies are in a file that
 * other processes can write to, and are not read back.
 */
enum recorder_of { RECORDER_OF_ALL, RECORDER_OF_OBJECTS, RECORDERS };

static thread_own struct recorder {
	enum recorder_state state;
	unsigned int ends; /* number of calls of recorder_end() */
	struct trace_ring *ring;
	uint64_t at; /* file offset of the ring */
	uint64_t written, oldest; /* as in the ring */
	uint32_t slots; /* current number, as in the ring */
	uint32_t most; /* limit to which slots may grow */
} self[RECORDERS];

/* Keys whose destructor, recorder_end(), unmaps the ring. */
static pthread_key_t self_key[RECORDERS];

/* ------------------------------------------------------- the file */

/* Read the start of a text file of /proc; "" if it cannot be read. */
static void proc_read(const char *path, char *text, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, len - 1);

	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

/* Return the inode of a namespace, or 0. */
static uint64_t own_namespace(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

/*
 * Return the start time of this process in clock ticks, or 0.  The fields are
 * counted from the last ')', because the process name may contain any
 * character.
 */
static uint64_t own_begin(void)
{
	unsigned long long began;
	char text[512], *name_end;

	proc_read("/proc/self/stat", text, sizeof(text));
	name_end = strrchr(text, ')');
	/* starttime is field 22 of proc_pid_stat(5), the name field 2 */
	if (!name_end || sscanf(name_end + 1,
				" %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
				" %*s %*s %*s %*s %*s %*s %*s %*s %llu",
				&began) != 1)
		return 0;
	return began;
}

/*
 * Return the offset in ns of CLOCK_MONOTONIC in this process's time namespace
 * (time_namespaces(7)), or 0.  timens_offsets describes the namespace of
 * future children, so it is used only if that is the process's own.
 */
static int64_t clock_ahead(void)
{
	uint64_t ns = own_namespace("/proc/self/ns/time");
	long long s = 0, more = 0;
	char text[128];

	if (!ns || ns != own_namespace("/proc/self/ns/time_for_children"))
		return 0;
	proc_read("/proc/self/timens_offsets", text, sizeof(text));
	if (sscanf(text, "monotonic %lld %lld", &s, &more) != 2)
		return 0;
	return s * 1000000000 + more;
}

/* Return CLOCK_REALTIME at the time when the host's CLOCK_MONOTONIC was 0. */
static uint64_t wall_clock(void)
{
	struct timespec ts;
	uint64_t now = clock_now() - (uint64_t)clock_ahead();

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec - now;
}

/*
 * Allocate `bytes` bytes of the file at offset `at`.  Return 0 or a positive
 * errno.  RLIMIT_FSIZE is checked first: exceeding it raises SIGXFSZ, which
 * ends the program.
 */
static int file_grow(int fd, uint64_t at, uint64_t bytes)
{
	struct rlimit r;
	int err;

	if (!getrlimit(RLIMIT_FSIZE, &r) && r.rlim_cur != RLIM_INFINITY &&
	    r.rlim_cur < at + bytes)
		return EFBIG;
	do
		err = posix_fallocate(fd, (off_t)at, (off_t)bytes);
	while (err == EINTR);
	return err;
}

static int trace_write_head(int fd, uint32_t slots)
{
	struct trace_file head = {
		.magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.slots = slots,
		.wall = wall_clock(),
		.end = TRACE_PAGE,
	};
	int err = file_grow(fd, 0, TRACE_PAGE);

	if (err)
		return -err;
	proc_read("/proc/sys/kernel/random/boot_id", head.boot, TRACE_BOOT);
	if (pwrite(fd, &head, sizeof(head), 0) != sizeof(head))
		return -EIO;
	return 0;
}

/*
 * Create a trace under a temporary name and give it its name when it is
 * complete.  anew: replace an existing file; otherwise keep it.
 */
static int trace_put(const char *path, uint32_t slots, bool anew)
{
	char *unnamed;
	int fd, err;

	if (asprintf(&unnamed, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(unnamed, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		free(unnamed);
		return err;
	}
	err = trace_write_head(fd, slots);
	close(fd);
	if (!err && anew && rename(unnamed, path))
		err = -errno;
	if (!err && !anew && link(unnamed, path) && errno != EEXIST)
		err = -errno;
	if (err || !anew)
		unlink(unnamed);
	free(unnamed);
	return err;
}

int trace_make(const char *path, uint32_t slots)
{
	/* replace the target of a symbolic link, not the link: /dev/stdout */
	char *real = realpath(path, NULL);
	struct stat st;
	int err;

	/* do not replace a device, for example /dev/null */
	if (real && !stat(real, &st) && !S_ISREG(st.st_mode))
		err = -EINVAL;
	else
		err = trace_put(real ? real : path, slots, true);
	free(real);
	return err;
}

static bool head_is_valid(const struct trace_file *f)
{
	return f->magic == TRACE_MAGIC && f->version == TRACE_VERSION &&
	       f->slots >= TRACE_MIN_SLOTS && f->slots <= TRACE_MAX_SLOTS &&
	       !(f->slots & (f->slots - 1));
}

static int trace_map(int fd)
{
	struct trace_file *f;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < TRACE_PAGE)
		return -EINVAL;
	f = mmap(NULL, TRACE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (f == MAP_FAILED)
		return -errno;
	if (!head_is_valid(f)) {
		munmap(f, TRACE_PAGE);
		return -EINVAL;
	}
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	file.slots = f->slots;
	file.head = f;
	return 0;
}

/* ------------------------------------------------------- a thread's ring */

/* Open the trace again.  Return -1 also if path is another file by now. */
static int file_open(void)
{
	int fd = open(file.path, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && st.st_dev == file.dev && st.st_ino == file.ino)
		return fd;
	close(fd);
	return -1;
}

static void ring_identify(struct trace_ring *r, uint32_t slots)
{
	r->pid = (int32_t)getpid();
	r->tid = (int32_t)syscall(SYS_gettid);
	r->pidns = own_namespace("/proc/self/ns/pid");
	r->began = own_begin();
	r->ahead = clock_ahead();
	snprintf(r->program, sizeof(r->program), "%s",
		 program_invocation_short_name);
	pthread_getname_np(pthread_self(), r->thread, sizeof(r->thread));
	store_relaxed(&r->fabric, load_relaxed(&file.fabric));
	store_relaxed(&r->slots, slots);
	store_release(&r->magic, TRACE_RING_MAGIC);
}

/*
 * Return the bytes between the page boundary and the ring, for large pages.
 */
static uint64_t ring_before(uint64_t at)
{
	return at % (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * Map the maximum size of a ring.  Pages beyond the allocated part of the
 * file are not accessed.
 */
static struct trace_ring *ring_map(int fd, uint64_t at)
{
	uint64_t before = ring_before(at);
	char *map = mmap(NULL, before + TRACE_RING_BYTES(file.slots),
			 PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 (off_t)(at - before));

	return map == MAP_FAILED ? NULL : (void *)(map + before);
}

static void ring_unmap(struct trace_ring *ring, uint64_t at)
{
	uint64_t before = ring_before(at);

	munmap((char *)ring - before, before + TRACE_RING_BYTES(file.slots));
}

/* Make a ring at the end of the file.  Return NULL if there is no space. */
static struct trace_ring *ring_make(uint64_t *at)
{
	struct trace_ring *ring = NULL;
	int fd = file_open();

	if (fd < 0)
		return NULL;
	*at = fetch_add_relaxed(&file.head->end, TRACE_RING_BYTES(file.slots));
	if (*at && !(*at % TRACE_PAGE) && *at < TRACE_MAX_BYTES &&
	    !file_grow(fd, *at, TRACE_RING_BYTES(TRACE_MIN_SLOTS)))
		ring = ring_map(fd, *at);
	close(fd);
	if (ring)
		ring_identify(ring, TRACE_MIN_SLOTS);
	return ring;
}

/* ------------------------------------------------------- a thread */

static void recorder_begin(struct recorder *r)
{
	r->ring = ring_make(&r->at);
	if (r->ring && pthread_setspecific(self_key[r - self], r)) {
		ring_unmap(r->ring, r->at);
		r->ring = NULL;
	}
	if (!r->ring) {
		fetch_add_relaxed(&file.head->lost, 1);
		return;
	}
	r->slots = TRACE_MIN_SLOTS;
	r->most = file.slots;
}

/*
 * Double the ring.  If there is no space, never try again: the ring keeps its
 * size and overwrites its oldest records.
 */
static void recorder_grow(struct recorder *r)
{
	uint64_t end = r->at + TRACE_RING_BYTES(r->slots);
	int fd = file_open();

	if (fd >= 0 && !file_grow(fd, end, TRACE_BYTES(r->slots))) {
		r->slots *= 2;
		store_relaxed(&r->ring->slots, r->slots);
	} else {
		r->most = r->slots;
	}
	if (fd >= 0)
		close(fd);
}

/*
 * Call work with cancellation disabled, because the thread may hold the lock
 * of a QP.  Keep errno.
 */
static void recorder_do(struct recorder *r, void (*work)(struct recorder *))
{
	int saved = errno, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	work(r);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

/* Destructor of self_key: unmap the ring of a thread that exits. */
static void recorder_end(void *arg)
{
	struct recorder *r = arg;

	/* stay until the last iteration: other destructors may call verbs */
	if (++r->ends < PTHREAD_DESTRUCTOR_ITERATIONS &&
	    !pthread_setspecific(self_key[r - self], r))
		return;
	r->state = RECORDER_NOBODY;
	ring_unmap(r->ring, r->at);
}

/*
 * In the child of a fork: unmap the rings, which are those of the parent's
 * thread.  The child makes its own when it records.
 */
static void after_fork_child(void)
{
	int saved = errno, i;

	for (i = 0; i < RECORDERS; i++) {
		if (self[i].state == RECORDER_READY)
			ring_unmap(self[i].ring, self[i].at);
		pthread_setspecific(self_key[i], NULL);
	}
	memset(self, 0, sizeof(self));
	errno = saved;
}

/* ------------------------------------------------------- opening */

static int file_open_or_make(void)
{
	int err, fd = open(file.path, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT) {
		err = trace_put(file.path, TRACE_DEFAULT_SLOTS, false);
		if (err)
			return err;
		fd = open(file.path, O_RDWR | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

static int trace_open_path(void)
{
	int fd = file_open_or_make(), err = 0, keys = 0;

	if (fd < 0)
		return fd;
	for (; !err && keys < RECORDERS; keys++)
		err = -pthread_key_create(&self_key[keys], recorder_end);
	if (err)
		keys--; /* the last one was not created */
	else
		err = trace_map(fd);
	while (err && keys)
		pthread_key_delete(self_key[--keys]);
	close(fd);
	return err;
}

int trace_open(const char *path)
{
	int saved = errno, err = 0;

	/* an absolute path, because the program may call chdir(2) */
	file.path = *path == '/' ? strdup(path) : NULL;
	if (*path != '/') {
		char *here = getcwd(NULL, 0);

		if (!here || asprintf(&file.path, "%s/%s", here, path) < 0)
			file.path = NULL;
		free(here);
	}
	if (!file.path)
		return -ENOMEM;
	err = trace_open_path();
	if (!err)
		err = -pthread_atfork(NULL, NULL, after_fork_child);
	errno = saved;
	return err;
}

bool trace_is_open(void)
{
	return file.head;
}

void trace_fabric(uint64_t fabric)
{
	int i;

	store_relaxed(&file.fabric, fabric);
	for (i = 0; i < RECORDERS; i++)
		if (self[i].state == RECORDER_READY)
			store_relaxed(&self[i].ring->fabric, fabric);
}

/* ------------------------------------------------------- recording */

/* Return the slot at position nth. */
static struct trace_slot *slot(const struct recorder *r, uint64_t nth)
{
	struct trace_slot *first = (void *)((char *)r->ring + TRACE_PAGE);

	return &first[nth & (r->slots - 1)];
}

/* Grow the ring or drop its oldest records, to write up to position until. */
static void recorder_make_room(struct recorder *r, uint64_t until)
{
	uint8_t slots;

	/* a position keeps its slot only before the first overwrite */
	if (unlikely(until > r->slots) && r->slots < r->most)
		recorder_do(r, recorder_grow);
	if (likely(until - r->oldest <= r->slots))
		return;
	do {
		slots = slot(r, r->oldest)->slots;
		/* 0: another process has overwritten the ring */
		r->oldest += slots ? slots : 1;
	} while (until - r->oldest > r->slots && r->oldest < until);
	store_relaxed(&r->ring->oldest, r->oldest);
	/* pairs with the reader's acquire fence before it loads oldest */
	atomic_thread_fence(memory_order_release);
}

/* Copy a few words, relaxed.  For so few a call of memcpy() is slower. */
static inline void words_copy(uint64_t *to, const uint64_t *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		store_relaxed((_Atomic uint64_t *)&to[i], from[i]);
}

static void values_write(const struct recorder *r, uint64_t nth,
			 const uint64_t *values, size_t n)
{
	size_t i, part = n < TRACE_FIRST ? n : TRACE_FIRST;

	words_copy(slot(r, nth)->value, values, part);
	for (i = part; i < n; i += part) {
		part = n - i < TRACE_MORE ? n - i : TRACE_MORE;
		words_copy(slot(r, ++nth)->more, values + i, part);
	}
}

static void recorder_write(struct recorder *r, uint64_t time,
			   enum trace_event what, uint32_t qpn,
			   const uint64_t *values, size_t n)
{
	uint8_t slots = (uint8_t)TRACE_SLOTS_OF(n);
	struct trace_slot *s;

	recorder_make_room(r, r->written + slots);
	s = slot(r, r->written);
	s->time = time;
	s->what = (uint16_t)what;
	s->slots = slots;
	s->values = (uint8_t)n;
	s->qpn = qpn;
	values_write(r, r->written, values, n);
	r->written += slots;
	store_release(&r->ring->written, r->written);
}

static enum recorder_of recorder_of(enum trace_event what)
{
	const uint32_t objects = 1u << TRACE_QP_MADE | 1u << TRACE_QP_MODIFIED |
				 1u << TRACE_MR_MADE | 1u << TRACE_CQ_MADE;

	static_assert(TRACE_EVENTS <= 32, "one bit for each event");
	return objects >> what & 1 ? RECORDER_OF_OBJECTS : RECORDER_OF_ALL;
}

void trace_at(uint64_t time, enum trace_event what, uint32_t qpn,
	      const uint64_t *values, size_t n)
{
	struct recorder *r = &self[recorder_of(what)];
	bool is_new = r->state == RECORDER_NEW;

	if (unlikely(r->state != RECORDER_READY) && (!is_new || !file.head))
		return;
	r->state = RECORDER_BUSY;
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(is_new))
		recorder_do(r, recorder_begin);
	if (likely(r->ring != NULL))
		recorder_write(r, time, what, qpn, values,
			       n < TRACE_VALUES ? n : TRACE_VALUES);
	atomic_signal_fence(memory_order_seq_cst);
	r->state = r->ring ? RECORDER_READY : RECORDER_NOBODY;
}

void trace_text(enum trace_event what, uint32_t qpn, const char *text)
{
	uint64_t value[TRACE_VALUES] = { 0 };
	size_t n = strnlen(text, sizeof(value) - 1);

	memcpy(value, text, n);
	trace_at(clock_now(), what, qpn, value, n / sizeof(*value) + 1);
}
