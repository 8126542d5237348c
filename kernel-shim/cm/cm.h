/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The connection manager: what the kernel's rdma_cm would keep, in a file
 * "cm" of the fabric, and one FIFO per event channel, cm.d/SLOT.GEN.
 *
 * The FIFO is the channel's descriptor in the application, so poll, epoll and
 * O_NONBLOCK are the kernel's.  It holds one byte per waiting event (or some
 * of them, but at least one); the events themselves are in the tables here.
 * A channel lives as long as somebody can read its FIFO: opening it for
 * writing fails with ENXIO when the last such descriptor is gone, however
 * that came about, and then its ids are destroyed by whoever noticed.
 *
 * Everything here happens under one lock.  Values read from the tables may
 * come from a process that was killed in the middle: indices are checked, and
 * the event queues are rebuilt when the lock's last holder died.
 */
#pragma once

#include "fabric/fabric.h"
#include "shared/cm_tables.h"
#include "wire/mad.h"

/* A mapping, and what one command does with it. */
struct cm {
	struct urxe_fabric *f;
	struct cm_table *t;
	bool watch; /* its ids may have timers or peers that die: cm_tick */
	struct cm_cause cause; /* this command; thread 0: of no interest */
	bool raised; /* it has sent an event to a channel of its process */
	/* NULL, or ns by which that event comes late (a kind of CM_EV_*) ... */
	uint64_t (*late)(uint32_t event);
	bool hurries; /* but for those that are raised meanwhile */
	/* ... and whether a DISCONNECTED is before the data of recv.c */
	bool (*overtakes)(void);
	/* who carries messages to other hosts; NULL: UDP does (wire.h) */
	void (*carry)(const struct cm_id *from, const uint8_t mad[MAD_BYTES]);
	/* NULL, or who is told of what would travel; tables are locked */
	void (*sent)(const struct cm_id *from, const uint8_t mad[MAD_BYTES]);
};

static inline uint64_t cm_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline bool cm_is_remote(const struct cm_id *id)
{
	return id->flags & CM_F_WIRE;
}

/* Of the path, as enum ibv_mtu. */
static inline uint8_t cm_path_mtu(const struct cm_id *id)
{
	return id->path_mtu ? id->path_mtu : CM_MTU;
}

/*
 * Of each table: how many entries there may be (no index is greater, whatever
 * is written); the entry that ref (index + 1) names, NULL if it names nothing
 * in use; an entry's ref; the end of its use.
 */
#define CM_TABLE(kind, max, in_use)                                          \
	static inline uint32_t cm_##kind##s(const struct cm *cm)             \
	{                                                                    \
		return cm_min(cm->t->kind##_high, max);                      \
	}                                                                    \
	static inline struct cm_##kind *cm_##kind##_at(struct cm *cm,        \
						       uint32_t ref)         \
	{                                                                    \
		struct cm_##kind *table = cm->t->kind;                       \
		const uint32_t i = ref - 1;                                  \
                                                                             \
		return i < cm_##kind##s(cm) && table[i].in_use ? &table[i] : \
								 NULL;       \
	}                                                                    \
	static inline uint32_t cm_##kind##_ref(struct cm *cm,                \
					       const struct cm_##kind *e)    \
	{                                                                    \
		return (uint32_t)(e - cm->t->kind) + 1;                      \
	}                                                                    \
	static inline void cm_##kind##_free(struct cm *cm,                   \
					    struct cm_##kind *e)             \
	{                                                                    \
		uint32_t *low = &cm->t->kind##_low;                          \
                                                                             \
		e->in_use = 0;                                               \
		*low = cm_min(*low, cm_##kind##_ref(cm, e) - 1);             \
	}
CM_TABLE(chan, CM_MAX_CHAN, state)
CM_TABLE(id, CM_MAX_ID, used)
CM_TABLE(event, CM_MAX_EVENT, used)
CM_TABLE(mc, CM_MAX_MC, used)

/* Each entry that is in use; the body may free it. */
#define cm_for_each(cm, kind, entry)                              \
	for (uint32_t ref_ = 1; ref_ <= cm_##kind##s(cm); ref_++) \
		if (((entry) = cm_##kind##_at(cm, ref_)))
#define cm_for_each_chan(cm, entry) cm_for_each(cm, chan, entry)
#define cm_for_each_id(cm, entry) cm_for_each(cm, id, entry)
#define cm_for_each_event(cm, entry) cm_for_each(cm, event, entry)
#define cm_for_each_mc(cm, entry) cm_for_each(cm, mc, entry)

/* table.c -------------------------------------------------------------- */

/* Map the tables, made if they are not there. */
int cm_map(struct urxe_fabric *f, struct cm_table **out);
/* Between these two, all other functions. */
int cm_lock(struct cm *cm); /* as fabric_lock */
/* The same with that patience, ns; 0: without waiting. */
int cm_lock_within(struct cm *cm, uint64_t patience);
void cm_unlock(struct cm *cm);
/*
 * After a holder of the lock died: make whole what it left half done.
 * cm_lock does so before anybody sees the tables.
 */
void cm_recover(struct cm *cm);
/*
 * The last step of each command that may have sent events or found a channel
 * dead: wake who could not be woken, destroy the ids of dead channels,
 * and tell their peers.  Who only looks need not.
 */
void cm_settle(struct cm *cm);

/* An unused entry, zeroed but for its generation; NULL: full. */
struct cm_chan *cm_chan_new(struct cm *cm);
struct cm_id *cm_id_new(struct cm *cm, struct cm_chan *c);
struct cm_event *cm_event_alloc(struct cm *cm);
struct cm_mc *cm_mc_new(struct cm *cm);

struct cm_ref cm_ref_to(struct cm *cm, const struct cm_id *id);
struct cm_id *cm_deref(struct cm *cm, struct cm_ref ref);

/* chan.c --------------------------------------------------------------- */

/* A new channel; its descriptor (O_RDWR | O_CLOEXEC) or -errno. */
int cm_chan_open(struct cm *cm);
/* By its FIFO's inode; hint is looked at first. */
struct cm_chan *cm_chan_find(struct cm *cm, uint64_t ino, uint32_t hint);
/* For writing, O_NONBLOCK; -1 if it is dead, and then it is marked so. */
int cm_chan_writer(struct cm *cm, struct cm_chan *c);
bool cm_chan_alive(struct cm *cm, struct cm_chan *c);
/* Its last reader is gone; cm_settle does the rest. */
void cm_chan_set_dying(struct cm *cm, struct cm_chan *c);
/* Reap the dead among n channels, the next ones in turn. */
void cm_chan_sweep(struct cm *cm, unsigned int n);
/* Reap all that are known to be dead. */
void cm_chan_reap(struct cm *cm);

/* event.c -------------------------------------------------------------- */

/* An event for id, to be filled and sent; NULL: nobody to tell. */
struct cm_event *cm_event_new(struct cm *cm, struct cm_id *id, uint32_t event,
			      int status);
void cm_event_send(struct cm *cm, struct cm_event *e);
/* Events whose time has come are there; others do not hold them up. */
void cm_event_come(struct cm *cm);
/* Without parameters; -ENOMEM: there is no room for it. */
int cm_event_post(struct cm *cm, struct cm_id *id, uint32_t event, int status);
/* One that the application makes; -ENOMEM: too many wait in the channel. */
int cm_event_write(struct cm *cm, struct cm_id *id, uint32_t event, int status,
		   uint64_t arg);
/*
 * The oldest event of the channel, which fd is; what it counts is counted.
 * *cause: the command of this process that has sent it; thread 0: none.
 * false: there is none.
 */
bool cm_event_pop(struct cm *cm, struct cm_chan *c, int fd,
		  struct rdma_ucm_event_resp *out, struct cm_cause *cause);
/* Drop the events of an id; fd: a descriptor of its channel, or -1. */
void cm_event_purge(struct cm *cm, struct cm_id *id, int fd);
void cm_event_purge_mc(struct cm *cm, struct cm_mc *mc, int fd);
/* To the end of another channel's queue; descriptors of both, or -1. */
void cm_event_move(struct cm *cm, struct cm_id *id, struct cm_chan *to, int fd,
		   int to_fd);
void cm_event_free_all(struct cm *cm, struct cm_chan *c);
/* Wake the pollers that could not be woken yet. */
void cm_event_catch_up(struct cm *cm);
/* A part of cm_recover: the queues, from the events. */
void cm_event_rebuild(struct cm *cm);

/* addr.c --------------------------------------------------------------- */

/* 16, 28, 48, or 0 for an unknown family. */
size_t cm_addr_size(const union cm_addr *a);
bool cm_addr_zero(const union cm_addr *a); /* the wildcard */
bool cm_addr_loopback(const union cm_addr *a);
/* Either: it names no interface. */
bool cm_addr_any(const union cm_addr *a);
/* Without regard to ports. */
bool cm_addr_same(const union cm_addr *a, const union cm_addr *b);
uint16_t cm_addr_port(const union cm_addr *a); /* host order */
void cm_addr_set_port(union cm_addr *a, uint16_t port);
void cm_addr_set_loopback(union cm_addr *a);
/* The address as a GID. */
void cm_addr_raw(const union cm_addr *a, uint8_t gid[16]);
/* The GID that stands for an address; and its index in the table. */
uint32_t cm_addr_gid(const struct urxe_dev *dev, const union cm_addr *a,
		     uint8_t gid[16]);
/* Is it in the GID table? */
bool cm_addr_known(const struct urxe_dev *dev, const union cm_addr *a);

/* The address handle that reaches gid from id. */
void cm_fill_ah(struct ib_uverbs_ah_attr *ah, const struct cm_id *id,
		const uint8_t gid[16]);
/* The one for its path. */
void cm_fill_path_ah(struct ib_uverbs_ah_attr *ah, const struct cm_id *id);

/* port.c --------------------------------------------------------------- */

/*
 * Claim the source port, or choose one if it is 0.
 * -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -EPROTONOSUPPORT as the kernel.
 */
int cm_port_bind(struct cm *cm, struct cm_id *id, bool privileged);
/* May it be the only owner of its port? */
int cm_port_exclusive(struct cm *cm, struct cm_id *id);
/* Who listens where `id` wants to go; NULL: nobody who lives. */
struct cm_id *cm_port_listener(struct cm *cm, const struct cm_id *id);
/* Does anybody listen on that service, though perhaps not for this address? */
bool cm_port_served(struct cm *cm, const struct cm_id *id);
/* The service that an id offers, or that it wants. */
uint64_t cm_service_id(const struct cm_id *id, const union cm_addr *a);

/* resolve.c ------------------------------------------------------------ */

/* The device behind a source address: there is one. */
void cm_attach(struct cm *cm, struct cm_id *id);
/* id->dst is an address of this host, or one that needs no resolution: the
 * event of it, or -ENOMEM. */
int cm_resolved(struct cm *cm, struct cm_id *id);
/*
 * The same for another host's, when that has told its Ethernet address; for
 * timeout_ms at most, then it is ADDR_ERROR with ETIMEDOUT.  -errno: there is
 * no way there.
 */
int cm_resolve_remote(struct cm *cm, struct cm_id *id, uint32_t timeout_ms);
/* Look for what id (CMA_ADDR_QUERY) waits for. */
void cm_resolve_look(struct cm *cm, struct cm_id *id, uint64_t now);

/* conn.c --------------------------------------------------------------- */

int cm_listen(struct cm *cm, struct cm_id *id, uint32_t backlog);
int cm_connect(struct cm *cm, struct cm_id *id,
	       const struct rdma_ucm_conn_param *p,
	       const struct rdma_ucm_ece *ece);
/* The same, but nobody hears it; and how that ends. */
int cm_connect_lost(struct cm *cm, struct cm_id *id,
		    const struct rdma_ucm_conn_param *p,
		    const struct rdma_ucm_ece *ece);
void cm_lost_rejected(struct cm *cm, struct cm_id *id, int reason);
void cm_lost_unreachable(struct cm *cm, struct cm_id *id, int status);
/* p is NULL when a client confirms the response that it got. */
int cm_accept(struct cm *cm, struct cm_id *id,
	      const struct rdma_ucm_conn_param *p,
	      const struct rdma_ucm_ece *ece, uint64_t uid);
int cm_reject(struct cm *cm, struct cm_id *id, uint8_t reason, const void *data,
	      uint8_t len);
int cm_disconnect(struct cm *cm, struct cm_id *id);
int cm_notify(struct cm *cm, struct cm_id *id, uint32_t event);
/*
 * Another host's request, of which `client` tells: the id that it makes, or
 * NULL, and why in *err: -ENOENT: nobody listens; -EPROTOTYPE: but for QPs of
 * another type; -ENOMEM: there is no room.
 */
struct cm_id *cm_got_request(struct cm *cm, const struct cm_id *client,
			     int *err);
/* The server's REP: its p and ece, what else is in `server`. */
void cm_got_rep(struct cm *cm, struct cm_id *client, const struct cm_id *server,
		const struct rdma_ucm_conn_param *p,
		const struct rdma_ucm_ece *ece);
/* A place in the listener's backlog is free. */
void cm_unpark(struct cm *cm, struct cm_id *listener);
/* What is sent meanwhile is not heard. */
bool cm_device_is_down(const struct cm *cm);
/* It is no more, and client's request is CM_F_UNSENT. */
void cm_send_unsent(struct cm *cm, struct cm_id *client);

/* sidr.c --------------------------------------------------------------- */

/* The Q_Key of a datagram id, once and for all; 0: the usual one. */
int cm_set_qkey(struct cm_id *id, uint32_t qkey);
/* -EINVAL: it is not the time, or it is too long. */
int cm_send_sidr_reply(struct cm *cm, struct cm_id *id,
		       const struct rdma_ucm_conn_param *p);
/* The server's SIDR_REP: what it says of its QP is in `server`. */
void cm_got_sidr_reply(struct cm *cm, struct cm_id *client,
		       const struct cm_id *server, const void *data,
		       uint8_t len);
void cm_got_sidr_reject(struct cm *cm, struct cm_id *id, int status,
			const void *data, uint8_t len);
/* Private data, padded to the room that the message has. */
void cm_fill_private(struct cm_event *e, const void *data, uint8_t len,
		     uint8_t room);
void cm_fill_ud_private(struct cm_event *e, const void *data, uint8_t len,
			uint8_t room);

/* message.c: cm.sent is told ------------------------------------------- */

/* The communication ID that an id has in messages; no other one gets it. */
uint32_t cm_comm_id(struct cm *cm, const struct cm_id *id);
/* The other way round; NULL: none has it. */
struct cm_id *cm_id_of_comm_id(struct cm *cm, uint32_t comm_id);
/* Before they change what id->cm says, or what belongs to it: */
void cm_sent_request(struct cm *cm, const struct cm_id *id); /* (SIDR_)REQ */
void cm_sent_rep(struct cm *cm, const struct cm_id *id,
		 const struct rdma_ucm_conn_param *p,
		 const struct rdma_ucm_ece *ece);
void cm_sent_rtu(struct cm *cm, const struct cm_id *id);
void cm_sent_rej(struct cm *cm, const struct cm_id *id, unsigned int reason,
		 const void *data, uint8_t len);
/* It takes long until message (MAD_ABOUT_*) is answered. */
void cm_sent_mra(struct cm *cm, const struct cm_id *id, unsigned int message);
/* A REP is refused by nobody's id, as drep_as. */
void cm_sent_rej_rep(struct cm *cm, const struct cm_id *id, uint32_t own,
		     unsigned int reason);
void cm_sent_dreq(struct cm *cm, const struct cm_id *id);
void cm_sent_drep(struct cm *cm, const struct cm_id *id);
void cm_sent_sidr_rep(struct cm *cm, const struct cm_id *id, int status,
		      const void *data, uint8_t len);
/* Whoever is at the other end refuses the request: reason, or status; or has
 * no connection that id's DREQ could end. */
void cm_sent_refusal(struct cm *cm, const struct cm_id *client,
		     unsigned int reason);
void cm_sent_drep_unknown(struct cm *cm, const struct cm_id *id);
/* id is nobody's but the caller's: own is the communication ID to tell. */
void cm_sent_drep_as(struct cm *cm, const struct cm_id *id, uint32_t own);

/* recv.c --------------------------------------------------------------- */

/* Is there a receive for id's QP that was not polled?  The last is marked. */
bool cm_recv_mark(struct cm *cm, struct cm_id *id);
/* Is that one still there? */
bool cm_recv_waits(struct cm *cm, const struct cm_id *id);

/* end.c ---------------------------------------------------------------- */

/* fd: a descriptor of the id's channel, or -1. */
void cm_id_destroy(struct cm *cm, struct cm_id *id, int fd);
/* No listener takes the request; served: one listens on that service. */
void cm_refuse(struct cm *cm, struct cm_id *client, bool served);
/* The other end's DREQ arrives. */
void cm_got_dreq(struct cm *cm, struct cm_id *id);
/* Its DREP, and a REJ. */
void cm_got_drep(struct cm *cm, struct cm_id *id);
void cm_got_rej(struct cm *cm, struct cm_id *id, int reason, const void *data,
		uint8_t len);
/*
 * Timers of the ids that process pid looks after, and the life of their
 * peers; settles.  Returns when to do so again, in ns; 0: there is nothing to
 * look after.  next is kept for the next tick.
 */
uint64_t cm_tick(struct cm *cm, int32_t pid, uint32_t *next);
/* A part of cm_recover: connections of which one end was lost. */
void cm_conn_recover(struct cm *cm);
void cm_to_idle(struct cm *cm, struct cm_id *id);
/* The connection is over: no messages any more. */
void cm_unlink(struct cm *cm, struct cm_id *id);
