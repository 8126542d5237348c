// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Dispatch of commands: a write to an rdma_cm descriptor is parsed, checked
 * against the table of commands, and run with the connection manager's tables
 * locked.  CREATE_ID and DESTROY_ID are implemented here.
 *
 * Any thread of the application calls ucma_write(), through the wrapper of
 * write(2).  The service thread (watch.c), or a thread in GET_EVENT if there
 * is none, calls ucma_tick().
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "command.h"

#define HINTS 1024

_Atomic int ucma_used;

static _Atomic(struct cm_table *) table;
/* cache: fd % HINTS to the index + 1 of its channel; may be stale */
static _Atomic uint32_t hint[HINTS];

/* Initialize @cm and map the tables, once per process.  0 or -errno. */
static int ucma_begin(struct cm *cm)
{
	struct cm_table *none = NULL;
	int ret;

	*cm = (struct cm){ .f = shim_fabric(), .t = load_acquire(&table) };
	if (!cm->f)
		return -ENODEV;
	ucma_install_delays(cm);
	ucma_trace_messages(cm);
	if (cm->t)
		return 0;
	ret = cm_map(cm->f, &cm->t);
	/* a thread that loses this race wastes its mapping */
	if (!ret && !cas_acq_rel(&table, &none, cm->t))
		cm->t = none;
	return ret;
}

int ucma_open(int flags)
{
	struct cm cm;
	int fd, ret;

	ret = ucma_begin(&cm);
	if (ret)
		return ret;
	store_relaxed(&ucma_used, getpid());
	ret = cm_lock(&cm);
	if (ret)
		return ret;
	fd = cm_chan_open(&cm);
	cm_settle(&cm);
	cm_unlock(&cm);
	if (fd >= 0 && flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	return fd;
}

/* Time until the next tick if the lock is held by a stopped process */
#define RETRY_NS 100000000

uint32_t ucma_timers(void)
{
	struct cm_table *t = load_acquire(&table);

	return t ? event_count_read(&t->timers) : 0;
}

void ucma_sleep(uint32_t timers, uint64_t ns)
{
	/* not NULL: the service thread is started after a command */
	event_count_wait(&load_acquire(&table)->timers, timers, ns);
}

uint64_t ucma_tick(void)
{
	static _Atomic uint32_t next;
	uint32_t at = load_relaxed(&next);
	uint64_t sleep;
	struct cm cm;

	if (ucma_begin(&cm))
		return 0;
	if (cm_lock(&cm))
		return RETRY_NS;
	sleep = cm_tick(&cm, getpid(), &at);
	cm_unlock(&cm);
	store_relaxed(&next, at);
	return sleep;
}

/* Time for the lock of the tables at the end of the process */
#define LEAVE_NS 500000000ull

void ucma_sweep(void)
{
	struct cm cm;

	if (ucma_begin(&cm) || cm_lock_within(&cm, LEAVE_NS))
		return;
	cm_chan_sweep(&cm, cm_chans(&cm));
	cm_settle(&cm);
	cm_unlock(&cm);
}

struct cm_chan *ucma_chan(struct ucma *u, int fd)
{
	_Atomic uint32_t *h = &hint[(unsigned int)fd % HINTS];
	struct cm_chan *c;
	struct stat st;

	if (fstat(fd, &st) || st.st_mode != CM_FIFO_MODE)
		return NULL;
	c = cm_chan_find(&u->cm, st.st_ino, load_relaxed(h));
	if (c)
		store_relaxed(h, cm_chan_ref(&u->cm, c));
	return c;
}

struct cm_chan *ucma_own_chan(struct ucma *u, int *err)
{
	struct cm_chan *c = ucma_chan(u, u->fd);
	struct stat st;

	if (c && c->ino == u->ino)
		return c;
	*err = -ENODEV;
	if (u->fd >= 0 && !fstat(u->fd, &st) && st.st_ino == u->ino)
		return NULL;
	/* closed by another thread; other descriptors may be open */
	u->fd = -1;
	*err = -EBADF;
	c = cm_chan_find(&u->cm, u->ino, 0);
	return c && cm_chan_alive(&u->cm, c) ? c : NULL;
}

struct cm_id *ucma_id(struct ucma *u, uint32_t number, int *err)
{
	struct cm_id *id = cm_id_at(&u->cm, number + 1);

	*err = id ? -EINVAL : -ENOENT;
	return id && id->chan == cm_chan_ref(&u->cm, u->c) ? id : NULL;
}

struct cm_id *ucma_id_dev(struct ucma *u, uint32_t number, int *err)
{
	struct cm_id *id = ucma_id(u, number, err);

	if (id && !(id->flags & CM_F_DEVICE)) {
		*err = -EINVAL;
		return NULL;
	}
	return id;
}

int ucma_put(uint64_t response, const void *from, size_t len)
{
	if (!response)
		return -EFAULT;
	memcpy((void *)(uintptr_t)response, from, len);
	return 0;
}

static int ucma_qp_type(const struct rdma_ucm_create_id *cmd)
{
	switch (cmd->ps) {
	case RDMA_PS_TCP:
		return CM_QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return CM_QPT_UD;
	case RDMA_PS_IB:
		return cmd->qp_type;
	default:
		return -EINVAL;
	}
}

static int ucma_create_id(struct ucma *u)
{
	const struct rdma_ucm_create_id *cmd = u->cmd;
	const int type = ucma_qp_type(cmd);
	struct rdma_ucm_create_id_resp resp;
	struct cm_id *id;
	int ret;

	if (type < 0)
		return type;
	id = cm_id_new(&u->cm, u->c);
	if (!id) { /* reclaim ids of dead processes */
		cm_chan_sweep(&u->cm, CM_MAX_CHAN);
		id = cm_id_new(&u->cm, u->c);
	}
	if (!id)
		return -ENOMEM;
	id->uid = cmd->uid;
	id->ps = cmd->ps;
	id->qp_type = (uint8_t)type;
	resp.id = cm_id_ref(&u->cm, id) - 1;
	ret = ucma_put(cmd->response, &resp, sizeof(resp));
	if (ret)
		cm_id_free(&u->cm, id);
	return ret;
}

static int ucma_destroy_id(struct ucma *u)
{
	const struct rdma_ucm_destroy_id *cmd = u->cmd;
	const struct rdma_ucm_destroy_id_resp resp = {
		.events_reported = u->id->events_reported
	};

	cm_id_destroy(&u->cm, u->id, u->fd);
	return ucma_put(cmd->response, &resp, sizeof(resp));
}

#define IN(type, end) .in = offsetof(struct rdma_ucm_##type, end)
#define OUT(type) .out = sizeof(struct rdma_ucm_##type)
#define OUT_OLD(type, end) .out = offsetof(struct rdma_ucm_##type, end)
#define ID(type) .id = ucma_id, .at = offsetof(struct rdma_ucm_##type, id)
#define DEV(type) .id = ucma_id_dev, .at = offsetof(struct rdma_ucm_##type, id)

/* Table of commands, and what is checked before a command runs. */
static const struct command {
	int (*run)(struct ucma *u);
	/*
	 * Minimum sizes in bytes of the parameters (-EINVAL) and of the
	 * response buffer (-ENOSPC), as in the oldest librdmacm that is
	 * supported.
	 */
	uint16_t in, out;
	/* if not NULL: look up u->id, whose number is at offset `at` */
	struct cm_id *(*id)(struct ucma *u, uint32_t number, int *err);
	uint16_t at;
	bool gids; /* the GID table must be current */
} commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { ucma_create_id, OUT(create_id_resp) },
	[RDMA_USER_CM_CMD_DESTROY_ID] = { ucma_destroy_id, OUT(destroy_id_resp),
					  ID(destroy_id) },
	[RDMA_USER_CM_CMD_BIND_IP] = { ucma_bind_ip, .gids = true },
	[RDMA_USER_CM_CMD_RESOLVE_IP] = { ucma_resolve_ip, .gids = true },
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = { ucma_resolve_route,
					     DEV(resolve_route) },
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = { ucma_query_route, ID(query),
					   OUT_OLD(query_route_resp,
						   ibdev_index) },
	[RDMA_USER_CM_CMD_CONNECT] = { ucma_connect, IN(connect, ece) },
	[RDMA_USER_CM_CMD_LISTEN] = { ucma_listen, ID(listen) },
	[RDMA_USER_CM_CMD_ACCEPT] = { ucma_accept, IN(accept, ece),
				      DEV(accept) },
	[RDMA_USER_CM_CMD_REJECT] = { .run = ucma_reject },
	[RDMA_USER_CM_CMD_DISCONNECT] = { ucma_disconnect, DEV(disconnect) },
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = { .run = ucma_init_qp_attr },
	[RDMA_USER_CM_CMD_GET_EVENT] = { ucma_get_event,
					 OUT_OLD(event_resp, reserved) },
	[RDMA_USER_CM_CMD_SET_OPTION] = { ucma_set_option, ID(set_option) },
	[RDMA_USER_CM_CMD_NOTIFY] = { ucma_notify, DEV(notify) },
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = { ucma_join_ip_mcast,
					     OUT(create_id_resp) },
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = { ucma_leave_mcast,
					   OUT(destroy_id_resp) },
	[RDMA_USER_CM_CMD_MIGRATE_ID] = { ucma_migrate_id, OUT(migrate_resp) },
	[RDMA_USER_CM_CMD_QUERY] = { ucma_query, ID(query) },
	[RDMA_USER_CM_CMD_BIND] = { ucma_bind, .gids = true },
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = { ucma_resolve_addr, .gids = true },
	[RDMA_USER_CM_CMD_JOIN_MCAST] = { ucma_join_mcast,
					  OUT(create_id_resp) },
	[UCMA_CMD_RESOLVE_IB_SERVICE] = { ucma_resolve_ib_service,
					  .id = ucma_id },
	[UCMA_CMD_WRITE_CM_EVENT] = { .run = ucma_write_cm_event },
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static int ucma_run_locked(struct ucma *u, const struct command *c)
{
	const struct fault_rule *fault;
	uint32_t number;
	int err = 0;

	if (u->in_len < c->in)
		return -EINVAL;
	if (u->out_len < c->out)
		return -ENOSPC;
	if (c->id) {
		memcpy(&number, (char *)u->cmd + c->at, sizeof(number));
		u->id = c->id(u, number, &err);
		if (!u->id)
			return err;
	}
	fault = ucma_fault(u, (size_t)(c - commands));
	return fault ? ucma_run_faulty(u, fault, c->run) : c->run(u);
}

static int ucma_run(struct ucma *u, const struct command *c)
{
	int ret;

	ret = ucma_begin(&u->cm);
	if (ret)
		return ret;
	if (c->gids)
		shim_refresh_gids(u->cm.f);
	ret = cm_lock(&u->cm);
	if (ret)
		return ret;
	u->c = ucma_own_chan(u, &ret);
	if (u->c) {
		/* events that GET_EVENT raises are of earlier commands */
		if (c->run != ucma_get_event)
			u->cm.cause = ucma_cause();
		/* after fork, the child needs its own service thread */
		u->cm.watch = u->c->pid != getpid();
		u->c->pid = getpid();
		u->c->delays_events = u->cm.delay_of && !ucma_unwatched();
		u->cm.watch |= u->cm.delay_of && !ucma_watching();
		ret = ucma_run_locked(u, c);
	}
	cm_settle(&u->cm);
	if (u->cm.raised)
		ucma_raised(u);
	cm_unlock(&u->cm);
	if (u->cm.watch)
		ucma_watch();
	if (u->after.thread)
		ucma_await_return(&u->after);
	return ret;
}

static ssize_t ucma_execute(struct ucma *u, const void *buf, size_t len)
{
	alignas(8) char cmd[UCMA_COMMAND_MAX] = "";
	struct rdma_ucm_cmd_hdr hdr;
	bool gets_event;
	uint64_t begin;
	int ret;

	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.cmd >= COMMANDS || hdr.in + sizeof(hdr) > len)
		return -EINVAL;
	if (!commands[hdr.cmd].run)
		return -ENOSYS;
	memcpy(cmd, (const char *)buf + sizeof(hdr), hdr.in);
	u->cmd = cmd;
	u->in_len = hdr.in;
	u->out_len = hdr.out;
	gets_event = commands[hdr.cmd].run == ucma_get_event;
	if (gets_event)
		u->flags = fcntl(u->fd, F_GETFL);
	begin = ucma_trace_begin();
	ret = ucma_run(u, &commands[hdr.cmd]);
	if (ret == -EBADF && gets_event)
		ret = ucma_event_closed(u);
	ucma_trace_command(u, hdr.cmd, begin, ret);
	return ret ? ret : (ssize_t)len;
}

bool ucma_write(int fd, const void *buf, size_t len, ssize_t *out)
{
	struct ucma u = { .fd = fd };
	int saved = shim_enter();
	struct stat st;
	ssize_t ret;
	bool ours;

	ours = !fstat(fd, &st) && st.st_mode == CM_FIFO_MODE &&
	       shim_has_file(&st);
	if (ours) {
		u.ino = st.st_ino;
		/* the application's cleanup handlers run outside the shim */
		shim_leave(saved);
		pthread_testcancel();
		shim_enter();
		/* a cancelled thread would not release the lock */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &u.cancel_state);
		ret = ucma_execute(&u, buf, len);
		pthread_setcancelstate(u.cancel_state, NULL);
		if (ret < 0)
			saved = (int)-ret;
		*out = ret < 0 ? -1 : ret;
	}
	shim_leave(saved);
	if (ours) {
		ucma_keep_device_open();
		ucma_return(&u);
	}
	return ours;
}
