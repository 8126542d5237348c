// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fuzz [-lvk] [-s SEED] [-n ROUNDS] [-t SECONDS] [-r REGION] URXE TRAFFIC
 *
 * Run two processes with traffic (traffic.c) and meanwhile damage the shared
 * files of their fabric: random words, flipped bits, forged events, truncated
 * and removed files.
 *
 * A round fails if a process crashes, a verb hangs, or a sanitizer reports an
 * error.  Only a truncated file may kill its users, by SIGBUS.  After files
 * were truncated or removed, the next program must get a working fabric.
 *
 * Each round has its own seed and fabric.  A failure is reported with the
 * seed and the region, and ends the program.
 *
 *	-s SEED		seed of the first round; each next round adds 1
 *	-n ROUNDS	end after that many rounds
 *	-t SECONDS	end after that time; default $URXE_FUZZ_SECONDS or 10
 *	-r REGION	damage this region only
 *	-l		list the regions
 *	-v		log the changes
 *	-k		continue after a failed round
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"
#include "shared/layout.h"

#define TRAFFIC_MS 150
#define HANG_MS 60000 /* only a hang takes longer */

static const char *urxe, *traffic, *only;
static char dir[300]; /* directory of the fabric */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ------------------------------------------------------------ targets */

/*
 * Files of the fabric of a round: the device file and two arenas.  They are
 * accessed by pread(2) and pwrite(2), since a mapping could raise SIGBUS.
 */
struct target {
	struct dice dice;
	int dir, device, arena[2];
};

static bool verbose;

static uint32_t old_word(int fd, uint64_t at)
{
	uint32_t w = 0;

	if (pread(fd, &w, sizeof(w), (off_t)at) != sizeof(w))
		return 0;
	return w;
}

/*
 * Return the new value of a damaged word: random, a flipped bit, a small
 * difference, or a boundary value.
 */
static uint32_t new_word(struct dice *d, uint32_t old)
{
	static const uint32_t edges[] = { 0, 1, 2, 63, 64, 512, 4096,
					  0x7fffffff, 0x80000000, 0xffffffff };

	switch (roll(d, 6)) {
	case 0:
		return (uint32_t)roll64(d);
	case 1:
	case 2:
		return old ^ 1u << roll(d, 32);
	case 3:
		return old + roll(d, 9) - 4;
	default:
		return edges[roll(d, sizeof(edges) / sizeof(*edges))];
	}
}

/* Damage one word in the len bytes from `from` on. */
static void damage(struct target *t, int fd, uint64_t from, uint64_t len)
{
	uint64_t at = (from + roll(&t->dice, (uint32_t)(len / 4)) * 4ull);
	uint32_t old = old_word(fd, at), new = new_word(&t->dice, old);

	if (pwrite(fd, &new, sizeof(new), (off_t)at) != sizeof(new))
		return;
	if (verbose)
		fprintf(stderr, "%s +0x%llx: 0x%x -> 0x%x\n",
			fd == t->device ? "device" : "arena",
			(unsigned long long)at, old, new);
}

#define DEV(field) offsetof(struct urxe_dev, field)
#define ARENA(field) offsetof(struct urxe_arena, field)
#define SIZE_OF(type, field) sizeof(((struct type *)0)->field)

static int any_arena(struct target *t)
{
	return t->arena[roll(&t->dice, 2)];
}

/* Offset of a random one of the first n entries of an array. */
#define ONE(t, type, field, n)                         \
	(offsetof(struct type, field) +                \
	 roll(&(t)->dice, n) * SIZE_OF(type, field[0]))

static void damage_cqs(struct target *t)
{
	damage(t, any_arena(t), ONE(t, urxe_arena, cq, 6),
	       sizeof(struct urxe_cq_sh));
}

static void damage_qps(struct target *t)
{
	damage(t, any_arena(t), ONE(t, urxe_arena, qp, 14),
	       sizeof(struct urxe_qp_sh));
}

static void damage_srqs(struct target *t)
{
	damage(t, any_arena(t), ONE(t, urxe_arena, srq, 4),
	       sizeof(struct urxe_srq_sh));
}

/*
 * Key table entries, except `iova`, `length`, `va` and the process id.  A
 * wrong address cannot be distinguished from a right one, so a peer would then
 * write to arbitrary memory of the program.
 */
static void damage_keys(struct target *t)
{
	uint64_t key = ONE(t, urxe_arena, key, 8);

	damage(t, any_arena(t), key, 8);
	damage(t, any_arena(t), key + offsetof(struct urxe_key, pd), 8);
	damage(t, any_arena(t), key + offsetof(struct urxe_key, windows), 8);
	damage(t, any_arena(t), ARENA(key_high), 12);
	damage(t, any_arena(t), ONE(t, urxe_arena, file, 4),
	       sizeof(struct urxe_file));
}

/* Rings of CQs and receive queues: pages of the heap that are in use. */
static void damage_rings(struct target *t)
{
	uint64_t page, word = 0;
	int tries, fd = any_arena(t);

	for (tries = 0; tries < 64; tries++) {
		page = roll(&t->dice, 256);
		if (pread(fd, &word, 8,
			  (off_t)(ARENA(heap_map) + page / 64 * 8)) == 8 &&
		    word >> (page % 64) & 1)
			break;
	}
	damage(t, fd, URXE_HEAP_OFFSET + page * URXE_PAGE,
	       roll(&t->dice, 2) ? 512 : URXE_PAGE);
}

static void damage_maps(struct target *t)
{
	damage(t, any_arena(t), ARENA(key_tag), 32);
	damage(t, any_arena(t), ARENA(key_map), 8);
	damage(t, any_arena(t), ARENA(cq_map), 8);
	damage(t, any_arena(t), ARENA(srq_map), 8);
	damage(t, any_arena(t), ARENA(comp_cntr_map), 8);
	damage(t, any_arena(t), ARENA(heap_map), 64);
	damage(t, any_arena(t), ARENA(heap_next), 4);
	damage(t, any_arena(t), ARENA(small_map), 64);
	damage(t, any_arena(t), ONE(t, urxe_arena, pd, 4),
	       sizeof(struct urxe_pd_sh));
}

static void damage_head(struct target *t)
{
	damage(t, any_arena(t), 0, ARENA(wake));
	damage(t, t->device, 0, DEV(dm_path));
}

static void damage_device(struct target *t)
{
	damage(t, t->device, DEV(used), DEV(hca) - DEV(used));
	damage(t, t->device, ONE(t, urxe_dev, ctx, 4),
	       sizeof(struct urxe_ctx_slot));
	damage(t, t->device, ONE(t, urxe_dev, dm, 4),
	       sizeof(struct urxe_dm_slot));
	damage(t, t->device, ONE(t, urxe_dev, qp, 14), 8);
	damage(t, t->device, DEV(qp_gen), 32);
	damage(t, t->device, DEV(qp_high), 4);
	damage(t, t->device, DEV(qp_low), 4);
	damage(t, t->device, DEV(dm_map), 64);
	damage(t, t->device, ONE(t, urxe_dev, mcast, 2),
	       sizeof(struct urxe_mcast_grp));
	damage(t, t->device, DEV(hca), offsetof(struct urxe_hca, gid));
	damage(t, t->device, DEV(hca) + ONE(t, urxe_hca, gid, 4),
	       sizeof(struct urxe_gid));
}

static void damage_bouncers(struct target *t)
{
	uint64_t b = ONE(t, urxe_arena, bouncer, 2);

	damage(t, any_arena(t), b + offsetof(struct urxe_bouncer, pid),
	       sizeof(struct urxe_bouncer) -
		       offsetof(struct urxe_bouncer, pid));
	damage(t, any_arena(t), ARENA(ring), sizeof(struct urxe_bounce_slot));
	damage(t, any_arena(t), ARENA(wake), sizeof(struct event_count));
}

static void damage_guards(struct target *t)
{
	damage(t, t->device, ONE(t, urxe_dev, guard, 14),
	       sizeof(struct urxe_guard));
	damage(t, t->device, DEV(guard_group), 16);
}

static void damage_atomics(struct target *t)
{
	int i;

	for (i = 0; i < 64; i++)
		damage(t, t->device, DEV(atomic_lock),
		       SIZE_OF(urxe_dev, atomic_lock));
}

static void damage_locks(struct target *t)
{
	damage(t, t->device, DEV(lock), SIZE_OF(urxe_dev, lock));
	damage(t, any_arena(t), ARENA(lock), SIZE_OF(urxe_arena, lock));
}

static void damage_processes(struct target *t)
{
	damage(t, t->device, ONE(t, urxe_dev, process, 8),
	       sizeof(struct urxe_process));
	damage(t, t->device, DEV(process_next), 4);
}

/* Queued async events (kept_event.h). */
static void damage_kept(struct target *t)
{
	damage(t, any_arena(t), ONE(t, urxe_arena, kept, 4),
	       sizeof(struct urxe_kept_event));
	damage(t, any_arena(t), ARENA(kept_events), 4);
	damage(t, any_arena(t), ARENA(async_fifo), 4);
}

static void damage_memory(struct target *t)
{
	damage(t, t->device, DEV(dm_high), 4);
	damage(t, t->device, DEV(dm_ino), 8);
	damage(t, t->device, ONE(t, urxe_dev, dm, 4),
	       sizeof(struct urxe_dm_slot));
	damage(t, t->device, ONE(t, urxe_dev, xrcd, 2),
	       sizeof(struct urxe_xrcd_slot));
}

/* ------------------------------------------------------------ files */

/*
 * Select a random file in a directory of the fabric; sub is "." for its top.
 * @path is relative to it.  Returns false if there is none.
 */
static bool any_file(struct target *t, const char *sub, char *path, size_t len)
{
	struct dirent *de;
	uint32_t n = 0;
	struct stat st;
	char name[600];
	DIR *d;

	snprintf(name, sizeof(name), "%s/%s", dir, sub);
	d = opendir(name);
	while (d && (de = readdir(d))) {
		if (fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    S_ISDIR(st.st_mode) || roll(&t->dice, ++n))
			continue;
		snprintf(path, len, "%s/%s", sub, de->d_name);
	}
	if (d)
		closedir(d);
	return n;
}

static void say(const char *what, const char *path)
{
	if (verbose)
		fprintf(stderr, "%s %s\n", what, path);
}

/* Write a forged event to a FIFO. */
static void send_events(struct target *t)
{
	uint64_t rec[2] = { roll64(&t->dice), roll(&t->dice, 24) };
	char path[600];
	int fd;

	if (!any_file(t, "ev", path, sizeof(path)))
		return;
	if (roll(&t->dice, 2))
		rec[0] = roll(&t->dice, 8) | (uint64_t)roll(&t->dice, 8) << 32;
	/* O_RDWR: no SIGPIPE if the reader closes the FIFO meanwhile */
	fd = openat(t->dir, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, rec, roll(&t->dice, 2) ? 8 : 16) < 0)
		say("full", path);
	close(fd);
}

static void remove_file(struct target *t)
{
	static const char *const subs[] = { ".", "ctx", "ev" };
	char path[600];

	if (!any_file(t, subs[roll(&t->dice, 3)], path, sizeof(path)))
		return;
	say("unlink", path);
	unlinkat(t->dir, path, 0);
}

static void cut_file(struct target *t)
{
	static const char *const subs[] = { ".", "ctx" };
	char path[600];
	struct stat st;
	off_t size;
	int fd;

	if (!any_file(t, subs[roll(&t->dice, 2)], path, sizeof(path)))
		return;
	fd = openat(t->dir, path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	size = roll(&t->dice, 2) ? 0 : (off_t)roll(&t->dice, 1 << 20);
	say("truncate", path);
	if (size < st.st_size && ftruncate(fd, size))
		say("cannot truncate", path);
	close(fd);
}

/* ------------------------------------------------------------ rounds */

static const struct region {
	const char *name;
	void (*damage)(struct target *t);
	bool files; /* the next program must get a working fabric */
	bool bus; /* SIGBUS is allowed */
} regions[] = {
	{ .name = "cqs", .damage = damage_cqs },
	{ .name = "qps", .damage = damage_qps },
	{ .name = "srqs", .damage = damage_srqs },
	{ .name = "keys", .damage = damage_keys },
	{ .name = "rings", .damage = damage_rings },
	{ .name = "maps", .damage = damage_maps },
	{ .name = "head", .damage = damage_head },
	{ .name = "device", .damage = damage_device },
	{ .name = "bouncers", .damage = damage_bouncers },
	{ .name = "atomics", .damage = damage_atomics },
	{ .name = "locks", .damage = damage_locks },
	{ .name = "processes", .damage = damage_processes },
	{ .name = "kept", .damage = damage_kept },
	{ .name = "memory", .damage = damage_memory },
	{ .name = "events", .damage = send_events },
	{ .name = "remove", .damage = remove_file, .files = true },
	{ .name = "cut", .damage = cut_file, .files = true, .bus = true },
	{ .name = "guards", .damage = damage_guards },
};
#define REGIONS (sizeof(regions) / sizeof(*regions))

static const struct region *pick(struct dice *d)
{
	unsigned int i;

	for (i = 0; only && i < REGIONS; i++)
		if (!strcmp(only, regions[i].name))
			return &regions[i];
	return &regions[roll(d, REGIONS)];
}

struct worker {
	pid_t pid;
	int out; /* receives a byte when both ends are connected */
};

static struct worker start(uint64_t seed, int ms, bool clean)
{
	char seed_arg[32], ms_arg[32];
	struct worker w;
	int out[2];

	snprintf(seed_arg, sizeof(seed_arg), "%llu", (unsigned long long)seed);
	snprintf(ms_arg, sizeof(ms_arg), "%d", ms);
	if (pipe2(out, O_CLOEXEC) || (w.pid = fork()) < 0) {
		perror("fuzz");
		exit(EXIT_FAILURE);
	}
	if (!w.pid) {
		setpgid(0, 0);
		dup2(out[1], STDOUT_FILENO);
		execl(urxe, urxe, "run", "--", traffic, seed_arg, ms_arg,
		      clean ? "clean" : NULL, NULL);
		_exit(127);
	}
	setpgid(w.pid, w.pid);
	close(out[1]);
	w.out = out[0];
	return w;
}

/* Print the stacks of the process group, if gdb is installed. */
static void show_stacks(pid_t pgid)
{
	char cmd[200];

	snprintf(cmd, sizeof(cmd),
		 "for p in $(pgrep -g %d); do timeout 20 gdb -p $p -batch -ex 'thread apply all bt 12' 2>/dev/null | grep -v warning >&2; done",
		 (int)pgid);
	if (system(cmd))
		return;
}

/*
 * Wait for the worker.  Returns its exit status, or 128 plus the signal.  If
 * it does not end before the deadline, kill its process group and return -1.
 */
static int end_of(struct worker *w, int64_t deadline)
{
	int status;

	while (waitpid(w->pid, &status, WNOHANG) != w->pid) {
		if (now_ms() < deadline) {
			usleep(2000);
			continue;
		}
		show_stacks(w->pid);
		kill(-w->pid, SIGKILL);
		waitpid(w->pid, &status, 0);
		return -1;
	}
	kill(-w->pid, SIGKILL); /* processes that it left behind */
	return WIFEXITED(status) ? WEXITSTATUS(status) :
				   128 + WTERMSIG(status);
}

static bool wait_connected(const struct worker *w)
{
	struct pollfd p = { .fd = w->out, .events = POLLIN };
	char byte;

	return poll(&p, 1, HANG_MS) == 1 && read(w->out, &byte, 1) == 1;
}

static bool is_over(const struct worker *w)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)w->pid, &info,
		      WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

static int open_file(const struct target *t, const char *name)
{
	return openat(t->dir, name, O_RDWR | O_CLOEXEC);
}

static void open_target(struct target *t)
{
	char name[64];
	int i, n = 0;

	t->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t->device = open_file(t, "device");
	t->arena[0] = t->arena[1] = -1;
	for (i = 0; i < URXE_MAX_CTX && n < 2; i++) {
		snprintf(name, sizeof(name), URXE_ARENA_NAME, (unsigned int)i,
			 1u);
		t->arena[n] = open_file(t, name);
		n += t->arena[n] >= 0;
	}
	if (t->dir < 0 || t->device < 0 || n < 2) {
		fprintf(stderr, "fuzz: no fabric in %s\n", dir);
		exit(EXIT_FAILURE);
	}
}

static void close_target(struct target *t)
{
	close(t->arena[0]);
	close(t->arena[1]);
	close(t->device);
	close(t->dir);
}

static void damage_for_a_while(const struct region *r, uint64_t seed,
			       const struct worker *w)
{
	struct target t = { .dice = { seed } };
	/* in a third of the rounds also while the objects are destroyed */
	bool to_the_end = roll(&t.dice, 3) == 0;
	int64_t end = now_ms() + TRAFFIC_MS / 2 +
		      (to_the_end ? TRAFFIC_MS : 0);
	uint32_t pause = 200u << roll(&t.dice, 8);

	open_target(&t);
	while (now_ms() < end && !is_over(w)) {
		usleep(roll(&t.dice, 2 * pause));
		r->damage(&t);
	}
	close_target(&t);
}

static bool round_fails(const struct region *r, uint64_t seed, const char *why,
			int status)
{
	fprintf(stderr, "fuzz: seed %llu, %s: %s (%d)\n",
		(unsigned long long)seed, r->name, why, status);
	return false;
}

/* Check that the next program gets a working fabric. */
static bool run_clean(const struct region *r, uint64_t seed)
{
	struct worker w = start(seed, 10, true);
	int status;

	status = end_of(&w, now_ms() + HANG_MS);
	close(w.out);
	if (status)
		return round_fails(r, seed, status < 0 ?
				   "the next program hangs" :
				   "the next program fails", status);
	return true;
}

/*
 * Set ASan options.  ASan would report an allowed SIGBUS as an error.  It
 * would also report a leak when an object with a damaged entry cannot be
 * destroyed, so leak detection is off.
 */
static void set_asan(bool may_be_sigbus)
{
	static char *options;
	const char *env = getenv("ASAN_OPTIONS");
	char with[600];

	if (!options)
		options = strdup(env ? env : "");
	snprintf(with, sizeof(with), "%s:detect_leaks=0:handle_sigbus=%d",
		 options, !may_be_sigbus);
	setenv("ASAN_OPTIONS", with, 1);
}

static bool run_round(uint64_t seed)
{
	struct dice d = { seed };
	const struct region *r = pick(&d);
	struct worker w;
	int status;
	bool up;

	set_asan(r->bus);
	w = start(seed, TRAFFIC_MS, false);
	up = wait_connected(&w);
	if (up)
		damage_for_a_while(r, roll64(&d), &w);
	status = end_of(&w, now_ms() + HANG_MS);
	close(w.out);
	if (!up)
		return round_fails(r, seed, "the pair did not connect", status);
	if (status < 0)
		return round_fails(r, seed, "a hang", status);
	if (status && !(status == FUZZ_BUS && r->bus))
		return round_fails(r, seed, "a crash", status);
	return !r->files || run_clean(r, seed);
}

static void set_fabric(uint64_t seed)
{
	char name[64];

	snprintf(name, sizeof(name), "fuzz-%llx", (unsigned long long)seed);
	setenv("URXE_FABRIC", name, 1);
	snprintf(dir, sizeof(dir), "%s/%s", getenv("URXE_DIR"), name);
}

static void remove_fabric(void)
{
	pid_t pid = fork();

	if (!pid) {
		execlp("rm", "rm", "-rf", dir, NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static int usage(void)
{
	fprintf(stderr, "usage: fuzz [-lvk] [-s SEED] [-n ROUNDS] [-t SECONDS] [-r REGION] URXE TRAFFIC\n");
	return EXIT_FAILURE;
}

static int list_regions(void)
{
	unsigned int i;

	for (i = 0; i < REGIONS; i++)
		puts(regions[i].name);
	return 0;
}

int main(int argc, char **argv)
{
	const char *env = getenv("URXE_FUZZ_SECONDS");
	int64_t seconds = env ? atoi(env) : 10, end;
	uint64_t seed = (uint64_t)time(NULL) * 1000000 + (uint64_t)getpid();
	unsigned long rounds = 0, most = ~0ul, failed = 0;
	bool keep_going = false;
	int c;

	while ((c = getopt(argc, argv, "lvks:n:t:r:")) >= 0) {
		switch (c) {
		case 'l':
			return list_regions();
		case 'v':
			verbose = true;
			break;
		case 'k':
			keep_going = true;
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			most = strtoul(optarg, NULL, 0);
			seconds = 1000000;
			break;
		case 't':
			seconds = atoi(optarg);
			break;
		case 'r':
			only = optarg;
			break;
		default:
			return usage();
		}
	}
	if (argc - optind != 2 || !getenv("URXE_DIR"))
		return usage();
	urxe = argv[optind];
	traffic = argv[optind + 1];
	printf("fuzz: seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	for (end = now_ms() + seconds * 1000;
	     rounds < most && now_ms() < end && (keep_going || !failed);
	     rounds++, seed++) {
		set_fabric(seed);
		failed += !run_round(seed);
		remove_fabric();
	}
	printf("fuzz: %lu rounds, %lu failed\n", rounds, failed);
	return failed != 0;
}
