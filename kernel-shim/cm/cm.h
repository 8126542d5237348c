/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The connection manager: the state that the kernel's rdma_cm and ib_cm
 * modules keep, in tables shared by all processes of a fabric (file "cm",
 * shared/cm_tables.h), and one FIFO per event channel, cm.d/SLOT.GEN.
 *
 * Callers:
 *
 *	preload/ucma	runs the commands that librdmacm writes, in the
 *			application's thread, and cm_tick() in the service
 *			thread (watch.c)
 *	preload/netlink	reads the tables for resource queries
 *	provider/wire	passes MADs from other hosts to cm_wire_receive(), in
 *			the process that owns the fabric's socket
 *
 * The FIFO is the descriptor of the channel in the application, so poll,
 * epoll and O_NONBLOCK are the kernel's.  The events are queued in the
 * tables.  While an event is deliverable, the FIFO holds at least one byte
 * (event.c).  A channel is alive while a process has its FIFO open for
 * reading.  After the last such descriptor is closed, for whatever reason,
 * opening the FIFO for writing fails with ENXIO.  The process that finds this
 * destroys the channel's ids and sends their peers the events that follow
 * from it.
 *
 * Locking: a robust lock, cm_table.lock, protects all tables.  All functions
 * that access them are called with the lock held, except cm_wire_receive(),
 * which takes it.  Its previous holder may have been killed in the middle of
 * an update.  Therefore indices are bounded before use, and the thread that
 * gets the lock next runs cm_recover() first.
 *
 * A message to an id in the same fabric is a function call: it changes the
 * peer's id and queues an event.  Messages to other hosts: wire.h.
 *
 * Tests: tests/unit/rdma_cm, tests/cm.
 */
#pragma once

#include "fabric/fabric.h"
#include "shared/cm_tables.h"
#include "wire/mad.h"

/*
 * The mapped tables, and the context of one command: a command of librdmacm,
 * a tick, or a received MAD.  Not shared between threads.
 */
struct cm {
	struct urxe_fabric *f;
	struct cm_table *t;
	/*
	 * set if ids of this process may have timers, or peers that may exit:
	 * the caller then starts the service thread, which ticks
	 */
	bool watch;
	/* this command, recorded in its events; thread 0: not recorded */
	struct cm_cause cause;
	/*
	 * set if an event was sent to a channel of this process and @cause is
	 * recorded
	 */
	bool raised;
	/*
	 * Adversary: return the delay of an event of type CM_EV_*, in ns.
	 * NULL: events are not delayed.
	 */
	uint64_t (*delay_of)(uint32_t event);
	bool undelayed; /* while set, events are not delayed */
	/*
	 * Adversary: return whether a DISCONNECTED is delivered although
	 * receives that precede the DREQ were not polled (recv.c).  May be
	 * NULL.
	 */
	bool (*disconnect_early)(void);
	/* Send a MAD to another host; NULL: cm_wire_send().  For tests. */
	void (*transmit)(const struct cm_id *from,
			 const uint8_t mad[MAD_BYTES]);
	/*
	 * Called with each MAD that is sent, or that would be sent if the
	 * peer were on another host; may be NULL.  The tables are locked.
	 */
	void (*sent)(const struct cm *cm, const struct cm_id *from,
		     const uint8_t mad[MAD_BYTES]);
};

static inline uint64_t cm_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline bool cm_is_remote(const struct cm_id *id)
{
	return id->flags & CM_F_WIRE;
}

/* Path MTU, as enum ibv_mtu. */
static inline uint8_t cm_path_mtu(const struct cm_id *id)
{
	return id->path_mtu ? id->path_mtu : CM_MTU;
}

/*
 * Accessors of a table.  A ref is an index plus 1; 0 refers to no entry.
 *
 *	cm_KINDs()	number of entries that have memory, at most the size
 *			of the table even if the stored value is damaged
 *	cm_KIND_at()	entry of @ref, or NULL if there is none or it is free
 *	cm_KIND_ref()	ref of an entry
 *	cm_KIND_free()	mark an entry as free
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

/* Iterate over the entries in use.  The body may free the entry. */
#define cm_for_each(cm, kind, entry)                              \
	for (uint32_t ref_ = 1; ref_ <= cm_##kind##s(cm); ref_++) \
		if (((entry) = cm_##kind##_at(cm, ref_)))
#define cm_for_each_chan(cm, entry) cm_for_each(cm, chan, entry)
#define cm_for_each_id(cm, entry) cm_for_each(cm, id, entry)
#define cm_for_each_event(cm, entry) cm_for_each(cm, event, entry)
#define cm_for_each_mc(cm, entry) cm_for_each(cm, mc, entry)

/* 4.096 us << 17: twice the packet lifetime of RoCE (4.096 us << 16) */
#define CM_TIMEWAIT_NS 537000000ull

/* table.c -------------------------------------------------------------- */

/*
 * Map the tables; create the file if it does not exist.  Return 0 or -errno.
 * Does not take the lock.
 */
int cm_map(struct urxe_fabric *f, struct cm_table **out);
/* The same, but do not create the file: -ENOENT. */
int cm_map_existing(struct urxe_fabric *f, struct cm_table **out);
/*
 * Take the lock of the tables; run cm_recover() if its last holder died.
 * Return 0 or -errno as fabric_lock(): -ETIMEDOUT if a process that is alive
 * keeps the lock, -ENOMEM if this process has no process id in the fabric.
 */
int cm_lock(struct cm *cm);
/*
 * As cm_lock(), but wait at most @limit ns.  0: do not wait, return
 * -EBUSY.
 */
int cm_lock_within(struct cm *cm, uint64_t limit);
void cm_unlock(struct cm *cm);
/*
 * Make the tables consistent after a holder of the lock died: event queues,
 * backlogs, half-made connections, and channels marked DYING.  cm_lock()
 * calls it.
 */
void cm_recover(struct cm *cm);
/*
 * Finish a command: wake the pollers of channels for which no descriptor was
 * available, destroy the ids of dead channels, and notify their peers.  Call
 * before cm_unlock() if the command may have sent events or found a channel
 * dead.  A command that only reads the tables need not call it.
 */
void cm_settle(struct cm *cm);

/*
 * Return a free entry, zeroed except for its generation, which is new; NULL
 * if the table is full or memory is exhausted.  cm_id_new() and cm_mc_new()
 * mark the entry in use; a channel is free until its state is set, an event
 * until it is sent.
 */
struct cm_chan *cm_chan_new(struct cm *cm);
struct cm_id *cm_id_new(struct cm *cm, struct cm_chan *c);
struct cm_event *cm_event_alloc(struct cm *cm);
struct cm_mc *cm_mc_new(struct cm *cm);
/*
 * End a multicast join; on InfiniBand, the port leaves the group.  Takes the
 * device lock under that of the tables.
 */
void cm_mc_leave(struct cm *cm, struct cm_mc *mc);

struct cm_ref cm_ref_to(struct cm *cm, const struct cm_id *id);
/* Return the id that @ref refers to; NULL if it was destroyed. */
struct cm_id *cm_deref(struct cm *cm, struct cm_ref ref);

/* chan.c --------------------------------------------------------------- */

/*
 * Create a channel of this process.  Return the descriptor of its FIFO
 * (O_RDWR | O_CLOEXEC), which the caller owns, or -errno.
 */
int cm_chan_open(struct cm *cm);
/*
 * Find a live channel by the inode number of its FIFO.  @hint is the ref that
 * is tried first.  NULL: there is none.
 */
struct cm_chan *cm_chan_find(struct cm *cm, uint64_t ino, uint32_t hint);
/*
 * Open the FIFO for writing, O_NONBLOCK; the caller closes the descriptor.
 * Return -1 if the channel is dead or the open failed.  If the open failed
 * with ENXIO (no reader) or ENOENT, the channel is marked DYING.
 */
int cm_chan_writer(struct cm *cm, struct cm_chan *c);
/*
 * Return whether the FIFO has a reader, or that cannot be found out for lack
 * of descriptors.  Otherwise the channel is marked DYING.
 */
bool cm_chan_alive(struct cm *cm, struct cm_chan *c);
/* Mark a channel as dead; cm_settle() destroys it. */
void cm_chan_set_dying(struct cm *cm, struct cm_chan *c);
/*
 * Check the next @n channels in round-robin order; destroy all that are known
 * to be dead.
 */
void cm_chan_sweep(struct cm *cm, unsigned int n);
/* Destroy the channels marked DYING and their ids. */
void cm_chan_reap(struct cm *cm);

/* event.c -------------------------------------------------------------- */

/*
 * Allocate an event for @id, to be filled in and passed to cm_event_send().
 * @status: a negative errno, a reject reason or a SIDR status.  Return NULL
 * if the table is full, or if @id is a new passive id that was not accepted
 * yet: such an id gets no events but those that the application writes.
 */
struct cm_event *cm_event_new(struct cm *cm, struct cm_id *id, uint32_t event,
			      int status);
void cm_event_send(struct cm *cm, struct cm_event *e);
/*
 * Make the delayed events deliverable whose time has come.  They do not wait
 * for events that precede them in the queue and are still delayed.
 */
void cm_event_release_due(struct cm *cm);
/*
 * Send an event without parameters.  Return -ENOMEM if the table is full, 0
 * if it was sent or @id was not accepted yet.
 */
int cm_event_post(struct cm *cm, struct cm_id *id, uint32_t event, int status);
/*
 * Send an event on behalf of the application (rdma_write_cm_event).  Return
 * -ENOMEM if CM_MAX_WRITTEN events are queued in the channel or the table is
 * full.
 */
int cm_event_write(struct cm *cm, struct cm_id *id, uint32_t event, int status,
		   uint64_t arg);
/*
 * Remove the oldest deliverable event of @c and copy it to *@out.  @fd is a
 * descriptor of the channel.  events_reported of the id and of the multicast
 * join is incremented; after a CONNECT_REQUEST the listener's backlog is,
 * too.  *@cause: the command of this process that sent the event; thread 0:
 * none.  Return false if no event is deliverable.
 */
bool cm_event_pop(struct cm *cm, struct cm_chan *c, int fd,
		  struct rdma_ucm_event_resp *out, struct cm_cause *cause);
/*
 * Drop the events of an id or of a multicast join.  New ids whose
 * CONNECT_REQUEST is dropped are destroyed.  @fd: a descriptor of the
 * channel, or -1; without one the surplus bytes in the FIFO remain until the
 * next cm_event_pop().
 */
void cm_event_purge(struct cm *cm, struct cm_id *id, int fd);
void cm_event_purge_mc(struct cm *cm, struct cm_mc *mc, int fd);
/*
 * Move the events of an id to the tail of the queue of @to, and with them the
 * new ids of CONNECT_REQUEST events.  @fd, @to_fd: descriptors of both
 * channels, or -1.
 */
void cm_event_move(struct cm *cm, struct cm_id *id, struct cm_chan *to, int fd,
		   int to_fd);
/* Drop all events of a channel, as cm_event_purge(). */
void cm_event_free_all(struct cm *cm, struct cm_chan *c);
/* Wake pollers that were not woken for lack of a descriptor. */
void cm_event_catch_up(struct cm *cm);
/* For cm_recover(): rebuild the queues from the table of events. */
void cm_event_rebuild(struct cm *cm);

/* addr.c --------------------------------------------------------------- */

/* Size of the address in bytes: 16, 28, 48; 0: unknown family. */
size_t cm_addr_size(const union cm_addr *a);
bool cm_addr_zero(const union cm_addr *a); /* the wildcard */
bool cm_addr_loopback(const union cm_addr *a);
/* The device of an id with CM_F_DEVICE. */
static inline struct urxe_hca *cm_hca(const struct cm *cm,
				      const struct cm_id *id)
{
	return hca_at(cm->f->dev, id->device);
}

/*
 * Wildcard or loopback: the address names no interface.  The loopback
 * addresses of devices other than device 0 (127.0.0.2, ...) do, and with a
 * cluster file those of all devices.
 */
bool cm_addr_any(const struct urxe_dev *dev, const union cm_addr *a);
/* The device that has the address; the first one of @host if none has. */
uint32_t cm_addr_device(const struct urxe_dev *dev, uint32_t host,
			const union cm_addr *a);
/* The host of that device. */
uint32_t cm_addr_host(const struct urxe_dev *dev, uint32_t host,
		      const union cm_addr *a);
/*
 * With a cluster file: the source address of @host for a destination, of the
 * same family.  It is the address with the longest prefix in common with @dst,
 * of a device that a path joins with that of @dst, if there is one.  False:
 * the host has no such address.
 */
bool cm_addr_route(const struct urxe_dev *dev, uint32_t host,
		   const union cm_addr *dst, union cm_addr *src);
/* Compare family and address, not ports. */
bool cm_addr_same(const union cm_addr *a, const union cm_addr *b);
uint16_t cm_addr_port(const union cm_addr *a); /* host order */
void cm_addr_set_port(union cm_addr *a, uint16_t port);
void cm_addr_set_loopback(union cm_addr *a);
/* Store the address as a GID, IPv4 as ::ffff:a.b.c.d. */
void cm_addr_raw(const union cm_addr *a, uint8_t gid[16]);
/*
 * Store the GID for an address and return its index in the GID table (RoCE
 * v2), that of cm_addr_device().  An address without an entry gets the default
 * GID of the port.
 */
uint32_t cm_addr_gid(const struct urxe_dev *dev, uint32_t host,
		     const union cm_addr *a, uint8_t gid[16]);
/* Store the link-local GID of a port, and return its index (RoCE v2). */
uint32_t cm_default_gid(const struct urxe_hca *hca, uint8_t gid[16]);
/* Return whether the address has a RoCE v2 entry in a GID table. */
bool cm_addr_known(const struct urxe_dev *dev, const union cm_addr *a);

/* Is the id of an InfiniBand device? */
bool cm_is_infiniband(const struct cm *cm, const struct cm_id *id);
/* The P_Key of the id's path: that of entry 0 of the table of its port. */
uint16_t cm_pkey(const struct cm *cm, const struct cm_id *id);
/* The LIDs of the path of an id; 0 if there are none, as on Ethernet. */
void cm_path_lids(const struct cm *cm, const struct cm_id *id, uint16_t *slid,
		  uint16_t *dlid);
/* Rate of the path, that of the slower port, as enum ibv_rate. */
uint8_t cm_path_rate(const struct cm *cm, const struct cm_id *id);
/*
 * Would a subnet administrator have a path?  Not on InfiniBand, if the ports
 * have no common partition, or the other one is an Ethernet port.
 */
bool cm_has_path(const struct cm *cm, const struct cm_id *id);
/* Fill in the attributes of an AH to a multicast group. */
void cm_fill_group_ah(struct ib_uverbs_ah_attr *ah, const struct cm_id *id,
		      const uint8_t gid[16], uint16_t mlid);
/* The same to the peer: its LID, or its GID with the path's class and label. */
void cm_fill_path_ah(const struct cm *cm, struct ib_uverbs_ah_attr *ah,
		     const struct cm_id *id);

/* port.c --------------------------------------------------------------- */

/*
 * Claim the source port of @id, or an ephemeral one if it is 0.  @privileged:
 * ports below 1024 are allowed.  Errors as in the kernel: -EADDRINUSE,
 * -EADDRNOTAVAIL, -EACCES, and -EPROTONOSUPPORT for an AF_IB service ID that
 * the id's port space does not allow.
 */
int cm_port_bind(struct cm *cm, struct cm_id *id, bool privileged);
/*
 * Return 0 if no other id owns the port of @id, even with CM_F_REUSE, or the
 * error of cm_port_bind().
 */
int cm_port_exclusive(struct cm *cm, struct cm_id *id);
/*
 * Return the listener for the destination address and service of @id: of
 * several, the one that listened last.  Its channel was not known to be dead.
 * NULL: there is none.
 */
struct cm_id *cm_port_listener(struct cm *cm, const struct cm_id *id);
/* Return whether there is a listener on that service, for any address. */
bool cm_port_has_listener(struct cm *cm, const struct cm_id *id);
/*
 * Return the service ID (IB specification, A11) of address @a of @id: that of
 * its source address if it listens, of its destination if it connects.
 */
uint64_t cm_service_id(const struct cm_id *id, const union cm_addr *a);

/* resolve.c ------------------------------------------------------------ */

/* Bind @id to the device of its source address, with the GID of it. */
void cm_attach(struct cm *cm, struct cm_id *id);
/*
 * Bind @id to the device and send ADDR_RESOLVED.  id->dst is an address of
 * this host, a multicast address, or one whose next hop is known or need not
 * be.  Return 0 or -ENOMEM.
 */
int cm_resolved(struct cm *cm, struct cm_id *id);
/*
 * Resolve id->dst, an address of another host: send ADDR_RESOLVED as soon as
 * the next hop's Ethernet address is known.  After @timeout_ms send
 * ADDR_ERROR with -ETIMEDOUT.  Return 0, or -errno if there is no route
 * (-ENETUNREACH if URXE_WIRE is not set) or no memory for the event.
 */
int cm_resolve_remote(struct cm *cm, struct cm_id *id, uint32_t timeout_ms);
/*
 * Timer of an id in state CMA_ADDR_QUERY: query the neighbour table again if
 * it is time to.
 */
void cm_resolve_check(struct cm *cm, struct cm_id *id, uint64_t now);

/* conn.c --------------------------------------------------------------- */

/*
 * Listen with @backlog, 0: as many as possible.  Parked requests that match
 * are delivered.  Return 0 or the error of cm_port_exclusive().
 */
int cm_listen(struct cm *cm, struct cm_id *id, uint32_t backlog);
/*
 * Send a REQ, or a SIDR_REQ for UD.  Return -EINVAL if the route is not
 * resolved, the QP type cannot connect, or the private data is too long.
 */
int cm_connect(struct cm *cm, struct cm_id *id,
	       const struct rdma_ucm_conn_param *p,
	       const struct rdma_ucm_ece *ece);
/*
 * Fault injection: as cm_connect(), but no listener receives the request.
 * The caller clears CM_F_WIRE first, so that it is not sent to another host.
 * The request ends by one of the other two functions: REJ with @reason (UD: a
 * SIDR_REP), or UNREACHABLE with @status (-errno).  Otherwise it times out
 * after 68 s.
 */
int cm_connect_fail(struct cm *cm, struct cm_id *id,
		    const struct rdma_ucm_conn_param *p,
		    const struct rdma_ucm_ece *ece);
void cm_fail_rejected(struct cm *cm, struct cm_id *id, int reason);
void cm_fail_unreachable(struct cm *cm, struct cm_id *id, int status);
/*
 * Server: send a REP (SIDR_REP for UD) with @p and store @uid.  Client: @p is
 * NULL; send an RTU for the REP.  If the state or the private data does not
 * permit it, the connection is rejected.  Return 0 or -EINVAL.
 */
int cm_accept(struct cm *cm, struct cm_id *id,
	      const struct rdma_ucm_conn_param *p,
	      const struct rdma_ucm_ece *ece, uint64_t uid);
/*
 * Send a REJ, or a SIDR_REP with status CM_SIDR_REJECT.  Return -EINVAL if
 * the state does not permit it or the private data is too long.
 */
int cm_reject(struct cm *cm, struct cm_id *id, uint8_t reason, const void *data,
	      uint8_t len);
/*
 * Send a DREQ, or a DREP if the peer has sent a DREQ.  Return 0 in other
 * states too, -EINVAL if @id never took part in a connection.
 */
int cm_disconnect(struct cm *cm, struct cm_id *id);
/*
 * Handle an event of the QP that the application passes on: CM_COMM_EST
 * establishes a connection whose RTU was not received yet.  Return -EISCONN
 * if it is established, -EINVAL in other states.  CM_PATH_MIG is ignored on
 * an established connection.
 */
int cm_notify(struct cm *cm, struct cm_id *id, uint32_t event);
/*
 * Deliver a request from another host to a listener.  @client is a temporary
 * id with the contents of the request.  Return the new passive id, or NULL
 * and an error in *@err:
 *
 *	-ENOENT		no listener on that service
 *	-EPROTOTYPE	listeners only for another address or QP type
 *	-ENOMEM		the backlog or a table is full
 */
struct cm_id *cm_got_request(struct cm *cm, const struct cm_id *client,
			     int *err);
/*
 * Handle a REP.  @server has the QPN and the starting PSN of the server, @p
 * and @ece the rest of the message.
 */
void cm_got_rep(struct cm *cm, struct cm_id *client, const struct cm_id *server,
		const struct rdma_ucm_conn_param *p,
		const struct rdma_ucm_ece *ece);
/*
 * Deliver parked requests, oldest first, while the listener has free backlog.
 * If it no longer listens, send them again to find another listener.
 */
void cm_unpark(struct cm *cm, struct cm_id *listener);
/*
 * Return whether the port of @id or that of its peer is not active.  Requests
 * are then neither sent nor received.
 */
bool cm_device_is_down(const struct cm *cm, const struct cm_id *id);
/* Send the request of @client (CM_F_UNSENT) after the port became active. */
void cm_send_unsent(struct cm *cm, struct cm_id *client);

/* sidr.c --------------------------------------------------------------- */

/*
 * Set the Q_Key of a UD id, which cannot be changed later.  0: keep the
 * present one, or set CM_UDP_QKEY.  Return -EINVAL if another one is set.
 */
int cm_set_qkey(struct cm_id *id, uint32_t qkey);
/*
 * Accept a SIDR_REQ: send a SIDR_REP with status 0.  Return -EINVAL if @id
 * has no unanswered SIDR_REQ, the private data is too long, or p->qkey
 * differs from the Q_Key of @id.
 */
int cm_send_sidr_reply(struct cm *cm, struct cm_id *id,
		       const struct rdma_ucm_conn_param *p);
/*
 * Handle a SIDR_REP with status 0.  @server has the QPN and Q_Key of the
 * server.
 */
void cm_got_sidr_reply(struct cm *cm, struct cm_id *client,
		       const struct cm_id *server, const void *data,
		       uint8_t len);
/* Handle a SIDR_REP with another status. */
void cm_got_sidr_reject(struct cm *cm, struct cm_id *id, int status,
			const void *data, uint8_t len);
/*
 * Store private data in an event, padded with zeros to @room bytes, its size
 * in the message.  @len <= @room.
 */
void cm_fill_private(struct cm_event *e, const void *data, uint8_t len,
		     uint8_t room);
void cm_fill_ud_private(struct cm_event *e, const void *data, uint8_t len,
			uint8_t room);

/* message.c ------------------------------------------------------------ */

/*
 * Return the local communication ID of an id.  It is made of the index and
 * the generation of the id, so that a later id with the same index has
 * another one.
 */
uint32_t cm_comm_id(struct cm *cm, const struct cm_id *id);
/* Return the id with that communication ID, or NULL. */
struct cm_id *cm_id_of_comm_id(struct cm *cm, uint32_t comm_id);
/*
 * Build a MAD, pass it to cm.sent and, if the peer is on another host, send
 * it.  The caller changes the peer's id itself.  cm_sent_rej() and
 * cm_sent_mra() derive fields from id->cm: call them before that changes.
 */
void cm_sent_request(struct cm *cm, const struct cm_id *id); /* (SIDR_)REQ */
void cm_sent_rep(struct cm *cm, const struct cm_id *id,
		 const struct rdma_ucm_conn_param *p,
		 const struct rdma_ucm_ece *ece);
void cm_sent_rtu(struct cm *cm, const struct cm_id *id);
void cm_sent_rej(struct cm *cm, const struct cm_id *id, unsigned int reason,
		 const void *data, uint8_t len);
/* MRA: the answer to @message (MAD_ABOUT_*) is delayed. */
void cm_sent_mra(struct cm *cm, const struct cm_id *id, unsigned int message);
/* Reject a REP for which no id exists; arguments as cm_sent_drep_as(). */
void cm_sent_rej_rep(struct cm *cm, const struct cm_id *id, uint32_t own,
		     unsigned int reason);
void cm_sent_dreq(struct cm *cm, const struct cm_id *id);
void cm_sent_drep(struct cm *cm, const struct cm_id *id);
void cm_sent_sidr_rep(struct cm *cm, const struct cm_id *id, int status,
		      const void *data, uint8_t len);
/*
 * Pass to cm.sent the message that the peer of @client or @id would send if
 * it has no id: a REJ or SIDR_REP for a request, with a reject reason or SIDR
 * status; a DREP for a DREQ without a connection.  It is not sent to another
 * host, and no id changes.
 */
void cm_sent_refusal(struct cm *cm, const struct cm_id *client,
		     unsigned int reason);
void cm_sent_drep_unknown(struct cm *cm, const struct cm_id *id);
/*
 * DREP for which no id exists.  @id is temporary and not in the table; @own
 * is the local communication ID of the message.
 */
void cm_sent_drep_as(struct cm *cm, const struct cm_id *id, uint32_t own);
/* The same for a DREQ. */
void cm_sent_dreq_as(struct cm *cm, const struct cm_id *id, uint32_t own);

/* recv.c --------------------------------------------------------------- */

/*
 * Return whether the receive CQ of id's QP has a successful receive
 * completion of that QP that was not polled.  The position of the last one is
 * stored in id->mark.
 */
bool cm_recv_mark(struct cm *cm, struct cm_id *id);
/* Return whether the completion at id->mark is still not polled. */
bool cm_recv_waits(struct cm *cm, const struct cm_id *id);

/* end.c ---------------------------------------------------------------- */

/*
 * Destroy an id: end its connection, notify the peer, drop its events and
 * multicast joins.  @fd: a descriptor of its channel, or -1.
 */
void cm_id_destroy(struct cm *cm, struct cm_id *id, int fd);
/*
 * Refuse the request of @client, an id of this fabric.  @has_listener: a
 * listener on that service exists, but cannot take it.
 */
void cm_refuse(struct cm *cm, struct cm_id *client, bool has_listener);
/* Handle a DREQ, a DREP, and a REJ of the peer. */
void cm_got_dreq(struct cm *cm, struct cm_id *id);
void cm_got_drep(struct cm *cm, struct cm_id *id);
void cm_got_rej(struct cm *cm, struct cm_id *id, int reason, const void *data,
		uint8_t len);
/*
 * Run the timers of the ids of process @pid, check whether their peers are
 * alive, deliver delayed events, and call cm_settle().  *@next is the index
 * at which the next tick continues; the caller keeps it.  Return the time
 * until the next tick in ns, at most 100 ms; 0: no id of @pid needs one.
 */
uint64_t cm_tick(struct cm *cm, int32_t pid, uint32_t *next);
/*
 * For cm_recover(): recompute the backlogs, and end connections of which only
 * one end exists.
 */
void cm_conn_recover(struct cm *cm);
/* Set state CM_IDLE, stop the timer, and unlink the peer. */
void cm_to_idle(struct cm *cm, struct cm_id *id);
/* Separate an id from its peer: neither sends messages to the other again. */
void cm_unlink(struct cm *cm, struct cm_id *id);
