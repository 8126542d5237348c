// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Nodes (one end of a connection), waiting, processes, suites. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "memory/adopt.h"
#include "harness.h"

#define CHUNK 4096

struct opts default_opts(void)
{
	struct opts o = {
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 4,
			 .max_recv_sge = 4,
			 .max_inline_data = 64 },
		.cqe = 256,
		.size = 1 << 16,
		.mr_access = ALL_ACCESS,
		.qp_access = QP_ACCESS,
		.mtu = IBV_MTU_1024,
		.psn = 0x123456,
		.timeout = 17, /* 0.5 s: a bouncer thread may be late */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 5, /* 0.12 ms */
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
	};

	return o;
}

const char *device = DEVICE, *device_b = DEVICE;

__attribute__((constructor)) static void choose_device_b(void)
{
	const char *env = getenv("URXE_TEST_DEVICE_B");

	if (env)
		device_b = env;
}

struct ibv_device *find_device(struct ibv_device ***list)
{
	int i, n;

	*list = ibv_get_device_list(&n);
	ck_nonnull(*list);
	for (i = 0; i < n; i++)
		if (!strcmp(ibv_get_device_name((*list)[i]), device))
			return (*list)[i];
	ck_abort_msg("no %s among %d devices: run me with urxe run", device, n);
	return NULL;
}

struct ibv_context *open_device(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx;

	ctx = ibv_open_device(find_device(&list));
	ck_nonnull(ctx);
	ibv_free_device_list(list);
	return ctx;
}

struct ibv_context *open_named(const char *name)
{
	const char *was = device;
	struct ibv_context *ctx;

	device = name;
	ctx = open_device();
	device = was;
	return ctx;
}

struct ibv_port_attr port_of(struct ibv_context *ctx)
{
	struct ibv_port_attr attr;

	ck_ok(ibv_query_port(ctx, 1, &attr));
	return attr;
}

unsigned long long port_file(int k, const char *name)
{
	char path[128], text[64] = "", *end;
	unsigned long long value;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/urxe%d/ports/1/%s",
		 k, name);
	f = fopen(path, "re");
	ck_nonnull(f);
	ck_nonnull(fgets(text, sizeof(text), f));
	fclose(f);
	value = strtoull(text, &end, 0);
	ck_assert(end != text);
	return value;
}

static void *map_buffer(enum mem mem, size_t size)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *p;

	if (mem == MEM_SHARED || mem == MEM_FILE) {
		fd = memfd_create("buffer", MFD_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
		flags = MAP_SHARED;
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	ck_assert(p != MAP_FAILED);
	if (mem == MEM_SHARED)
		close(fd);
	return p;
}

static void make_buffer(struct node *n)
{
	struct ibv_alloc_dm_attr attr = { .length = n->o.size };

	if (n->mem == MEM_DM) {
		n->dm = ibv_alloc_dm(n->ctx, &attr);
		ck_nonnull(n->dm);
		n->mr = ibv_reg_dm_mr(n->pd, n->dm, 0, n->o.size,
				      n->o.mr_access | IBV_ACCESS_ZERO_BASED);
		n->base = 0;
	} else {
		n->buf = map_buffer(n->mem, n->o.size);
		n->mr = ibv_reg_mr(n->pd, n->buf, n->o.size, n->o.mr_access);
		n->base = (uintptr_t)n->buf;
	}
	ck_nonnull(n->mr);
}

static struct ibv_qp *make_extended(struct node *n)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = n->scq,
		.recv_cq = n->rcq,
		.cap = n->o.cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = n->o.sq_sig_all,
		.qp_context = n,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = n->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM,
	};

	return ibv_create_qp_ex(n->ctx, &attr);
}

void node_make_qp(struct node *n)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = n->scq,
		.recv_cq = n->rcq,
		.cap = n->o.cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = n->o.sq_sig_all,
		.qp_context = n,
	};

	n->qp = n->o.built ? make_extended(n) : ibv_create_qp(n->pd, &attr);
	ck_nonnull(n->qp);
}

void node_open(struct node *n, struct ibv_context *ctx, enum mem mem,
	       const struct opts *o)
{
	struct ibv_port_attr port;

	memset(n, 0, sizeof(*n));
	n->o = *o;
	n->mem = mem;
	n->shares_ctx = ctx != NULL;
	n->ctx = ctx ? ctx : open_device();
	n->pd = ibv_alloc_pd(n->ctx);
	ck_nonnull(n->pd);
	if (o->channel) {
		n->chan = ibv_create_comp_channel(n->ctx);
		ck_nonnull(n->chan);
	}
	n->scq = ibv_create_cq(n->ctx, o->cqe, n, NULL, 0);
	ck_nonnull(n->scq);
	n->rcq = ibv_create_cq(n->ctx, o->cqe, n, n->chan, 0);
	ck_nonnull(n->rcq);
	make_buffer(n);
	ck_ok(ibv_query_gid(n->ctx, 1, 0, &n->gid));
	ck_ok(ibv_query_port(n->ctx, 1, &port));
	n->lid = port.lid;
	node_make_qp(n);
}

void leave_hole(void *at, size_t len)
{
	ck_assert(mmap(at, len, PROT_NONE,
		       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0) != MAP_FAILED);
}

void node_close(struct node *n)
{
	if (n->qp)
		ck_ok(ibv_destroy_qp(n->qp));
	if (n->mr)
		ck_ok(ibv_dereg_mr(n->mr));
	if (n->dm)
		ck_ok(ibv_free_dm(n->dm));
	if (n->buf)
		munmap(n->buf, n->o.size);
	ck_ok(ibv_destroy_cq(n->rcq));
	ck_ok(ibv_destroy_cq(n->scq));
	if (n->chan)
		ck_ok(ibv_destroy_comp_channel(n->chan));
	ck_ok(ibv_dealloc_pd(n->pd));
	if (!n->shares_ctx)
		ck_ok(ibv_close_device(n->ctx));
}

struct addr node_addr(const struct node *n)
{
	struct addr a = {
		.qpn = n->qp->qp_num,
		.psn = n->o.psn,
		.rkey = n->mr->rkey,
		.gid = n->gid,
		.lid = n->lid,
		.base = n->base,
	};

	return a;
}

/* -------------------------------------------------------- buffer contents */

void node_put(struct node *n, size_t off, const void *data, size_t len)
{
	ck_assert(off + len <= n->o.size);
	if (n->buf)
		memcpy((char *)n->buf + off, data, len);
	else
		ck_ok(ibv_memcpy_to_dm(n->dm, off, data, len));
}

void node_get(struct node *n, size_t off, void *data, size_t len)
{
	ck_assert(off + len <= n->o.size);
	if (n->buf)
		memcpy(data, (char *)n->buf + off, len);
	else
		ck_ok(ibv_memcpy_from_dm(data, n->dm, off, len));
}

/*
 * The test data is a random sequence of bytes of length PERIOD, a prime number,
 * repeated; the seed selects where it begins.
 */
#define PERIOD 8191

static uint8_t pattern[PERIOD + CHUNK];

__attribute__((constructor)) static void make_pattern(void)
{
	uint32_t x = 1;
	size_t i;

	for (i = 0; i < PERIOD; i++) {
		x = x * 1664525 + 1013904223;
		pattern[i] = (uint8_t)(x >> 24);
	}
	memcpy(pattern + PERIOD, pattern, CHUNK);
}

/* The next CHUNK bytes of it from byte i on */
static const uint8_t *pattern_at(size_t i, unsigned int seed)
{
	return pattern + (i + (size_t)seed * 131) % PERIOD;
}

/*
 * Copies to and from device memory must be aligned to 4 bytes.  Round *@off
 * down and return the length, rounded up, from there.
 */
static size_t widen(size_t *off, size_t len)
{
	size_t lead = *off % 4;

	*off -= lead;
	return (lead + len + 3) / 4 * 4;
}

void node_fill(struct node *n, size_t off, size_t len, unsigned int seed)
{
	size_t i, chunk, at, wide;
	uint8_t b[CHUNK + 8];

	for (i = 0; i < len; i += chunk) {
		chunk = len - i < CHUNK ? len - i : CHUNK;
		at = off + i;
		wide = widen(&at, chunk);
		node_get(n, at, b, wide);
		memcpy(b + (off + i - at), pattern_at(i, seed), chunk);
		node_put(n, at, b, wide);
	}
}

/* Compare the bytes with the pattern of @seed, or if @all, with @seed itself.
 */
static bool node_is(struct node *n, size_t off, size_t len, bool all,
		    unsigned int seed)
{
	size_t i, chunk, at, wide;
	uint8_t b[CHUNK + 8], want[CHUNK];

	if (all)
		memset(want, (int)seed, sizeof(want));
	for (i = 0; i < len; i += chunk) {
		chunk = len - i < CHUNK ? len - i : CHUNK;
		at = off + i;
		wide = widen(&at, chunk);
		node_get(n, at, b, wide);
		if (memcmp(b + (off + i - at), all ? want : pattern_at(i, seed),
			   chunk) != 0)
			return false;
	}
	return true;
}

bool node_has(struct node *n, size_t off, size_t len, unsigned int seed)
{
	return node_is(n, off, len, false, seed);
}

bool node_all(struct node *n, size_t off, size_t len, uint8_t byte)
{
	return node_is(n, off, len, true, byte);
}

/* ---------------------------------------------------------------- states */

int attr_init(struct ibv_qp_attr *attr, const struct opts *o)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_INIT;
	attr->port_num = 1;
	attr->qp_access_flags = o->qp_access;
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       IBV_QP_ACCESS_FLAGS;
}

int attr_rtr(struct ibv_qp_attr *attr, const struct opts *o,
	     const struct addr *peer)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_RTR;
	attr->path_mtu = o->mtu;
	attr->dest_qp_num = peer->qpn;
	attr->rq_psn = peer->psn;
	attr->max_dest_rd_atomic = o->max_dest_rd_atomic;
	attr->min_rnr_timer = o->min_rnr_timer;
	attr->ah_attr.is_global = !peer->lid;
	attr->ah_attr.dlid = peer->lid;
	attr->ah_attr.grh.dgid = peer->gid;
	attr->ah_attr.grh.hop_limit = 1;
	attr->ah_attr.port_num = 1;
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int attr_rts(struct ibv_qp_attr *attr, const struct opts *o)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_RTS;
	attr->sq_psn = o->psn;
	attr->timeout = o->timeout;
	attr->retry_cnt = o->retry_cnt;
	attr->rnr_retry = o->rnr_retry;
	attr->max_rd_atomic = o->max_rd_atomic;
	return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
	       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

void qp_to_init(struct ibv_qp *qp, const struct opts *o)
{
	struct ibv_qp_attr attr;
	int mask = attr_init(&attr, o);

	ck_ok(ibv_modify_qp(qp, &attr, mask));
}

void qp_to_rtr(struct ibv_qp *qp, const struct opts *o, const struct addr *peer)
{
	struct ibv_qp_attr attr;
	int mask = attr_rtr(&attr, o, peer);

	ck_ok(ibv_modify_qp(qp, &attr, mask));
}

void qp_to_rts(struct ibv_qp *qp, const struct opts *o)
{
	struct ibv_qp_attr attr;
	int mask = attr_rts(&attr, o);

	ck_ok(ibv_modify_qp(qp, &attr, mask));
}

int qp_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_ok(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

void node_connect(struct node *n, const struct addr *peer)
{
	qp_to_init(n->qp, &n->o);
	qp_to_rtr(n->qp, &n->o, peer);
	qp_to_rts(n->qp, &n->o);
}

/* ---------------------------------------------------------------- posting */

struct ibv_sge node_sge(const struct node *n, size_t off, uint32_t len)
{
	struct ibv_sge sge = { n->base + off, len, n->mr->lkey };

	return sge;
}

int post_wr(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = (void *)1;
	int ret = ibv_post_send(qp, wr, &bad);

	if (ret && !wr->next)
		ck_assert_ptr_eq(bad, wr);
	return ret;
}

static void build(struct ibv_qp_ex *x, const struct ibv_send_wr *wr)
{
	x->wr_id = wr->wr_id;
	x->wr_flags = wr->send_flags & ~IBV_SEND_INLINE;
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(x, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(x, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(x, wr->wr.atomic.rkey,
				      wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add,
				      wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(x, wr->wr.atomic.rkey,
					wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(x);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(x, wr->imm_data);
		break;
	default:
		ck_abort_msg("opcode %d", (int)wr->opcode);
	}
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(x, (void *)(uintptr_t)wr->sg_list->addr,
				       wr->sg_list->length);
	else
		ibv_wr_set_sge_list(x, wr->num_sge, wr->sg_list);
}

int post_list(struct node *n, struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *x;

	if (!n->o.built)
		return post_wr(n->qp, wr);
	x = ibv_qp_to_qp_ex(n->qp);
	ibv_wr_start(x);
	for (; wr; wr = wr->next)
		build(x, wr);
	return ibv_wr_complete(x);
}

int post_recv(struct node *n, uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = node_sge(n, off, len);
	struct ibv_recv_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad = NULL;
	int ret = ibv_post_recv(n->qp, &wr, &bad);

	if (ret)
		ck_assert_ptr_eq(bad, &wr);
	return ret;
}

/* ---------------------------------------------------------------- waiting */

void breathe(unsigned int *polls)
{
	if ((*polls)++ < 200)
		sched_yield();
	else
		usleep(*polls < 1000 ? 50 : 300);
}

struct ibv_wc wait_wc(struct ibv_cq *cq)
{
	double end = now_ms() + WAIT_MS;
	unsigned int polls = 0;
	struct ibv_wc wc;
	int n;

	memset(&wc, 0xee, sizeof(wc));
	do {
		n = ibv_poll_cq(cq, 1, &wc);
		ck_assert_int_ge(n, 0);
		if (n)
			return wc;
		breathe(&polls);
	} while (now_ms() < end);
	ck_abort_msg("no completion within %d ms", WAIT_MS);
	return wc;
}

struct ibv_wc expect(struct ibv_cq *cq, uint64_t wr_id,
		     enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(cq);

	ck_assert_msg(wc.status == status && wc.wr_id == wr_id,
		      "completion: WR %#llx, %s; expected: WR %#llx, %s",
		      (unsigned long long)wc.wr_id,
		      ibv_wc_status_str(wc.status), (unsigned long long)wr_id,
		      ibv_wc_status_str(status));
	return wc;
}

struct ibv_wc expect_ok(struct ibv_cq *cq, uint64_t wr_id,
			enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = expect(cq, wr_id, IBV_WC_SUCCESS);

	ck_assert_int_eq(wc.opcode, opcode);
	return wc;
}

void expect_none(struct ibv_cq *cq, int ms)
{
	double end = now_ms() + ms;
	unsigned int polls = 0;
	struct ibv_wc wc;

	do {
		ck_assert_msg(ibv_poll_cq(cq, 1, &wc) == 0,
			      "unexpected completion: WR %#llx, %s",
			      (unsigned long long)wc.wr_id,
			      ibv_wc_status_str(wc.status));
		breathe(&polls);
	} while (now_ms() < end);
}

bool fd_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && p.revents & POLLIN;
}

struct ibv_async_event wait_async(struct ibv_context *ctx, bool ack)
{
	struct ibv_async_event ev;

	ck_assert_msg(fd_readable(ctx->async_fd, WAIT_MS),
		      "no async event within %d ms", WAIT_MS);
	ck_ok(ibv_get_async_event(ctx, &ev));
	if (ack)
		ibv_ack_async_event(&ev);
	return ev;
}

void expect_async(struct ibv_context *ctx, enum ibv_event_type type,
		  void *element)
{
	struct ibv_async_event ev = wait_async(ctx, true);

	ck_assert_msg(ev.event_type == type, "event %s, expected %s",
		      ibv_event_type_str(ev.event_type),
		      ibv_event_type_str(type));
	if (element)
		ck_assert_ptr_eq(ev.element.qp, element);
}

void expect_no_async(struct ibv_context *ctx)
{
	ck_assert(!fd_readable(ctx->async_fd, QUIET_MS));
}

/* ---------------------------------------------------------------- system */

pid_t fork_peer(void)
{
	int fd, back = 0;
	pid_t pid;

	if (!getenv("URXE_TEST_PIDNS"))
		return fork();
	fd = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_msg(!unshare(CLONE_NEWPID), "no PID namespace: %s",
		      strerror(errno));
	pid = fork();
	/* until this the process cannot create threads */
	if (pid)
		back = setns(fd, CLONE_NEWPID);
	close(fd);
	ck_ok(back);
	return pid;
}

pid_t spawn(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork_peer();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn(arg));
	}
	return pid;
}

void leave_check(void)
{
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	DIR *dir = opendir("/proc/self/fd");
	char link[300];
	struct dirent *e;
	ssize_t n;

	ck_assert(null >= 0 && dir);
	while ((e = readdir(dir))) {
		n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = 0;
		if (strstr(link, "/check_"))
			dup2(null, atoi(e->d_name));
	}
	closedir(dir);
	close(null);
}

void allow_threads(bool yes)
{
	/* 1 << 50 exceeds the address space: pthread_create() fails */
	const size_t stack = yes ? 1 << 20 : (size_t)1 << 50;
	pthread_attr_t attr;

	ck_ok(pthread_attr_init(&attr));
	ck_ok(pthread_attr_setstacksize(&attr, stack));
	ck_ok(pthread_setattr_default_np(&attr));
	ck_ok(pthread_attr_destroy(&attr));
}

int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = -2; /* . and .. */

	ck_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

void limit_memlock(size_t bytes)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct cap[2];
	struct rlimit r;

	ck_ok(getrlimit(RLIMIT_MEMLOCK, &r));
	r.rlim_cur = bytes;
	ck_ok(setrlimit(RLIMIT_MEMLOCK, &r));
	ck_ok((int)syscall(SYS_capget, &head, cap));
	cap[0].effective &= ~(1u << CAP_IPC_LOCK);
	ck_ok((int)syscall(SYS_capset, &head, cap));
}

int reap_child(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void port_run(const char *word, const char *name, const char *setting)
{
	const char *urxe = getenv("URXE");
	pid_t pid;

	ck_assert_msg(urxe != NULL, "URXE is not set: run me with in-fabric");
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		execl(urxe, urxe, "port", word, name, setting, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(reap_child(pid), 0);
}

void urxe_port(const char *word, const char *name)
{
	port_run(word, name, NULL);
}

void urxe_port_set(const char *name, const char *setting)
{
	port_run("set", name, setting);
}

double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

void sleep_ms(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

#define TURNS 20
#define TURNS_MS 20000

void expect_within(double most, double (*timed)(int i), int i)
{
	const double end = now_ms() + TURNS_MS;
	double took, best = HUGE_VAL;
	int turn;

	for (turn = 0; turn < TURNS || now_ms() < end; turn++) {
		took = timed(i);
		if (took < most)
			return;
		if (took < best)
			best = took;
		sleep_ms(turn < TURNS ? turn : 1000);
	}
	ck_abort_msg("took %g ms at best, %g are allowed", best, most);
}

bool under_adversary(void)
{
	return getenv("URXE_ADVERSARY");
}

bool under_adoption(void)
{
	const char *value = getenv("URXE_ADOPT");

	return value && strcmp(value, "0") && can_adopt();
}

bool under_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#else
	return false;
#endif
}

/* Defined by the run-time of LeakSanitizer only. */
void __lsan_disable(void) __attribute__((weak));

void may_leak(void)
{
	if (__lsan_disable)
		__lsan_disable();
}

/* ---------------------------------------------------------------- suites */

Suite *suite(const char *name)
{
	return suite_create(name);
}

void add_case(Suite *s, const char *name, const TTest *test, int n)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, 5 * WAIT_MS / 1000);
	tcase_add_loop_test(tc, test, 0, n);
	suite_add_tcase(s, tc);
}

int run(Suite *s)
{
	if (!dlopen("liburxe-rdmav34.so", RTLD_NOW))
		fprintf(stderr, "%s\n", dlerror());
	return run_unloaded(s);
}

int run_unloaded(Suite *s)
{
	return run_cases(srunner_create(s));
}
