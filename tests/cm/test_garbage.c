// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The tables of the connection manager are shared with processes that may
 * write anything to them.  Whatever they contain, commands must return, and
 * no process may crash.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm/cm.h"
#include "raw.h"

#define ROUNDS 300
#define STEPS 60
#define SECONDS 120 /* deadline of one round */

/* Size of the fields between the lock and the first table. */
#define HEAD \
	(offsetof(struct cm_table, chan) - offsetof(struct cm_table, order))

static struct cm cm;

static uint32_t word(void)
{
	static const uint32_t edges[] = { 0,
					  1,
					  2,
					  CM_MAX_CHAN,
					  CM_MAX_ID,
					  CM_MAX_ID + 1,
					  CM_MAX_EVENT,
					  CM_MAX_EVENT + 1,
					  CM_MAX_MC + 1,
					  0x7fffffff,
					  0x80000000,
					  0xffffffff };

	switch (random() % 4) {
	case 0:
		return (uint32_t)random();
	case 1:
	case 2:
		return edges[(size_t)random() % (sizeof(edges) / 4)];
	default:
		return (uint32_t)random() % 20; /* likely a valid index */
	}
}

/*
 * Overwrite a word of a table.  @size covers the first entries, which are in
 * use.
 */
static void scribble(void *table, size_t size)
{
	uint32_t *at = (uint32_t *)table + (size_t)random() % (size / 4);

	*at = word();
}

static void spoil(void)
{
	struct cm_table *t = cm.t;
	int n = 1 + (int)(random() % 30);

	while (n--) {
		switch (random() % 6) {
		case 0:
			scribble(t->chan, 8 * sizeof(*t->chan));
			break;
		case 1:
			scribble(t->event, 16 * sizeof(*t->event));
			break;
		case 2:
			scribble(t->mc, 4 * sizeof(*t->mc));
			break;
		case 3: /* links rather than contents */
			t->event[random() % 16].next = word();
			break;
		case 4:
			scribble(&t->order, HEAD);
			break;
		default:
			scribble(t->id, 16 * sizeof(*t->id));
		}
	}
}

static void create(int fd, uint64_t uid)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id cmd = { .uid = uid,
					  .response = raw_to(&resp),
					  .ps = random() % 3 ? RDMA_PS_TCP :
							       RDMA_PS_UDP };

	raw_send(fd, CREATE_ID, &cmd, sizeof(resp));
}

static void destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id cmd = { .response = raw_to(&resp),
					   .id = id };

	raw_send(fd, DESTROY_ID, &cmd, sizeof(resp));
}

static void leave(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id cmd = { .response = raw_to(&resp),
					   .id = id };

	raw_send(fd, LEAVE_MCAST, &cmd, sizeof(resp));
}

static void get_event(int fd)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd = { .response = raw_to(&resp) };

	raw_send(fd, GET_EVENT, &cmd, sizeof(resp));
}

static void migrate(int to, int from, uint32_t id)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd = { .response = raw_to(&resp),
					   .id = id,
					   .fd = (uint32_t)from };

	raw_send(to, MIGRATE_ID, &cmd, sizeof(resp));
}

/* Run one random command. */
static void step(int fd, int other)
{
	static int (*const calls[])(int fd, uint32_t id) = {
		raw_route,     raw_listen,   raw_connect,  raw_accept,
		raw_confirm,   raw_reject,   raw_notify,   raw_disconnect,
		raw_attr_init, raw_attr_rtr, raw_attr_rts, raw_join,
	};
	const uint32_t id = (uint32_t)random() % 16;
	const long kind = random() % 20;

	switch (kind) {
	case 12:
	case 13:
		create(fd, (uint64_t)random() % 5);
		break;
	case 14:
		destroy(fd, id);
		break;
	case 15:
		leave(fd, id);
		break;
	case 16:
	case 17:
		get_event(fd);
		break;
	case 18:
		migrate(fd, other, id);
		break;
	case 19:
		raw_resolve(fd, id, ip4(5000));
		break;
	default:
		calls[kind](fd, id);
		raw_bind(fd, id, ip4(5000));
	}
}

static void work(unsigned int seed)
{
	int a, b, i;

	srandom(seed);
	alarm(SECONDS);
	a = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	b = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	for (i = 0; i < STEPS; i++) {
		if (i % 20 == 10) {
			cm_lock(&cm);
			spoil();
			cm_unlock(&cm);
		}
		step(i & 1 ? a : b, i & 1 ? b : a);
	}
	_exit(0);
}

static void run(void)
{
	unsigned int round;
	char saved[HEAD];
	int status;
	pid_t pid;

	for (round = 0; round < ROUNDS; round++) {
		memcpy(saved, &cm.t->order, HEAD);
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (!pid)
			work(round);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(!status, "round %u ended with 0x%x", round,
			      status);
		/*
		 * with damaged counters the next round would have nothing to
		 * do
		 */
		memcpy(&cm.t->order, saved, HEAD);
		if (cm.t->id_high < 64)
			cm.t->id_high = 64;
		cm.t->chan_low = cm.t->id_low = 0;
	}
}

/*
 * Fork a process that exits while it holds the lock, in the middle of an
 * update.
 */
static void half_done(void)
{
	uint32_t i;

	if (fork()) {
		ck_assert_int_ge(wait(NULL), 0);
		return;
	}
	cm_lock(&cm);
	for (i = 0; i < cm_ids(&cm); i++) {
		cm.t->id[i].peer.id = 0;
		cm.t->id[i].backlog = 0;
	}
	for (i = 0; i < cm_chans(&cm); i++)
		cm.t->chan[i].head = cm.t->chan[i].tail = 0;
	_exit(0);
}

static void map_tables(void)
{
	char dir[300];

	ck_ok(fabric_dir(dir, sizeof(dir)));
	ck_ok(fabric_open(dir, false, &cm.f));
	ck_ok(cm_map(cm.f, &cm.t));
}

static uint32_t client(int fd, int port)
{
	uint32_t id = raw_create(fd, RDMA_PS_TCP, 0, 1);

	ck_ok(raw_resolve(fd, id, ip4(port)));
	raw_next(fd, ADDR_RESOLVED);
	ck_ok(raw_route(fd, id));
	raw_next(fd, ROUTE_RESOLVED);
	ck_ok(raw_connect(fd, id));
	return id;
}

/*
 * If a process dies while it holds the lock of the tables, the next process
 * repairs them.
 */
START_TEST(killed_with_lock)
{
	int fd = raw_open();
	uint32_t l = raw_create(fd, RDMA_PS_TCP, 0, 1), c, s;

	map_tables();
	ck_ok(raw_listen(fd, l));
	c = client(fd, raw_port(fd, l));
	s = raw_next(fd, CONNECT_REQUEST).id;
	ck_ok(raw_accept(fd, s));
	raw_next(fd, CONNECT_RESPONSE);
	ck_ok(raw_confirm(fd, c));
	/* neither a queued event nor the end of the connection is lost */
	half_done();
	raw_next(fd, ESTABLISHED);
	raw_next(fd, DISCONNECTED);
	raw_next(fd, DISCONNECTED);
	/* nor are backlog entries */
	c = client(fd, raw_port(fd, l));
	half_done();
	s = raw_next(fd, CONNECT_REQUEST).id;
	ck_assert_uint_eq(raw_next(fd, REJECTED).id, c);
	ck_assert_int_eq(raw_accept(fd, s), -EINVAL);
	c = client(fd, raw_port(fd, l));
	raw_next(fd, CONNECT_REQUEST);
	close(fd);
}
END_TEST

static void *wait_for_event(void *fd)
{
	struct rdma_ucm_event_resp e;
	struct rdma_ucm_get_event cmd = { .response = raw_to(&e) };

	return (void *)(intptr_t)raw_send(*(int *)fd, GET_EVENT, &cmd,
					  sizeof(e));
}

/*
 * Start a thread that waits for an event, and close *fd while it waits for
 * the lock of the tables.
 */
static pthread_t close_in_get_event(int *fd)
{
	pthread_t t;

	map_tables();
	cm_lock(&cm);
	ck_ok(pthread_create(&t, NULL, wait_for_event, fd));
	while (!(load_relaxed(&cm.t->lock.word) & ROBUST_WAITERS))
		usleep(1000);
	/* the interposed close() would wait for the lock */
	ck_ok(syscall(SYS_close, *fd));
	cm_unlock(&cm);
	return t;
}

/*
 * A channel is closed while another thread is in rdma_get_cm_event(), between
 * its first check of the descriptor and the lock of the tables.  That thread
 * waits as in a kernel, which keeps the file until write(2) returns.
 */
START_TEST(closed_in_get_event)
{
	int fd = raw_open();
	pthread_t t;
	void *ret;

	t = close_in_get_event(&fd);
	ck_ok(pthread_cancel(t));
	ck_ok(pthread_join(t, &ret));
	ck_assert_ptr_eq(ret, PTHREAD_CANCELED);
}
END_TEST

/* The same, but another descriptor of the channel is open. */
START_TEST(duplicate_closed_in_get_event)
{
	int fd = raw_open(), other = dup(fd);
	uint32_t id = raw_create(fd, RDMA_PS_TCP, 0, 1);
	pthread_t t;
	void *ret;

	t = close_in_get_event(&fd);
	ck_ok(raw_resolve(other, id, ip4(7471)));
	ck_ok(pthread_join(t, &ret));
	ck_assert_ptr_null(ret);
	close(other);
}
END_TEST

/* Random commands while the tables are overwritten at random. */
START_TEST(random_commands_and_tables)
{
	int fd = raw_open(); /* creates the tables */

	map_tables();
	run();
	/*
	 * Free the channels of the dead processes.  The channel is closed
	 * first: the preload library would take the sweep's open() of a
	 * living channel's FIFO for the opening of another channel, and wait
	 * for the lock that is held here.
	 */
	close(fd);
	cm_lock(&cm);
	cm_chan_sweep(&cm, CM_MAX_CHAN);
	cm_unlock(&cm);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm garbage");

	add(s, killed_with_lock);
	add(s, closed_in_get_event);
	add(s, duplicate_closed_in_get_event);
	add(s, random_commands_and_tables);
	return run_suite(s);
}
