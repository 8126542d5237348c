// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links: a connection with each other worker, and one with the worker itself.
 * If an error occurs, the end is closed and opened again with a new epoch,
 * and the other end follows (see struct door). Each end has one job at a time
 * on a link: a group of operations whose data is verified when it completes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soak.h"

#define RECVS 16
#define AREA 32768 /* the peer's WRITEs go here */
#define COUNTER AREA /* the peer's atomics */
#define WINDOW (AREA + 4096) /* the peer's WRITEs through a memory window */
#define WINDOW_BYTES 4096
#define RECV (64 * 1024)
#define TARGET (RECV + RECVS * MESSAGE_MAX)
#define SOURCE 0 /* source of SENDs and WRITEs */
#define BACK 32768 /* destination of READs */
#define SCRATCH 65536
#define ACCESS                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |          \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |         \
	 IBV_ACCESS_MW_BIND)

enum state { CLOSED, OPEN, JOINED };
enum job { NONE, WRITE_READ, SEND, COUNT, MANY_WRITES, BIND, WRITE_WINDOW, JOBS };
enum mem { PRIVATE, FILE_SHARED, DEVICE, MEMS };

static struct link {
	enum state state;
	enum kind kind;
	bool bad; /* a WR failed: reopen the link */
	uint32_t epoch;
	struct ibv_qp *send, *recv; /* the same QP, except for XRC */
	struct ibv_mr *target_mr, *scratch_mr;
	struct ibv_dm *dm;
	char *target; /* NULL: device memory */
	int fd; /* file descriptor + 1; 0: none */
	char *scratch;
	struct door other; /* copy of the peer's door */
	enum job job;
	uint32_t seed, len, off; /* of the job */
	uint32_t sent, received; /* messages */
	uint64_t counted;
	/* a window of this end that the peer may write to */
	struct ibv_mw *mw;
	uint32_t asked_seed;
	/* M_WINDOW message of the peer that is not answered yet */
	struct message ask;
	/*
	 * time of the last progress, and sum of the disturbances at that time
	 */
	uint64_t since;
	uint32_t disturbed;
} links[SLOTS];

static struct door *my_door(uint32_t i)
{
	return &me->door[i];
}

static struct door *other_door(uint32_t i)
{
	return &sh->slot[i].door[my_slot];
}

static bool leads(uint32_t i)
{
	return my_slot < i;
}

/*
 * Return whether this is the link with the worker itself.  Its QP is
 * connected to itself.
 */
static bool is_loop(uint32_t i)
{
	return i == my_slot;
}

/* -------------------------------------------------------------- memory */

/*
 * Return the PD.  Links with an SRQ, which many senders use, have their own.
 */
static struct ibv_pd *link_pd(const struct link *l)
{
	return l->kind == RC_SRQ || l->kind == XRC ? w.many_pd : w.pd;
}

static bool target_open(struct link *l)
{
	struct ibv_alloc_dm_attr dm = { .length = TARGET };
	int fd = -1;

	if (rnd(MEMS) == DEVICE) {
		if (!made("ibv_alloc_dm", l->dm = ibv_alloc_dm(w.ctx, &dm)))
			return false;
		return made("ibv_reg_dm_mr",
			    l->target_mr = ibv_reg_dm_mr(
				    link_pd(l), l->dm, 0, TARGET,
				    ACCESS | IBV_ACCESS_ZERO_BASED));
	}
	if (rnd(MEMS) == FILE_SHARED) {
		fd = memfd_create("soak", MFD_CLOEXEC);
		l->fd = fd + 1;
		if (!made("memfd_create", fd >= 0 && !ftruncate(fd, TARGET)))
			return false;
	}
	l->target = mmap(NULL, TARGET, PROT_READ | PROT_WRITE,
			 fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd,
			 0);
	if (!made("mmap", l->target != MAP_FAILED)) {
		l->target = NULL;
		return false;
	}
	return made("ibv_reg_mr",
		    l->target_mr =
			    ibv_reg_mr(link_pd(l), l->target, TARGET, ACCESS));
}

static void target_get(struct link *l, uint32_t off, void *to, uint32_t len)
{
	if (l->target)
		memcpy(to, l->target + off, len);
	else /* in multiples of 4 bytes */
		must("ibv_memcpy_from_dm",
		     !ibv_memcpy_from_dm(to, l->dm, off, (len + 3) / 4 * 4));
}

static uint64_t target_base(const struct link *l)
{
	return (uintptr_t)l->target;
}

/* ----------------------------------------------------------- open, close */

/*
 * Close the link.  If the peer is using it, the verbs calls wait for the
 * peer.
 */
static void link_close(uint32_t i)
{
	struct link *l = &links[i];

	my_door(i)->epoch = 0;
	me->waits_for = l->kind == RC_SRQ || l->kind == XRC ? WAITS_FOR_ALL :
							      i + 1;
	if (l->recv && l->recv != l->send)
		must("ibv_destroy_qp", !ibv_destroy_qp(l->recv));
	if (l->send)
		must("ibv_destroy_qp", !ibv_destroy_qp(l->send));
	if (l->mw)
		must("ibv_dealloc_mw", !ibv_dealloc_mw(l->mw));
	if (l->target_mr)
		must("ibv_dereg_mr", !ibv_dereg_mr(l->target_mr));
	if (l->scratch_mr)
		must("ibv_dereg_mr", !ibv_dereg_mr(l->scratch_mr));
	if (l->dm)
		must("ibv_free_dm", !ibv_free_dm(l->dm));
	if (l->target)
		munmap(l->target, TARGET);
	if (l->fd)
		close(l->fd - 1);
	free(l->scratch);
	*l = (struct link){ 0 };
	me->waits_for = 0;
}

static bool qps_open(struct link *l)
{
	struct ibv_qp_init_attr_ex a = {
		.send_cq = w.cq,
		.recv_cq = w.cq,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = RECVS,
			 .max_send_sge = 4,
			 .max_recv_sge = 1,
			 .max_inline_data = 64 },
		.qp_type = l->kind == UC ? IBV_QPT_UC : IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = link_pd(l),
	};

	if (l->kind == RC_SRQ)
		a.srq = w.srq;
	if (l->kind == XRC) {
		a.qp_type = IBV_QPT_XRC_SEND;
		a.recv_cq = NULL;
		a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
	}
	if (!made("ibv_create_qp", l->send = ibv_create_qp_ex(w.ctx, &a)))
		return false;
	l->recv = l->send;
	if (l->kind != XRC)
		return true;
	a = (struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_XRC_RECV,
					  .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					  .xrcd = w.xrcd };
	l->recv = ibv_create_qp_ex(w.ctx, &a);
	return made("ibv_create_qp", l->recv);
}

static void to_init(struct link *l, struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC };

	if (l->kind == UC)
		a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	must("to INIT",
	     !ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void post_recv(struct link *l, uint32_t n)
{
	struct ibv_sge sge = { .addr = target_base(l) + RECV + n * MESSAGE_MAX,
			       .length = MESSAGE_MAX,
			       .lkey = l->target_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	must("ibv_post_recv", !ibv_post_recv(l->recv, &wr, &bad));
}

static void link_publish(uint32_t i)
{
	struct link *l = &links[i];
	struct door *d = my_door(i);

	d->kind = l->kind;
	d->send_qpn = l->send->qp_num;
	d->recv_qpn = l->recv->qp_num;
	if (l->kind == XRC)
		must("ibv_get_srq_num",
		     !ibv_get_srq_num(w.xsrq, &d->srqn));
	d->rkey = l->target_mr->rkey;
	d->base = target_base(l);
	d->ready = 0;
	l->epoch = ++me->epochs;
	d->epoch = l->epoch;
}

static bool link_try_open(struct link *l)
{
	l->scratch = calloc(1, SCRATCH);
	return made("calloc", l->scratch) &&
	       made("ibv_reg_mr",
		    l->scratch_mr = ibv_reg_mr(link_pd(l), l->scratch, SCRATCH,
					       ACCESS)) &&
	       target_open(l) && qps_open(l);
}

static void link_open(uint32_t i, enum kind kind, uint32_t joined)
{
	struct link *l = &links[i];
	uint32_t n;

	l->kind = kind;
	if (!link_try_open(l)) {
		link_close(i);
		return;
	}
	to_init(l, l->send);
	if (l->recv != l->send)
		to_init(l, l->recv);
	for (n = 0; n < RECVS && (kind == RC || kind == UC); n++)
		post_recv(l, n);
	l->state = OPEN;
	l->since = now_ms();
	my_door(i)->joined = joined;
	link_publish(i);
}

/*
 * Copy a door.  Return false if it is closed or changed during the copy.  The
 * epoch is read before and after the copy, as in a seqlock.
 */
static bool door_read(const struct door *d, struct door *out)
{
	uint32_t epoch = d->epoch;

	memcpy(out, d, sizeof(*out));
	atomic_thread_fence(memory_order_acquire);
	return epoch && epoch == d->epoch;
}

static void to_rtr(struct link *l, struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = w.gid, .hop_limit = 1 } },
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (l->kind != UC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	must("to RTR", !ibv_modify_qp(qp, &a, mask));
}

static void to_rts(struct link *l, struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 16 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (l->kind != UC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	must("to RTS", !ibv_modify_qp(qp, &a, mask));
}

static void link_join(uint32_t i)
{
	struct link *l = &links[i];

	/* XRC: the send QP is connected to the peer's target QP */
	to_rtr(l, l->send, l->other.recv_qpn);
	to_rts(l, l->send);
	if (l->recv != l->send) {
		to_rtr(l, l->recv, l->other.send_qpn);
		to_rts(l, l->recv);
	}
	l->state = JOINED;
	my_door(i)->ready = l->other.epoch;
}

/* ---------------------------------------------------------------- jobs */

static void job_post(uint32_t i, struct ibv_send_wr *wr)
{
	struct link *l = &links[i];
	struct ibv_send_wr *p;

	for (p = wr; p; p = p->next) {
		p->wr_id = i;
		if (l->kind == XRC)
			p->qp_type.xrc.remote_srqn = l->other.srqn;
		if (!p->next)
			p->send_flags |= IBV_SEND_SIGNALED;
	}
	post_send(l->send, wr);
}

static struct ibv_sge scratch_sge(const struct link *l, uint32_t off,
				  uint32_t len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)l->scratch + off,
				 .length = len,
				 .lkey = l->scratch_mr->lkey };
}

static void start_write(uint32_t i, struct link *l)
{
	uint32_t cut;
	struct ibv_sge from[2], to;
	struct ibv_send_wr read = { .sg_list = &to,
				    .num_sge = 1,
				    .opcode = IBV_WR_RDMA_READ };
	struct ibv_send_wr write = { .next = &read,
				     .sg_list = from,
				     .opcode = IBV_WR_RDMA_WRITE };

	l->len = 1 + rnd(rnd(2) ? 64 : AREA / 2);
	l->off = rnd(AREA - l->len);
	fill(l->scratch + SOURCE, l->len, l->seed);
	memset(l->scratch + BACK, 0xee, l->len);
	cut = 1 + rnd(l->len);
	from[0] = scratch_sge(l, SOURCE, cut);
	from[1] = scratch_sge(l, SOURCE + cut, l->len - cut);
	write.num_sge = cut < l->len ? 2 : 1;
	to = scratch_sge(l, BACK, l->len);
	if (l->len <= 64 && rnd(2))
		write.send_flags = IBV_SEND_INLINE;
	write.wr.rdma.remote_addr = l->other.base + l->off;
	write.wr.rdma.rkey = l->other.rkey;
	read.wr.rdma = write.wr.rdma;
	if (l->kind == UC)
		write.next = NULL;
	job_post(i, &write);
}

/* Send a message.  The message is assembled in the scratch buffer. */
static void send_message(uint32_t i, struct link *l, const struct message *head,
			 uint32_t invalidate)
{
	struct ibv_sge sge = scratch_sge(l, SOURCE,
					 sizeof(*head) + head->len);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	struct message *m = (struct message *)(void *)(l->scratch + SOURCE);

	*m = *head;
	m->from = my_slot;
	m->starts = me->starts;
	m->epoch = l->epoch;
	m->seq = l->sent++;
	m->seed = l->seed;
	fill(m + 1, m->len, m->seed);
	if (invalidate) {
		wr.opcode = IBV_WR_SEND_WITH_INV;
		wr.invalidate_rkey = invalidate;
	} else if (rnd(4) == 0) {
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = m->seq;
	}
	if (sge.length <= 64)
		wr.send_flags = IBV_SEND_INLINE;
	job_post(i, &wr);
}

static void start_send(uint32_t i, struct link *l)
{
	struct message m = { .what = M_DATA };

	m.len = rnd(rnd(2) ? 40 : MESSAGE_MAX - (uint32_t)sizeof(m));
	send_message(i, l, &m, 0);
}

static void start_count(uint32_t i, struct link *l)
{
	struct ibv_sge sge = scratch_sge(l, BACK, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };

	wr.wr.atomic.remote_addr = l->other.base + COUNTER;
	wr.wr.atomic.rkey = l->other.rkey;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.compare_add = 1;
	if (rnd(2)) {
		wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.compare_add = l->counted;
		wr.wr.atomic.swap = l->counted + 1;
	}
	job_post(i, &wr);
}

#define MANY 16
static void start_many(uint32_t i, struct link *l)
{
	struct ibv_sge from[MANY], to;
	struct ibv_send_wr wr[MANY + 1];
	uint32_t n;

	l->len = MANY * 64;
	l->off = rnd(AREA - l->len) / 8 * 8;
	fill(l->scratch + SOURCE, l->len, l->seed);
	memset(wr, 0, sizeof(wr));
	for (n = 0; n < MANY; n++) {
		from[n] = scratch_sge(l, SOURCE + n * 64, 64);
		wr[n].next = &wr[n + 1];
		wr[n].sg_list = &from[n];
		wr[n].num_sge = 1;
		wr[n].opcode = IBV_WR_RDMA_WRITE;
		wr[n].wr.rdma.remote_addr = l->other.base + l->off + n * 64;
		wr[n].wr.rdma.rkey = l->other.rkey;
	}
	to = scratch_sge(l, BACK, l->len);
	wr[n].sg_list = &to;
	wr[n].num_sge = 1;
	wr[n].opcode = IBV_WR_RDMA_READ;
	wr[n].wr.rdma = wr[0].wr.rdma;
	if (l->kind == UC)
		wr[n - 1].next = NULL;
	job_post(i, wr);
}

/*
 * Bind a window for the peer, and send a message with its address and rkey.
 */
static void start_bind(uint32_t i, struct link *l)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };
	struct message m = { .what = M_WINDOW, .len = 8 };

	if (!made("ibv_alloc_mw",
		  l->mw = ibv_alloc_mw(link_pd(l), IBV_MW_TYPE_2))) {
		l->job = NONE;
		return;
	}
	wr.bind_mw.mw = l->mw;
	wr.bind_mw.rkey = m.window = ibv_inc_rkey(l->mw->rkey);
	wr.bind_mw.bind_info.mr = l->target_mr;
	wr.bind_mw.bind_info.addr = target_base(l) + WINDOW;
	wr.bind_mw.bind_info.length = WINDOW_BYTES;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	job_post(i, &wr);
	l->mw->rkey = m.window;
	m.addr = target_base(l) + WINDOW;
	send_message(i, l, &m, 0);
}

/* Write into the peer's window, and then invalidate it with a SEND. */
static void start_write_window(uint32_t i, struct link *l)
{
	struct ibv_sge sge = scratch_sge(l, BACK, WINDOW_BYTES);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE };
	struct message m = { .what = M_WRITTEN, .len = 4 };

	fill(l->scratch + BACK, WINDOW_BYTES, l->seed);
	wr.wr.rdma.remote_addr = l->ask.addr;
	wr.wr.rdma.rkey = l->ask.window;
	job_post(i, &wr);
	m.window = l->seed;
	send_message(i, l, &m, l->ask.window);
	l->ask.window = 0;
}

static void job_start(uint32_t i)
{
	static void (*const start[JOBS])(uint32_t i, struct link *l) = {
		[WRITE_READ] = start_write, [SEND] = start_send,
		[COUNT] = start_count,	    [MANY_WRITES] = start_many,
		[BIND] = start_bind,	    [WRITE_WINDOW] = start_write_window,
	};
	struct link *l = &links[i];

	l->seed = rnd(UINT32_MAX);
	l->job = 1 + rnd(JOBS - 2);
	if (l->kind == UC && l->job > SEND)
		l->job = MANY_WRITES;
	/* a window is bound on a QP that both sends and receives */
	if (l->job == BIND && (l->kind == XRC || l->mw))
		l->job = SEND;
	if (l->ask.window)
		l->job = WRITE_WINDOW;
	start[l->job](i, l);
}

static void job_check(struct link *l)
{
	uint64_t was;

	switch (l->job) {
	case WRITE_READ:
	case MANY_WRITES:
		if (l->kind != UC &&
		    !filled(l->scratch + BACK, l->len, l->seed))
			broken("%s: what was written is not what is read",
			       kind_name[l->kind]);
		break;
	case COUNT:
		memcpy(&was, l->scratch + BACK, 8);
		if (was != l->counted)
			broken("%s: the counter was %llu instead of %llu",
			       kind_name[l->kind], (unsigned long long)was,
			       (unsigned long long)l->counted);
		l->counted++;
		break;
	default:
		break;
	}
}

static void job_done(uint32_t i)
{
	struct link *l = &links[i];

	job_check(l);
	l->job = NONE;
	l->since = now_ms();
	me->jobs[l->kind]++;
}

/* ------------------------------------------------------------- receiving */

static void window_written(struct link *l, const struct message *m,
			   const struct ibv_wc *wc)
{
	char bytes[WINDOW_BYTES];

	if (!l->mw)
		broken("a write to a window that does not exist");
	if (!(wc->wc_flags & IBV_WC_WITH_INV) ||
	    wc->invalidated_rkey != l->mw->rkey)
		broken("the window was not invalidated");
	target_get(l, WINDOW, bytes, WINDOW_BYTES);
	if (!filled(bytes, WINDOW_BYTES, m->window))
		broken("the window has other bytes");
	me->waits_for = WAITS_FOR_ALL;
	must("ibv_dealloc_mw", !ibv_dealloc_mw(l->mw));
	me->waits_for = 0;
	l->mw = NULL;
}

static void link_receive(uint32_t i, const struct ibv_wc *wc, const char *bytes)
{
	struct link *l = &links[i];
	struct message m;

	memcpy(&m, bytes, sizeof(m));
	if (wc->byte_len != sizeof(m) + m.len || m.from != i ||
	    !filled(bytes + sizeof(m), m.len, m.seed))
		broken("%s: a message of %u bytes, %u in it, from %u instead of %u",
		       kind_name[l->kind], wc->byte_len, m.len, m.from, i);
	if (m.epoch != l->other.epoch)
		broken("%s: a message of epoch %u instead of %u",
		       kind_name[l->kind], m.epoch, l->other.epoch);
	if (l->kind == UC ? m.seq < l->received : m.seq != l->received)
		broken("%s: message %u instead of %u", kind_name[l->kind],
		       m.seq, l->received);
	l->received = m.seq + 1;
	if (wc->wc_flags & IBV_WC_WITH_IMM && wc->imm_data != m.seq)
		broken("the immediate value is another one");
	if (m.what == M_WINDOW)
		l->ask = m;
	if (m.what == M_WRITTEN)
		window_written(l, &m, wc);
}

static int link_of(uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < sh->n; i++)
		if (links[i].send && (links[i].send->qp_num == qpn ||
				      links[i].recv->qp_num == qpn))
			return (int)i;
	return -1;
}

bool link_message(const struct ibv_wc *wc, const char *bytes)
{
	int i = link_of(wc->qp_num);

	if (i >= 0)
		link_receive((uint32_t)i, wc, bytes);
	return i >= 0;
}

void links_got(const struct ibv_wc *wc)
{
	char bytes[MESSAGE_MAX];
	int i = link_of(wc->qp_num);
	struct link *l;

	if (i < 0)
		broken("a completion of QP 0x%x, which is not there",
		       wc->qp_num);
	l = &links[i];
	if (wc->status != IBV_WC_SUCCESS) {
		l->bad = true;
		return;
	}
	if (!(wc->opcode & IBV_WC_RECV)) {
		/* the job has a second WR: the message */
		if (wc->opcode == IBV_WC_BIND_MW ||
		    (l->job == WRITE_WINDOW && wc->opcode == IBV_WC_RDMA_WRITE))
			return;
		job_done((uint32_t)i);
		return;
	}
	target_get(l, RECV + (uint32_t)wc->wr_id * MESSAGE_MAX, bytes,
		   wc->byte_len);
	link_receive((uint32_t)i, wc, bytes);
	if (!l->bad)
		post_recv(l, (uint32_t)wc->wr_id);
}

/* ------------------------------------------------------------------ turns */

/*
 * Fail if no job has completed for LIMIT_MS although neither end was
 * disturbed in that time.
 */
static void link_watch(uint32_t i)
{
	struct link *l = &links[i];
	uint32_t disturbed = me->disturbed + sh->slot[i].disturbed +
			     me->starved + sh->slot[i].starved;
	uint64_t now = now_ms();

	if (disturbed != l->disturbed) {
		l->disturbed = disturbed;
		l->since = now;
	}
	if (l->state == JOINED && now - l->since > LIMIT_MS)
		broken("%s: job %d to slot %u takes more than %d ms",
		       kind_name[l->kind], (int)l->job, i, LIMIT_MS);
}

static void link_lead(uint32_t i)
{
	struct link *l = &links[i];

	if (l->state == CLOSED) {
		link_open(i, rnd(KINDS), 0);
		return;
	}
	if (l->state == OPEN && door_read(other_door(i), &l->other) &&
	    (l->other.joined == l->epoch || is_loop(i)))
		link_join(i);
	else if (l->state == JOINED && other_door(i)->epoch != l->other.epoch)
		l->bad = true;
}

static void link_follow(uint32_t i)
{
	struct link *l = &links[i];
	struct door d;

	if (l->state != CLOSED) {
		if (other_door(i)->epoch != l->other.epoch)
			l->bad = true;
		return;
	}
	if (!door_read(other_door(i), &d) || d.kind >= KINDS)
		return;
	link_open(i, d.kind, d.epoch);
	if (l->state != OPEN)
		return;
	l->other = d;
	link_join(i);
}

static void link_step(uint32_t i)
{
	struct link *l = &links[i];

	if (leads(i) || is_loop(i))
		link_lead(i);
	else
		link_follow(i);
	if (l->bad || (l->state == JOINED && rnd(5000) == 0)) {
		me->broken += l->bad;
		link_close(i);
		return;
	}
	if (l->state != JOINED || l->job)
		return;
	if (other_door(i)->ready == l->epoch)
		job_start(i);
	else
		l->since = now_ms();
}

void links_step(void)
{
	uint32_t i;

	for (i = 0; i < sh->n; i++) {
		link_watch(i);
		link_step(i);
	}
}

void links_close(void)
{
	uint32_t i;

	for (i = 0; i < sh->n; i++)
		link_close(i);
}
