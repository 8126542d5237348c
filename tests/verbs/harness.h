/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Common code of the verbs tests.  It uses only the public API of the stock
 * libibverbs and does not depend on the provider.
 *
 * A *node* is one end of a connection: context, PD, CQs, a buffer with its
 * MR, one RC QP.  A *duo* is two connected nodes.  Node a is always in the
 * test's own process.  Node b is in the same context, in another context of
 * this process, or in another process.  on_b() runs a function where b is, so
 * that one test body covers all three cases.  A test forks before it opens
 * the device.
 *
 * Every wait has a deadline (WAIT_MS) that only a hang exceeds; the assertion
 * fails then.
 */
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../mark.h"
#include "../turns.h"

#define DEVICE "urxe0"
/*
 * The devices that open_device() opens: in general, and for node b of a duo
 * that has a context of its own.  The second one is URXE_TEST_DEVICE_B, or
 * DEVICE.
 */
extern const char *device, *device_b;
#define WAIT_MS 60000 /* deadline of a wait; longer: a hang */
#define QUIET_MS 30 /* time in which nothing may happen */

#define ALL_ACCESS                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define QP_ACCESS                                           \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* The memory of a node's buffer. */
enum mem {
	MEM_HEAP, /* private pages */
	MEM_SHARED, /* a shared mapping of a memfd */
	MEM_DM, /* device memory */
	MEM_COUNT,
	MEM_FILE = MEM_COUNT, /* as MEM_SHARED; the memfd stays open */
};

/* Where b is, relative to a. */
enum where { SAME_CONTEXT, SAME_PROCESS, TWO_PROCESSES, WHERE_COUNT };

/*
 * Attributes of an RC connection, the same for both ends.  A test modifies
 * those of default_opts().
 */
struct opts {
	struct ibv_qp_cap cap;
	int sq_sig_all;
	int cqe;
	size_t size; /* of the buffer */
	int mr_access;
	unsigned int qp_access;
	enum ibv_mtu mtu;
	uint32_t psn; /* of the first packet in each direction */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	bool channel; /* a completion channel on the receive CQ */
	bool built; /* extended QP: post_list() uses ibv_wr_*() */
};
struct opts default_opts(void);

struct node {
	struct opts o;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *chan;
	struct ibv_cq *scq, *rcq;
	enum mem mem;
	void *buf; /* NULL for MEM_DM */
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	uint64_t base; /* address of the first byte in WRs */
	union ibv_gid gid;
	uint16_t lid; /* 0: the link layer is Ethernet */
	struct ibv_qp *qp;
	bool shares_ctx;
	void *user; /* for functions run with on_b() */
};

/* What a node must know of its peer. */
struct addr {
	uint32_t qpn, psn, rkey;
	union ibv_gid gid;
	uint16_t lid;
	uint64_t base;
};

struct ibv_device *find_device(struct ibv_device ***list);
struct ibv_context *open_device(void);
struct ibv_context *open_named(const char *name);
/* The attributes of port 1; the number in a file of the port of urxek. */
struct ibv_port_attr port_of(struct ibv_context *ctx);
unsigned long long port_file(int k, const char *name);
/*
 * Initialize a node: context @ctx, or a new one if it is NULL; PD, CQs,
 * buffer, MR, and a QP in state RESET.
 */
void node_open(struct node *n, struct ibv_context *ctx, enum mem mem,
	       const struct opts *o);
void node_close(struct node *n);
void node_make_qp(struct node *n);
/*
 * Replace pages by a PROT_NONE mapping, so that no other mapping, such as a
 * thread's stack, takes their place.
 */
void leave_hole(void *at, size_t len);
struct addr node_addr(const struct node *n);
void node_put(struct node *n, size_t off, const void *data, size_t len);
void node_get(struct node *n, size_t off, void *data, size_t len);
/*
 * Fill with a pattern that depends on position and seed, and compare with it;
 * node_all() compares with one byte.
 */
void node_fill(struct node *n, size_t off, size_t len, unsigned int seed);
bool node_has(struct node *n, size_t off, size_t len, unsigned int seed);
bool node_all(struct node *n, size_t off, size_t len, uint8_t byte);

/*
 * Fill in the attributes of one step of the state machine; return the full
 * mask.  attr_rtr() uses the LID of the peer, without a GRH, if it has one.
 */
int attr_init(struct ibv_qp_attr *attr, const struct opts *o);
int attr_rtr(struct ibv_qp_attr *attr, const struct opts *o,
	     const struct addr *peer);
int attr_rts(struct ibv_qp_attr *attr, const struct opts *o);
void qp_to_init(struct ibv_qp *qp, const struct opts *o);
void qp_to_rtr(struct ibv_qp *qp, const struct opts *o,
	       const struct addr *peer);
void qp_to_rts(struct ibv_qp *qp, const struct opts *o);
int qp_to(struct ibv_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state qp_state(struct ibv_qp *qp);
void node_connect(struct node *n, const struct addr *peer);

struct duo {
	enum where where;
	struct node a, b; /* b: unused with two processes */
	struct addr at_a, at_b;
	int sock;
	pid_t pid;
};

/* Open two nodes and, unless _unconnected, connect their QPs. */
void duo_open(struct duo *d, enum where where, enum mem a, enum mem b,
	      const struct opts *o);
void duo_open_unconnected(struct duo *d, enum where where, enum mem a,
			  enum mem b, const struct opts *o);
void duo_connect(struct duo *d);
void duo_close(struct duo *d);
/* Replace both QPs and connect them. */
void duo_renew(struct duo *d);
/*
 * Run @fn where b is.  @arg of @len bytes (at most 4096) is copied there and
 * back.
 */
typedef void node_fn(struct node *b, void *arg);
void on_b(struct duo *d, node_fn *fn, void *arg, size_t len);

/* Pass a descriptor over a UNIX socket (SCM_RIGHTS). */
void send_fd(int s, int fd);
int recv_fd(int s);

/* Operations on node b, run by on_b(). */
void b_recv(struct duo *d, uint64_t wr_id, size_t off, uint32_t len);
struct ibv_wc b_wait_recv(struct duo *d);
/* Wait for a receive for QUIET_MS.  Returns false if none has completed. */
bool b_try_recv(struct duo *d, struct ibv_wc *wc);
void b_fill(struct duo *d, size_t off, size_t len, unsigned int seed);
bool b_has(struct duo *d, size_t off, size_t len, unsigned int seed);
bool b_all(struct duo *d, size_t off, size_t len, uint8_t byte);
uint64_t b_load64(struct duo *d, size_t off);
void b_store64(struct duo *d, size_t off, uint64_t v);
enum ibv_qp_state b_state(struct duo *d);
void b_expect_async(struct duo *d, enum ibv_event_type type);
void b_expect_no_async(struct duo *d);
void b_modify(struct duo *d, enum ibv_qp_state state);
void b_destroy_qp(struct duo *d);

/* Posting.  All functions return what the verb returns. */
struct ibv_sge node_sge(const struct node *n, size_t off, uint32_t len);
int post_wr(struct ibv_qp *qp, struct ibv_send_wr *wr);
/* Post by ibv_post_send(), or by ibv_wr_*() if opts.built. */
int post_list(struct node *n, struct ibv_send_wr *wr);
int post_recv(struct node *n, uint64_t wr_id, size_t off, uint32_t len);
/*
 * One WR from a's buffer to b's, or back for READ. post() adds
 * IBV_SEND_SIGNALED to @flags.
 */
int post(struct duo *d, enum ibv_wr_opcode op, uint64_t wr_id, size_t a_off,
	 uint32_t len, size_t b_off, unsigned int flags);
int post_unsignaled(struct duo *d, enum ibv_wr_opcode op, uint64_t wr_id,
		    size_t a_off, uint32_t len, size_t b_off,
		    unsigned int flags);
int post_atomic(struct duo *d, enum ibv_wr_opcode op, uint64_t wr_id,
		size_t a_off, size_t b_off, uint64_t compare_add,
		uint64_t swap);
struct ibv_send_wr rdma_wr(const struct duo *d, enum ibv_wr_opcode op,
			   uint64_t wr_id, struct ibv_sge *sge, int num_sge,
			   size_t b_off);

/*
 * Completions and events: wait_*() return the next one, expect*() also
 * compare it, expect_no*() fail if one arrives.
 */

/*
 * Yield the CPU between two polls of one wait: sched_yield() for the first
 * 200 polls, then sleeps of 50 to 300 us.  @polls counts the polls of this
 * wait, from 0.
 */
void breathe(unsigned int *polls);
struct ibv_wc wait_wc(struct ibv_cq *cq);
struct ibv_wc expect(struct ibv_cq *cq, uint64_t wr_id,
		     enum ibv_wc_status status);
struct ibv_wc expect_ok(struct ibv_cq *cq, uint64_t wr_id,
			enum ibv_wc_opcode opcode);
void expect_none(struct ibv_cq *cq, int ms);
struct ibv_async_event wait_async(struct ibv_context *ctx, bool ack);
void expect_async(struct ibv_context *ctx, enum ibv_event_type type,
		  void *element);
void expect_no_async(struct ibv_context *ctx);
bool fd_readable(int fd, int ms);

/* Processes and time. */

/*
 * fork().  If URXE_TEST_PIDNS is set in the environment, each child gets its
 * own PID namespace (tests/bounce/apart).
 */
pid_t fork_peer(void);
pid_t spawn(int (*fn)(void *arg), void *arg);
/*
 * For processes that are killed by SIGKILL.  Check records each assertion in
 * a file that all children share, and a truncated record damages it for all
 * of them.  This redirects the caller's records to /dev/null, so its
 * assertions are not reported.
 */
void leave_check(void);
int reap_child(pid_t pid); /* exit status, or -signal */
/*
 * Run `urxe port @word @name`.  in-fabric sets URXE, the path of the program;
 * the environment selects the fabric.
 */
void urxe_port(const char *word, const char *name);
/* Run `urxe port set @name @setting`. */
void urxe_port_set(const char *name, const char *setting);
/* Set RLIMIT_MEMLOCK and drop CAP_IPC_LOCK in this thread. */
void limit_memlock(size_t bytes);
/* false: pthread_create() fails from now on; true: it works again. */
void allow_threads(bool yes);
int count_threads(void);
double now_ms(void);
void sleep_ms(int ms);
/*
 * Fail unless timed(@i), which returns the duration of an operation in ms,
 * returns less than @most at least once in 20 calls and 20 s.  A busy machine
 * delays some of the calls, for seconds; a defect delays all of them.
 */
void expect_within(double most, double (*timed)(int i), int i);
/*
 * Return whether this is built with ASan or TSan, which use memory of their
 * own.
 */
bool under_sanitizer(void);
/*
 * Return whether the adversary (docs/adversary.md) is enabled, which uses all
 * freedom that the specification leaves.
 */
bool under_adversary(void);
/* Return whether registered memory is adopted (docs/adoption.md). */
bool under_adoption(void);
/* Disable leak reports, for tests that do not destroy all objects. */
void may_leak(void);

/* Suites. add_loop() runs @test with _i from 0 to @n - 1. */
Suite *suite(const char *name);
#define add(s, test) add_loop(s, test, 1)
#define add_loop(s, test, n) add_case(s, #test, test, n)
void add_case(Suite *s, const char *name, const TTest *test, int n);
/*
 * The provider is loaded before Check forks: with ASan, to relocate it in each
 * case took a third of the time.
 */
int run(Suite *s);
/*
 * The same without that, for cases that set a variable which is read when the
 * provider is loaded: URXE_LOG, URXE_MEMLOCK, URXE_ADOPT.
 */
int run_unloaded(Suite *s);

#define ck_errno(expr, err)                                           \
	do {                                                          \
		errno = 0;                                            \
		ck_assert_msg((expr) == NULL, "%s succeeded", #expr); \
		ck_assert_int_eq(errno, err);                         \
	} while (0)
#define ck_ok(expr) ck_assert_int_eq(expr, 0)
#define ck_nonnull(expr) \
	ck_assert_msg((expr) != NULL, "%s: %s", #expr, strerror(errno))
