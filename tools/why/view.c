// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reading of the files of a fabric into a view (view.h). */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/commands.h"
#include "doctor/inspect.h"
#include "shared/bitmap.h"
#include "shared/cq_ring.h"
#include "shared/rq_ring.h"
#include "view.h"

/*
 * Append a zeroed element of @size bytes. Return NULL if there is no memory.
 */
static void *list_add(void **list, uint32_t *n, size_t size)
{
	char *more = realloc(*list, (*n + 1) * size);

	if (!more)
		return NULL;
	*list = more;
	return memset(more + size * (*n)++, 0, size);
}
#define LIST_ADD(v, list, count) \
	list_add((void **)&(v)->list, &(v)->count, sizeof(*(v)->list))

/* ---------------------------------------------------------- processes */

static char proc_state(int32_t pid)
{
	char path[40], line[512], state = '-', *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return state;
	line[fread(line, 1, sizeof(line) - 1, f)] = 0;
	fclose(f);
	end = strrchr(line, ')');
	if (end && end[1] == ' ' && end[2])
		state = end[2];
	return state == 'Z' || state == 'X' ? '-' : state;
}

/* Read its current name: execve() may have changed it. */
static void proc_comm(int32_t pid, char comm[16])
{
	char path[40];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, comm, 15);
	close(fd);
	comm[n > 0 ? n : 0] = 0;
	comm[strcspn(comm, "\n")] = 0;
}

struct view_process view_process(const struct view *v, int32_t pid,
				 uint64_t pidns, const char *comm)
{
	struct view_process p = { .pid = pid, .state = '?' };

	snprintf(p.comm, sizeof(p.comm), "%.15s", comm);
	if (pid <= 0 || (pidns && v->pidns && pidns != v->pidns))
		return p;
	p.state = proc_state(pid);
	if (p.state != '-')
		proc_comm(pid, p.comm);
	return p;
}

bool view_process_of(const struct view *v, uint32_t id,
		     struct view_process *out)
{
	const struct urxe_process *p =
		&v->dev->process[URXE_PROCESS_NUMBER(id)];

	if (!id || load_relaxed(&p->uses) != URXE_PROCESS_USES(id))
		return false;
	*out = view_process(v, load_relaxed(&p->pid), load_relaxed(&p->pidns),
			    p->comm);
	return true;
}

/* ---------------------------------------------------------- contexts */

/* The first members of struct urxe_arena. */
struct arena_head {
	char magic[16];
	uint32_t version, slot, gen;
	int32_t pid;
	uint64_t pidns;
};
static_assert(offsetof(struct arena_head, pidns) ==
		      offsetof(struct urxe_arena, pidns),
	      "as in struct urxe_arena");

static bool ctx_read(const struct view *v, struct view_ctx *c)
{
	struct urxe_kept_event kept[URXE_KEPT_EVENTS];
	struct arena_head h;
	uint32_t i;

	if (!copy_out(c->fd, 0, &h, sizeof(h)) ||
	    memcmp(h.magic, URXE_ARENA_MAGIC, sizeof(h.magic)) ||
	    h.version != urxe_layout_version || h.slot != c->slot ||
	    h.gen != c->gen ||
	    !copy_out(c->fd, offsetof(struct urxe_arena, kept), kept,
		      sizeof(kept)) ||
	    !copy_out(c->fd, offsetof(struct urxe_arena, failed), c->failed,
		      sizeof(c->failed)))
		return false;
	c->pidns = h.pidns;
	c->process = view_process(v, h.pid, h.pidns, v->dev->ctx[c->slot].comm);
	for (i = 0; i < URXE_KEPT_EVENTS; i++)
		c->kept += load_relaxed(&kept[i].word) & 1;
	return true;
}

static void ctx_open(struct view *v, int dirfd, uint32_t slot)
{
	struct view_ctx *c = LIST_ADD(v, ctx, ctxs);
	char name[32];

	if (!c)
		return;
	c->slot = slot;
	c->gen = load_relaxed(&v->dev->ctx[slot].gen);
	snprintf(name, sizeof(name), URXE_ARENA_NAME, slot, c->gen);
	c->fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (c->fd >= 0 && !ctx_read(v, c)) {
		close(c->fd);
		c->fd = -1;
	}
	c->alive = c->fd >= 0 && arena_fd_alive(c->fd);
	if (c->fd < 0)
		c->process.state = '?';
}

/*
 * The process of an object: that of its context, or another process that uses
 * the same context.
 */
static struct view_process ctx_process(const struct view *v,
				       const struct view_ctx *c, int32_t pid)
{
	return pid == c->process.pid ? c->process :
				       view_process(v, pid, c->pidns, "?");
}

static const struct view_ctx *ctx_find(const struct view *v, uint32_t slot,
				       uint32_t gen)
{
	uint32_t i;

	for (i = 0; i < v->ctxs; i++)
		if (v->ctx[i].slot == slot && v->ctx[i].gen == gen)
			return &v->ctx[i];
	return NULL;
}

/* ---------------------------------------------------------- queues */

/*
 * Whether the QP's peer is on another host: as modify_is_remote() in
 * provider/wire/wire.c decides. Only even GID indexes are compared: the next
 * one is the same GID with the other RoCE version.
 */
static bool qp_is_remote(const struct view *v, const struct urxe_qp_sh *sh)
{
	struct urxe_gid gid;
	uint32_t i;

	if (!load_relaxed(&sh->wire) ||
	    load_relaxed(&sh->roce) != URXE_ROCE_V2 ||
	    load_relaxed(&sh->type) == IBV_QPT_UD ||
	    URXE_CONN_STATE(load_relaxed(&sh->conn)) < IBV_QPS_RTR)
		return false;
	/* a fabric with a wire has one device */
	for (i = 0; i < URXE_GID_ROWS; i++)
		if (gid_row_get(&v->dev->hca[0].gid[i], &gid) &&
		    shared_gid_is(&sh->dgid, gid.raw))
			return false;
	return true;
}

static void qp_read_wire(const struct view *v, struct view_qp *q)
{
	const uint64_t at = offsetof(struct urxe_arena, wire) +
			    qpn_index(q->qpn) * sizeof(struct urxe_wire_qp) +
			    offsetof(struct urxe_wire_qp, inbox);

	q->is_remote = qp_is_remote(v, &q->sh) &&
		       copy_out(q->ctx->fd, at, &q->inbox, sizeof(q->inbox));
}

static void qps_read(struct view *v)
{
	const struct view_ctx *c;
	struct view_qp *q;
	struct urxe_qp_sh sh;
	uint64_t e;
	uint32_t i;

	for (i = 0; i < URXE_MAX_QP; i++) {
		e = load_relaxed(&v->dev->qp[i]);
		c = e ? ctx_find(v, URXE_DIR_CTX(e), URXE_DIR_GEN(e)) : NULL;
		if (!c || c->fd < 0 ||
		    !copy_out(c->fd,
			      offsetof(struct urxe_arena, qp) + i * sizeof(sh),
			      &sh, sizeof(sh)) ||
		    URXE_CONN_QPN(load_relaxed(&sh.conn)) != URXE_DIR_QPN(e) ||
		    !(q = LIST_ADD(v, qp, qps)))
			continue;
		v->qp_at[i] = (uint16_t)v->qps;
		q->ctx = c;
		q->qpn = URXE_DIR_QPN(e);
		memcpy(&q->sh, &sh, sizeof(sh));
		q->process = ctx_process(v, c, sh.pid);
		q->turn = load_relaxed(&v->dev->guard[i].requester.seq);
		q->inside = q->turn & 1;
		qp_read_wire(v, q);
	}
}

static bool cqe_is_claimed(const struct view_cq *q, uint64_t ring, uint32_t pos)
{
	uint64_t word = 0;

	copy_out(q->ctx->fd,
		 URXE_CQ_OFFSET(ring) + q->depth * sizeof(struct urxe_cqe) +
			 (pos & (q->depth - 1)) * sizeof(word),
		 &word, sizeof(word));
	return cq_ring_is_claimed(word, pos);
}

/*
 * Count the unpolled CQEs. They are contiguous from the poller's head to the
 * tail. The tail hint may be less than the tail, so claimed CQEs after it are
 * counted too.
 */
static void cq_measure(struct view_cq *q, uint64_t ring)
{
	uint32_t tail = load_relaxed(&q->sh.tail_hint[URXE_CQ_HINT(ring)]);
	uint32_t i;

	for (i = 0; i < q->depth && cqe_is_claimed(q, ring, tail); i++)
		tail++;
	q->head = load_relaxed(&q->sh.head[URXE_CQ_HINT(ring)]);
	q->unread = tail - q->head <= q->depth ? tail - q->head : 0;
	if (q->unread)
		copy_out(q->ctx->fd,
			 URXE_CQ_OFFSET(ring) +
				 (uint64_t)(q->head & (q->depth - 1)) *
					 sizeof(q->first),
			 &q->first, sizeof(q->first));
}

static void cq_read(struct view *v, const struct view_ctx *c, uint32_t index)
{
	struct urxe_cq_sh sh;
	struct view_cq *q;
	uint64_t ring;

	if (!copy_out(c->fd,
		      offsetof(struct urxe_arena, cq) + index * sizeof(sh), &sh,
		      sizeof(sh)) ||
	    !load_relaxed(&sh.live))
		return;
	ring = load_relaxed(&sh.ring);
	if (!cq_ring_fits(ring) || !(q = LIST_ADD(v, cq, cqs)))
		return;
	q->ctx = c;
	q->index = index;
	memcpy(&q->sh, &sh, sizeof(sh));
	q->process = ctx_process(v, c, sh.pid);
	q->depth = 1u << URXE_CQ_LOG(ring);
	cq_measure(q, ring);
}

static void srq_read(struct view *v, const struct view_ctx *c, uint32_t index)
{
	struct urxe_srq_sh sh;
	struct view_srq *s;

	if (!copy_out(c->fd,
		      offsetof(struct urxe_arena, srq) + index * sizeof(sh),
		      &sh, sizeof(sh)) ||
	    !load_relaxed(&sh.live) || !(s = LIST_ADD(v, srq, srqs)))
		return;
	s->ctx = c;
	s->index = index;
	memcpy(&s->sh, &sh, sizeof(sh));
}

static void queues_read(struct view *v, const struct view_ctx *c)
{
	uint64_t cq[URXE_MAX_CQ / 64], srq[URXE_MAX_SRQ / 64];
	uint32_t i;

	if (c->fd < 0 ||
	    !copy_out(c->fd, offsetof(struct urxe_arena, cq_map), cq,
		      sizeof(cq)) ||
	    !copy_out(c->fd, offsetof(struct urxe_arena, srq_map), srq,
		      sizeof(srq)))
		return;
	for (i = 1; i < URXE_MAX_CQ; i++)
		if (bitmap_test(cq, i))
			cq_read(v, c, i);
	for (i = 1; i < URXE_MAX_SRQ; i++)
		if (bitmap_test(srq, i))
			srq_read(v, c, i);
}

/* ---------------------------------------------------------- the rest */

static void dm_count(struct view *v)
{
	uint32_t i;

	for (i = 0; i < dm_slots(v->dev); i++) {
		if (!load_relaxed(&v->dev->dm[i].used))
			continue;
		if (v->dev->dm[i].share != URXE_DM_OF_MR)
			v->dm_bytes +=
				(uint64_t)v->dev->dm[i].pages * URXE_PAGE;
		v->dm_pieces++;
	}
}

static void fifos_read(struct view *v, int dirfd)
{
	int fd = openat(dirfd, "ev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct view_fifo one, *fifo;
	struct dirent *e;
	struct stat st;

	while (dir && (e = readdir(dir)))
		if (sscanf(e->d_name, "%u.%u.%u", &one.slot, &one.gen,
			   &one.number) == 3 &&
		    !fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    (fifo = LIST_ADD(v, fifo, fifos))) {
			*fifo = one;
			fifo->ino = st.st_ino;
		}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

static bool calls_any(const struct urxe_dev *dev)
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_CALLS; i++)
		if (load_relaxed(&dev->call[i].owner))
			return true;
	return false;
}

static void cm_read(struct view *v, int dirfd)
{
	int fd = openat(dirfd, "cm", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return; /* rdma_cm is not used in this fabric */
	v->cm.t = copy_space(sizeof(*v->cm.t));
	if (v->cm.t && !cm_copy_out(fd, &v->cm)) {
		copy_space_free(v->cm.t, sizeof(*v->cm.t));
		v->cm.t = NULL;
	}
	close(fd);
}

/* Read the files of the fabric. Return 0, or an errno value. */
static int view_read(struct view *v, int dirfd)
{
	int fd = openat(dirfd, "device", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint32_t i;
	bool read;

	if (fd < 0)
		return errno;
	read = copy_out(fd, 0, v->dev, sizeof(*v->dev));
	close(fd);
	if (!read || memcmp(v->dev->magic, URXE_DEV_MAGIC, 16) ||
	    v->dev->version != urxe_layout_version)
		return EPROTO;
	v->at = clock_now();
	for (i = 0; i < URXE_MAX_CTX; i++)
		if (load_relaxed(&v->dev->ctx[i].state) == URXE_CTX_LIVE)
			ctx_open(v, dirfd, i);
	qps_read(v);
	for (i = 0; i < v->ctxs; i++)
		queues_read(v, &v->ctx[i]);
	dm_count(v);
	if (calls_any(v->dev))
		fifos_read(v, dirfd);
	cm_read(v, dirfd);
	return 0;
}

struct view *view_take(const char *dir, bool quiet)
{
	struct view *v = calloc(1, sizeof(*v));
	char text[FABRICS_TEXT];
	int dirfd, err = ENOMEM;

	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dirfd < 0)
		err = errno;
	if (v && dirfd >= 0) {
		v->pidns = fabric_pidns();
		v->dev = copy_space(sizeof(*v->dev));
		if (v->dev)
			err = view_read(v, dirfd);
	}
	if (dirfd >= 0)
		close(dirfd);
	if (!err)
		return v;
	view_free(v);
	if (!quiet && err == ENOENT)
		fail(0, "%s", no_fabric_text(dir, text));
	else if (!quiet)
		fail(0, "fabric %s: %s", dir,
		     err == EPROTO ?
			     "created by another version of urxe, or damaged" :
			     strerror(err));
	return NULL;
}

void view_free(struct view *v)
{
	uint32_t i;

	if (!v)
		return;
	for (i = 0; i < v->ctxs; i++)
		if (v->ctx[i].fd >= 0)
			close(v->ctx[i].fd);
	free(v->ctx);
	free(v->qp);
	free(v->cq);
	free(v->srq);
	free(v->fifo);
	copy_space_free(v->cm.t, sizeof(*v->cm.t));
	copy_space_free(v->dev, sizeof(*v->dev));
	free(v);
}

/* ---------------------------------------------------------- finding */

const struct view_qp *view_qp(const struct view *v, uint32_t qpn)
{
	const uint32_t at = v->qp_at[qpn_index(qpn)];

	return at && v->qp[at - 1].qpn == qpn ? &v->qp[at - 1] : NULL;
}

void view_qp_on(const struct view *v, uint32_t qpn, char on[VIEW_ON])
{
	const struct view_qp *q = view_qp(v, qpn);
	char name[64];

	*on = '\0';
	if (!q || dev_hcas(v->dev) == 1)
		return;
	node_name(v->dev, hca_index(v->dev, view_hca(v, q)), name);
	snprintf(on, VIEW_ON, " at %s", name);
}

const struct view_cq *view_cq(const struct view *v, const struct view_ctx *c,
			      uint32_t index)
{
	uint32_t i;

	for (i = 0; i < v->cqs; i++)
		if (v->cq[i].ctx == c && v->cq[i].index == index)
			return &v->cq[i];
	return NULL;
}

uint32_t view_receives(const struct view *v, const struct view_qp *q)
{
	uint32_t i;

	if (!q->sh.srq)
		return load_relaxed(&q->sh.rq.ring) ? rq_posted(&q->sh.rq) : 0;
	for (i = 0; i < v->srqs; i++)
		if (v->srq[i].ctx == q->ctx && v->srq[i].index == q->sh.srq - 1)
			return rq_posted(&v->srq[i].sh.rq);
	return 0;
}
