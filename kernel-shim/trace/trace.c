// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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

/* No descriptor is kept: programs close those that they do not know. */
static struct {
	struct trace_file *head; /* NULL: this process is not traced */
	char *path; /* absolute */
	dev_t dev;
	ino_t ino;
	uint32_t slots;
} file;

/* Who records.  How far he is he knows himself: others can write to the file.
 */
struct recorder {
	struct trace_ring *ring;
	uint64_t written, oldest; /* as in the ring */
};

/* This thread's; "nobody" if there is no room for a ring. */
static thread_own struct recorder *self;
static struct recorder nobody;
static pthread_key_t self_key; /* its destructor ends one */

/* ------------------------------------------------------- the file */

static uint64_t wall_clock(void)
{
	struct timespec ts;
	uint64_t now = clock_now();

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec - now;
}

/* Not by SIGXFSZ, which ends a program that has "ulimit -f". */
static int file_grow(int fd, uint64_t at, uint64_t bytes)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_FSIZE, &r) && r.rlim_cur != RLIM_INFINITY &&
	    r.rlim_cur < at + bytes)
		return EFBIG;
	return posix_fallocate(fd, (off_t)at, (off_t)bytes);
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
	if (pwrite(fd, &head, sizeof(head), 0) != sizeof(head))
		return -EIO;
	return 0;
}

/* A whole file gets the name: others never see one that is being made. */
static int trace_put(const char *path, uint32_t slots, bool anew)
{
	char *unnamed;
	int fd, err;

	if (asprintf(&unnamed, "%s.%d", path, (int)getpid()) < 0)
		return -ENOMEM;
	fd = open(unnamed, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
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
	return trace_put(path, slots, true);
}

static bool head_is_sound(const struct trace_file *f)
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
	if (!head_is_sound(f)) {
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

static void ring_identify(struct trace_ring *r)
{
	r->pid = (int32_t)getpid();
	r->tid = (int32_t)syscall(SYS_gettid);
	snprintf(r->program, sizeof(r->program), "%s",
		 program_invocation_short_name);
	pthread_getname_np(pthread_self(), r->thread, sizeof(r->thread));
	store_release(&r->magic, TRACE_RING_MAGIC);
}

static struct trace_ring *ring_make(void)
{
	uint64_t bytes = TRACE_RING_BYTES(file.slots), at;
	void *map = MAP_FAILED;
	int fd = file_open();

	if (fd < 0)
		return NULL;
	at = fetch_add_relaxed(&file.head->end, bytes);
	if (at && !(at % TRACE_PAGE) && at < TRACE_MAX_BYTES &&
	    !file_grow(fd, at, bytes))
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   (off_t)at);
	close(fd);
	if (map == MAP_FAILED)
		return NULL;
	ring_identify(map);
	return map;
}

/* ------------------------------------------------------- a thread */

static void recorder_free(struct recorder *r)
{
	munmap(r->ring, TRACE_RING_BYTES(file.slots));
	free(r);
}

static void recorder_end(void *r)
{
	self = &nobody; /* what comes now is of other destructors */
	recorder_free(r);
}

static struct recorder *recorder_new(void)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ring = ring_make();
	if (r->ring && !pthread_setspecific(self_key, r))
		return r;
	if (r->ring)
		munmap(r->ring, TRACE_RING_BYTES(file.slots));
	free(r);
	return NULL;
}

static struct recorder *recorder_begin(void)
{
	int saved = errno;

	self = &nobody;
	if (file.head) {
		self = recorder_new();
		if (!self) {
			fetch_add_relaxed(&file.head->lost, 1);
			self = &nobody;
		}
	}
	errno = saved;
	return self;
}

/* The child's threads are others, the first one, too. */
static void after_fork_child(void)
{
	int saved = errno;

	if (self && self != &nobody)
		recorder_free(self);
	pthread_setspecific(self_key, NULL);
	self = NULL;
	errno = saved;
}

/* ------------------------------------------------------- opening */

static int trace_open_path(void)
{
	int fd, err;

	err = trace_put(file.path, TRACE_DEFAULT_SLOTS, false);
	if (err && err != -EACCES && err != -EROFS)
		return err;
	fd = open(file.path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = -pthread_key_create(&self_key, recorder_end);
	if (!err) {
		err = trace_map(fd);
		if (err)
			pthread_key_delete(self_key);
	}
	close(fd);
	return err;
}

int trace_open(const char *path)
{
	int saved = errno, err = 0;

	/* who changes his directory is traced all the same */
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

/* ------------------------------------------------------- recording */

static struct trace_slot *slot(const struct recorder *r, uint64_t nth)
{
	struct trace_slot *first = (void *)((char *)r->ring + TRACE_PAGE);

	return &first[nth & (file.slots - 1)];
}

static void recorder_make_room(struct recorder *r, uint64_t until)
{
	uint8_t slots;

	if (likely(until - r->oldest <= file.slots))
		return;
	do {
		slots = slot(r, r->oldest)->slots;
		r->oldest += slots ? slots : 1; /* 0: not by us */
	} while (until - r->oldest > file.slots && r->oldest < until);
	store_relaxed(&r->ring->oldest, r->oldest);
	/* who sees what is written now sees that */
	atomic_thread_fence(memory_order_release);
}

static void values_write(const struct recorder *r, uint64_t nth,
			 const uint64_t *values, size_t n)
{
	size_t i, part = n < TRACE_FIRST ? n : TRACE_FIRST;

	memcpy(slot(r, nth)->value, values, part * sizeof(*values));
	for (i = part; i < n; i += part) {
		part = n - i < TRACE_MORE ? n - i : TRACE_MORE;
		memcpy(slot(r, ++nth)->more, values + i,
		       part * sizeof(*values));
	}
}

void trace_at(uint64_t time, enum trace_event what, uint32_t qpn,
	      const uint64_t *values, size_t n)
{
	struct recorder *r = likely(self) ? self : recorder_begin();
	struct trace_slot *s;
	uint8_t slots;

	if (unlikely(r == &nobody))
		return;
	if (n > TRACE_VALUES)
		n = TRACE_VALUES;
	slots = (uint8_t)TRACE_SLOTS_OF(n);
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

void trace_text(enum trace_event what, uint32_t qpn, const char *text)
{
	uint64_t value[TRACE_VALUES] = { 0 };
	size_t n = strnlen(text, sizeof(value) - 1);

	memcpy(value, text, n);
	trace_at(clock_now(), what, qpn, value, n / sizeof(*value) + 1);
}
