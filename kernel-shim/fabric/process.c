// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The processes of a fabric and their liveness.  struct urxe_process in
 * layout.h describes both mechanisms:
 *
 *	byte lock	an OFD lock on byte `number` of the file procs;
 *			reliable; a check costs system calls
 *			(process_is_dead)
 *	robust mutexes	held by a thread of the process; a check is two
 *			loads, and the death wakes a futex waiter; not always
 *			available (process_seems_alive, process_watch)
 *
 * Any thread may call these functions, without a lock.  The exceptions are
 * process_self_recall() and process_self_drop(): the provider calls
 * fabric_open() and fabric_close() under contexts_lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric.h"

#define PROCS "procs"

static struct flock process_byte(uint32_t number)
{
	return (struct flock){ .l_type = F_WRLCK,
			       .l_whence = SEEK_SET,
			       .l_start = number,
			       .l_len = 1 };
}

static int process_file_init(struct urxe_fabric *f, int fd)
{
	(void)f;
	(void)fd;
	return 0;
}

int process_file_make(struct urxe_fabric *f, uint64_t *ino)
{
	struct stat st;
	int ret;

	ret = fabric_make_file(f, PROCS, process_file_init);
	if (!ret && fstatat(f->dirfd, PROCS, &st, AT_SYMLINK_NOFOLLOW))
		ret = -errno;
	if (!ret)
		*ino = st.st_ino;
	return ret;
}

static bool process_file_is(const struct urxe_fabric *f, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == f->dev->procs_ino;
}

/*
 * Open procs, if it is the file that the segment names.  In another file, no
 * byte would be locked and all processes would count as dead.
 */
static int process_file_open(struct urxe_fabric *f)
{
	int fd;

	fd = openat(f->dirfd, PROCS, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fabric_fail(errno, "cannot open %s/" PROCS ": %s",
				   f->dir, strerror(errno));
	if (process_file_is(f, fd))
		return fd;
	close(fd);
	return fabric_fail(ESTALE, "%s/" PROCS " was replaced by another file",
			   f->dir);
}

bool process_is_dead(struct urxe_fabric *f, uint32_t id)
{
	uint32_t number = URXE_PROCESS_NUMBER(id);
	struct flock lk = process_byte(number);
	int fd = f->procs_fd, saved = errno;
	bool dead;

	if (load_acquire(&f->dev->process[number].uses) !=
	    URXE_PROCESS_USES(id))
		return true; /* the number was reused */
	if (!process_file_is(f, fd)) /* the program closed it */
		fd = process_file_open(f);
	dead = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &lk) && lk.l_type == F_UNLCK;
	if (fd >= 0 && fd != f->procs_fd)
		close(fd);
	errno = saved;
	return dead;
}

bool process_thread_is_stopped(const struct urxe_fabric *f, uint32_t id, uint32_t tid)
{
	const struct urxe_process *p =
		&f->dev->process[URXE_PROCESS_NUMBER(id)];
	const int pid = load_relaxed(&p->pid);
	char path[64], stat[128];
	const char *state;

	if (load_relaxed(&p->pidns) != fabric_pidns())
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid,
		 tid ? (int)tid : pid);
	file_read(AT_FDCWD, path, stat, sizeof(stat));
	state = strrchr(stat, ')'); /* the name may contain ')' */
	return state && state[1] == ' ' &&
	       (state[2] == 'T' || state[2] == 't');
}

bool process_has_pid(struct urxe_fabric *f, uint32_t id, int32_t pid,
		     uint64_t pidns)
{
	const struct urxe_process *p =
		&f->dev->process[URXE_PROCESS_NUMBER(id)];

	return id && load_acquire(&p->pid) == pid &&
	       load_acquire(&p->pidns) == pidns &&
	       (process_seems_alive(p, id) || !process_is_dead(f, id));
}

void process_set_netns(struct urxe_fabric *f, uint64_t netns)
{
	uint32_t id = process_id(f);

	if (id)
		store_relaxed(&f->dev->process[URXE_PROCESS_NUMBER(id)].netns,
			      netns);
}

bool process_in_netns(struct urxe_fabric *f, uint64_t netns)
{
	const struct urxe_process *p = f->dev->process;
	uint32_t i, uses;

	for (i = 0; i < URXE_MAX_PROCESS; i++) {
		uses = load_acquire(&p[i].uses);
		if (uses && load_relaxed(&p[i].netns) == netns &&
		    !process_is_dead(f, URXE_PROCESS(i, uses)))
			return true;
	}
	return false;
}

bool process_brief_is_dead(struct urxe_fabric *f, uint32_t brief)
{
	uint32_t number = URXE_PROCESS_NUMBER(brief), id;

	id = URXE_PROCESS(number, load_acquire(&f->dev->process[number].uses));
	return URXE_PROCESS_BRIEF(id) != brief || process_is_dead(f, id);
}

/* Lock a free process number with fd.  Returns the number, or -errno. */
static int process_lock_number(struct urxe_fabric *f, int fd)
{
	uint32_t i, number, next = load_relaxed(&f->dev->process_next);
	struct flock lk;

	for (i = 0; i < URXE_MAX_PROCESS; i++) {
		number = (next + i) % URXE_MAX_PROCESS;
		lk = process_byte(number);
		if (!fcntl(fd, F_OFD_SETLK, &lk)) {
			store_relaxed(&f->dev->process_next, number + 1);
			return (int)number;
		}
		if (errno != EAGAIN && errno != EACCES)
			return fabric_fail(errno,
					   "cannot lock %s/" PROCS ": %s",
					   f->dir, strerror(errno));
	}
	return fabric_fail(EAGAIN, "the fabric can have at most %d processes",
			   URXE_MAX_PROCESS);
}

/*
 * Make a new id for a number whose byte this process has locked, and fill in
 * its row.
 */
static uint32_t process_sign_in(struct urxe_fabric *f, uint32_t number)
{
	struct urxe_process *p = &f->dev->process[number];
	uint32_t uses;

	uses = (load_relaxed(&p->uses) + 1) % URXE_PROCESS_MAX_USES;
	if (!uses)
		uses = 1;
	/* before pid: a reader of the new PID sees that the old id is dead */
	store_relaxed(&p->uses, uses);
	store_release(&p->pid, getpid());
	store_release(&p->pidns, fabric_pidns());
	store_release(&p->netns, fabric_netns());
	file_read(AT_FDCWD, "/proc/self/comm", p->comm, sizeof(p->comm));
	p->comm[strcspn(p->comm, "\n")] = 0;
	return URXE_PROCESS(number, uses);
}

/*
 * Map the open file of the byte lock, so that the lock lasts as long as the
 * address space.  The memory is never accessed.  A forked child does not
 * inherit the mapping.
 */
static void *process_keep(int fd)
{
	void *life = mmap(NULL, URXE_PAGE, PROT_NONE, MAP_SHARED, fd, 0);

	if (life == MAP_FAILED)
		return NULL;
	if (madvise(life, URXE_PAGE, MADV_DONTFORK)) {
		munmap(life, URXE_PAGE);
		return NULL;
	}
	return life;
}

uint32_t process_id_take(struct urxe_fabric *f)
{
	struct process_self *self = f->self;
	int fd, number, saved = errno;
	uint32_t id = 0, none = 0;
	void *life;

	fd = process_file_open(f);
	if (fd < 0)
		goto out;
	life = process_keep(fd);
	if (!life) {
		fabric_fail(ENOMEM, "cannot map %s/" PROCS, f->dir);
		goto out_close;
	}
	number = process_lock_number(f, fd);
	if (number >= 0)
		id = process_sign_in(f, number);
	if (id && cas_acq_rel(&self->id, &none, id)) {
		self->lock = life;
		goto out_close;
	}
	munmap(life, URXE_PAGE);
	id = none; /* the id that another thread has taken, or 0 */
out_close:
	close(fd);
out:
	errno = saved;
	return id;
}

int process_self_make(struct urxe_fabric *f)
{
	void *page = mmap(NULL, URXE_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -ENOMEM;
	if (madvise(page, URXE_PAGE, MADV_WIPEONFORK)) {
		munmap(page, URXE_PAGE);
		return fabric_fail(errno, "madvise(MADV_WIPEONFORK): %s",
				   strerror(errno));
	}
	f->self = page;
	f->procs_fd = -1;
	return 0;
}

/*
 * List of process_self of closed fabrics whose robust mutexes are locked.
 * They must stay mapped, since they are in the robust list of the thread that
 * holds them.  If the process opens the same fabric again it continues with
 * the same id.  Only the provider calls process_publish_liveness(), so
 * elsewhere the list is empty.  The provider's contexts_lock protects it.  In a
 * forked child the page of each entry is zero, and so is its ino.
 */
static struct process_self *kept;

void process_self_drop(struct urxe_fabric *f)
{
	struct process_self *self = f->self;

	if (f->procs_fd >= 0 && process_file_is(f, f->procs_fd))
		close(f->procs_fd);
	f->procs_fd = -1;
	if (load_relaxed(&self->published_row)) {
		self->next = kept;
		kept = self;
		return;
	}
	if (self->lock)
		munmap(self->lock, URXE_PAGE);
	munmap(self, URXE_PAGE);
}

void process_self_recall(struct urxe_fabric *f)
{
	struct process_self **p, *self;

	for (p = &kept; (self = *p); p = &self->next) {
		if (self->ino != f->dev->procs_ino)
			continue;
		*p = self->next;
		process_self_drop(f);
		f->self = self;
		break;
	}
	f->procs_fd = process_file_open(f);
}

/*
 * Map this process's row.  The mapping is never unmapped, and a forked child
 * does not inherit it.
 */
static struct urxe_process *process_map_row(struct urxe_fabric *f, uint32_t id)
{
	const char *row = (char *)&f->dev->process[URXE_PROCESS_NUMBER(id)];
	const uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t at = row - (char *)f->dev, page = at / size * size;
	void *map;
	int fd;

	fd = openat(f->dirfd, "device", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)page);
	close(fd);
	if (map == MAP_FAILED)
		return NULL;
	if (madvise(map, size, MADV_DONTFORK)) {
		munmap(map, size);
		return NULL;
	}
	return (struct urxe_process *)(void *)((char *)map + (at - page));
}

/*
 * The robust list of the forking thread.  A forked child does not hold its
 * parent's robust mutexes and has not mapped them.  glibc empties the list in
 * the child.  musl does not, and would link the next mutex to unmapped
 * memory, so the list is emptied here.
 */
static struct robust_list_head *held;

static void process_before_fork(void)
{
	size_t len;

	if (syscall(SYS_get_robust_list, 0, &held, &len))
		held = NULL;
}

static void process_after_fork(void)
{
	if (held)
		held->list.next = &held->list;
}

__attribute__((constructor)) static void process_at_fork(void)
{
	pthread_atfork(process_before_fork, NULL, process_after_fork);
}

/*
 * True if the kernel walks this thread's robust list when the thread ends.
 * Under an emulator (qemu-user) there is no such system call, which glibc
 * does not check.  In a child that was made by the bare system call instead
 * of libc's fork(), the kernel does not know the list.  glibc's list then
 * still contains the parent's mutexes.
 */
static bool robust_mutexes_work(void)
{
	void *head = NULL;
	size_t len;

	if (syscall(SYS_get_robust_list, 0, &head, &len))
		return false;
#ifdef __GLIBC__
	return head;
#else
	return true; /* musl registers it when the first one is locked */
#endif
}

static uint32_t process_own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/*
 * Initialize a robust mutex with this futex word.  Other threads read the word
 * meanwhile, so all stores are atomic.
 */
static void process_init_mutex(pthread_mutex_t *m, uint32_t word)
{
	_Static_assert(sizeof(*m) % sizeof(uint32_t) == 0, "stored in words");
	_Atomic uint32_t *to = (_Atomic uint32_t *)(void *)m;
	uint32_t from[sizeof(*m) / sizeof(uint32_t)];
	pthread_mutexattr_t attr;
	pthread_mutex_t initial;
	size_t i;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&initial, &attr);
	pthread_mutexattr_destroy(&attr);
	store_relaxed(process_tid(&initial), word);
	memcpy(from, &initial, sizeof(from));
	for (i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		store_relaxed(&to[i], from[i]);
	pthread_mutex_destroy(&initial);
}

/*
 * No other thread locks m.  Race detectors derive an order of locks from
 * pthread_mutex_lock(), but the caller may hold any mutexes of the program.
 */
static void process_lock_mutex(pthread_mutex_t *m)
{
	if (pthread_mutex_trylock(m) == EOWNERDEAD)
		pthread_mutex_consistent(m);
}

/*
 * again: a thread of this process held the mutexes, and has ended.  Race
 * detectors know that a mutex is not locked any more from FUTEX_OWNER_DIED.
 */
static void process_lock_liveness(struct urxe_process *p, bool again)
{
	const uint32_t word = again ? FUTEX_OWNER_DIED : 0;

	process_init_mutex(&p->life, word);
	process_init_mutex(&p->exec, word);
	/* `uses` before the TIDs; see process_seems_alive() */
	atomic_thread_fence(memory_order_release);
	process_lock_mutex(&p->life);
	process_lock_mutex(&p->exec);
	/*
	 * change the TID in `exec` to that of the thread group leader; an
	 * addition preserves FUTEX_WAITERS
	 */
	fetch_add_relaxed(process_tid(&p->exec),
			  (uint32_t)getpid() - process_own_tid());
}

int process_publish_liveness(struct urxe_fabric *f)
{
	uint32_t id = process_id(f);
	struct process_self *self = f->self;
	struct urxe_process *row = load_acquire(&self->published_row);
	int saved = errno;
	bool again;

	if (!id)
		return -ENOMEM;
	if ((row && process_seems_alive(row, id)) ||
	    exchange_acquire(&self->publishing, true))
		return 0;
	if (!robust_mutexes_work()) /* others use process_is_dead() */
		goto out;
	row = load_relaxed(&self->published_row);
	again = row;
	if (!again) {
		self->ino = f->dev->procs_ino;
		row = process_map_row(f, id);
	}
	/* another thread may have done it since the first check */
	if (row && !process_seems_alive(row, id))
		process_lock_liveness(row, again);
	store_release(&self->published_row, row);
out:
	store_release(&self->publishing, false);
	errno = saved;
	return 0;
}

#define MARK_TRIES 8

/*
 * Set FUTEX_WAITERS in a mutex word and return the word and its value.
 * False: it has no TID, or changed MARK_TRIES times.  A word without a TID
 * must not be changed: the mutex is free, or the next owner of the row
 * initializes it.
 */
static bool process_mark(pthread_mutex_t *m, struct futex_word *w)
{
	_Atomic uint32_t *word = process_tid(m);
	uint32_t seen = load_acquire(word);
	int i;

	for (i = 0; i < MARK_TRIES && seen & FUTEX_TID_MASK; i++) {
		if (!(seen & FUTEX_WAITERS) &&
		    !cas_acq_rel(word, &seen, seen | FUTEX_WAITERS))
			continue;
		*w = (struct futex_word){ word, seen | FUTEX_WAITERS };
		return true;
	}
	return false;
}

bool process_watch(struct urxe_fabric *f, uint32_t id,
		   struct futex_word words[2])
{
	struct urxe_process *p = &f->dev->process[URXE_PROCESS_NUMBER(id)];

	return process_mark(&p->life, &words[0]) &&
	       process_mark(&p->exec, &words[1]) && process_seems_alive(p, id);
}

void process_wake_others(const struct futex_word *words, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (!(load_acquire(words[i].word) & FUTEX_TID_MASK))
			futex_wake(words[i].word, INT_MAX);
}
