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
#ifndef URXE_CM_H
#define URXE_CM_H

#include <netinet/in.h>
#include <sys/socket.h>
/* after netinet/in.h, whose types it shares */
#include <rdma/rdma_user_cm.h>

#include "fabric/fabric.h"

#define CM_MAGIC "urxe cm tables " /* 16 bytes with its NUL */
#define CM_MAX_CHAN 16384
#define CM_MAX_ID 16384 /* librdmacm can map 65536 */
#define CM_MAX_EVENT (8 * CM_MAX_ID) /* no id has that many at a time */
#define CM_MAX_MC 4096
#define CM_MAX_BACKLOG 1024 /* sysctl net.rdma_ucm.max_backlog */

#define CM_AF_IB 27

struct cm_sockaddr_ib {
	uint16_t sib_family;
	uint16_t sib_pkey; /* big endian, as all that follows */
	uint32_t sib_flowinfo;
	uint8_t sib_addr[16];
	uint64_t sib_sid;
	uint64_t sib_sid_mask;
	uint64_t sib_scope_id;
};

/* As the application gave it: network order. */
union cm_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct cm_sockaddr_ib ib;
};
static_assert(sizeof(union cm_addr) == 48, "fixed");

/* What the application has done with an id (the kernel's rdma_cm_state). */
enum cma_state {
	CMA_IDLE,
	CMA_ADDR_BOUND,
	CMA_ADDR_RESOLVED,
	CMA_ROUTE_RESOLVED,
	CMA_CONNECT,
	CMA_DISCONNECT,
	CMA_LISTEN
};

/* What its connection has come to (IB specification, 12.9.7). */
enum cm_state {
	CM_IDLE,
	CM_REQ_SENT,
	CM_REQ_RCVD,
	CM_REP_SENT,
	CM_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_DREQ_RCVD,
	CM_TIMEWAIT,
	CM_SIDR_SENT,
	CM_SIDR_RCVD
};

/* Of events, as <rdma/rdma_cma.h> numbers them. */
enum {
	CM_EV_ADDR_RESOLVED,
	CM_EV_ADDR_ERROR,
	CM_EV_ROUTE_RESOLVED,
	CM_EV_ROUTE_ERROR,
	CM_EV_CONNECT_REQUEST,
	CM_EV_CONNECT_RESPONSE,
	CM_EV_CONNECT_ERROR,
	CM_EV_UNREACHABLE,
	CM_EV_REJECTED,
	CM_EV_ESTABLISHED,
	CM_EV_DISCONNECTED,
	CM_EV_DEVICE_REMOVAL,
	CM_EV_MULTICAST_JOIN,
	CM_EV_MULTICAST_ERROR,
	CM_EV_ADDR_CHANGE,
	CM_EV_TIMEWAIT_EXIT
};

/* Reject reasons and SIDR states of the IB specification, 12.6.7, 12.11.2. */
#define CM_REJ_TIMEOUT 4
#define CM_REJ_INVALID_SERVICE 8
#define CM_REJ_CONSUMER 28
#define CM_REJ_VENDOR_OPTION 35
#define CM_SIDR_UNSUPPORTED 1
#define CM_SIDR_REJECT 2

/* Room for private data in each message, as the application sees it. */
#define CM_IP_HEADER 36 /* of it, in requests between IP addresses */
#define CM_REQ_PRIVATE 92
#define CM_REP_PRIVATE 196
#define CM_REJ_PRIVATE 148
#define CM_SIDR_REQ_PRIVATE 216
#define CM_SIDR_REP_PRIVATE 136

#define CM_UDP_QKEY 0x01234567
#define CM_HOP_LIMIT 64
#define CM_LIFE_TIME 16 /* 4.096 us << this: what RoCE assumes of a packet */

/* As enum ibv_qp_type and enum ibv_event_type. */
#define CM_QPT_RC 2
#define CM_QPT_UC 3
#define CM_QPT_UD 4
#define CM_QPT_XRC_SEND 9
#define CM_QPT_XRC_RECV 10
#define CM_COMM_EST 4
#define CM_PATH_MIG 6

enum { CM_CHAN_FREE, CM_CHAN_LIVE, CM_CHAN_DYING };

struct cm_chan {
	uint32_t state;
	uint32_t gen;
	uint64_t ino; /* of the FIFO */
	int32_t pid; /* that used it last: it looks after the ids */
	uint32_t head, tail; /* its events, + 1 */
	uint32_t events;
	struct event_count posts; /* events, for sleepers in GET_EVENT */
	char comm[16];
	uint32_t due; /* there was no descriptor to wake its pollers with */
	uint8_t pad[4];
};
static_assert(sizeof(struct cm_chan) == 64, "one cache line");

/* A reference to an id that may vanish: index + 1 and its generation. */
struct cm_ref {
	uint32_t id, gen;
};

enum cm_flags {
	CM_F_DEVICE = 1, /* the address has led to the device */
	CM_F_CM = 2, /* it took part in a connection */
	CM_F_PORT = 4, /* it owns its source port */
	CM_F_REUSE = 8,
	CM_F_AFONLY_SET = 16,
	CM_F_AFONLY = 32,
	CM_F_TIMEOUT_SET = 64,
	CM_F_PARKED = 128, /* REQ_SENT to a listener whose backlog is full */
	CM_F_SRQ = 256,
	CM_F_PATH = 512, /* it has one: path_* */
	CM_F_HOST = 1024 /* the host's rdma_cm has it alone */
};

struct cm_id {
	uint32_t used, gen;
	uint32_t chan; /* + 1 */
	uint32_t flags; /* CM_F_* */
	uint64_t uid; /* the application's name for it; 0: not accepted yet */
	uint8_t cma, cm; /* enum cma_state, enum cm_state */
	uint8_t qp_type;
	uint8_t tos;
	uint8_t timeout; /* local ACK timeout, if CM_F_TIMEOUT_SET */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count, flow_control;
	uint8_t private_len;
	uint8_t sgid_index;
	uint16_t ps;
	uint16_t bound_ps; /* where CM_F_PORT */
	uint32_t events_reported;
	uint32_t backlog; /* requests that may still wait to be fetched */
	uint32_t qpn, psn, qkey; /* of this end */
	uint32_t remote_qpn, remote_psn;
	struct cm_ref peer; /* the id at the other end */
	struct cm_ref listener; /* CM_F_PARKED: where */
	struct rdma_ucm_ece ece;
	uint64_t deadline; /* ns, CLOCK_MONOTONIC; 0: none */
	uint64_t order; /* of binding and of parking */
	union cm_addr src, dst;
	uint8_t sgid[16], dgid[16];
	uint8_t private_data[216]; /* of the request, while parked */
	uint32_t host; /* its number in the host's rdma_cm, + 1 */
	/* as resolved, or of the request */
	uint32_t path_flow;
	uint8_t path_tos, path_life;
	uint16_t backlog_max; /* what backlog is when no request waits */
	uint8_t pad1[44];
};
static_assert(sizeof(struct cm_id) == 512, "fixed");

struct cm_event {
	uint32_t used;
	uint32_t next; /* + 1 */
	uint32_t chan; /* + 1 */
	uint32_t id; /* + 1: whose events_reported it raises */
	uint32_t mc; /* + 1, of multicast events */
	uint32_t pad0;
	struct cm_ref req; /* the new id of a CONNECT_REQUEST */
	uint64_t order;
	struct rdma_ucm_event_resp resp;
	uint8_t pad1[8];
};
static_assert(sizeof(struct cm_event) == 384, "fixed");

/* A multicast join. */
struct cm_mc {
	uint32_t used;
	uint32_t id; /* + 1 */
	uint64_t uid;
	uint32_t events_reported;
	uint32_t host; /* its number in the host's rdma_cm, + 1 */
};
static_assert(sizeof(struct cm_mc) == 24, "fixed");

struct cm_table {
	char magic[16];
	uint32_t version;
	uint32_t size;
	struct robust_lock lock;
	uint64_t order; /* counts */
	/* entries below these have memory */
	uint32_t chan_high, id_high, event_high, mc_high;
	uint32_t chan_low, id_low; /* none below these is free */
	uint32_t event_next, sweep_next;
	uint32_t due; /* some channel's is set */
	alignas(URXE_PAGE) struct cm_chan chan[CM_MAX_CHAN];
	alignas(URXE_PAGE) struct cm_id id[CM_MAX_ID];
	alignas(URXE_PAGE) struct cm_event event[CM_MAX_EVENT];
	alignas(URXE_PAGE) struct cm_mc mc[CM_MAX_MC];
};

/* A mapping, and what one command does with it. */
struct cm {
	struct urxe_fabric *f;
	struct cm_table *t;
	bool dying; /* a channel was found dead: unlocking reaps it */
	bool watch; /* time or death may now concern this process's ids */
};

/* How many entries there may be: no index is greater, whatever is written. */
static inline uint32_t cm_chans(const struct cm *cm)
{
	const uint32_t high = cm->t->chan_high;

	return high < CM_MAX_CHAN ? high : CM_MAX_CHAN;
}

static inline uint32_t cm_ids(const struct cm *cm)
{
	const uint32_t high = cm->t->id_high;

	return high < CM_MAX_ID ? high : CM_MAX_ID;
}

static inline uint32_t cm_events(const struct cm *cm)
{
	const uint32_t high = cm->t->event_high;

	return high < CM_MAX_EVENT ? high : CM_MAX_EVENT;
}

static inline uint32_t cm_mcs(const struct cm *cm)
{
	const uint32_t high = cm->t->mc_high;

	return high < CM_MAX_MC ? high : CM_MAX_MC;
}

/* cm_table.c ----------------------------------------------------------- */

/* Map the tables, made if they are not there. */
int cm_map(struct urxe_fabric *f, struct cm_table **out);
/* Between these two, all other functions. */
void cm_lock(struct cm *cm);
void cm_unlock(struct cm *cm);

/* Pointers into the tables, NULL if ref (index + 1) names nothing. */
struct cm_chan *cm_chan_at(struct cm *cm, uint32_t ref);
struct cm_id *cm_id_at(struct cm *cm, uint32_t ref);
struct cm_event *cm_event_at(struct cm *cm, uint32_t ref);
struct cm_mc *cm_mc_at(struct cm *cm, uint32_t ref);
uint32_t cm_chan_ref(struct cm *cm, const struct cm_chan *c);
uint32_t cm_id_ref(struct cm *cm, const struct cm_id *id);
uint32_t cm_event_ref(struct cm *cm, const struct cm_event *e);
uint32_t cm_mc_ref(struct cm *cm, const struct cm_mc *mc);

/* An unused entry, zeroed but for its generation; NULL: full. */
struct cm_id *cm_id_new(struct cm *cm, struct cm_chan *c);
void cm_id_free(struct cm *cm, struct cm_id *id);
struct cm_event *cm_event_alloc(struct cm *cm);
struct cm_mc *cm_mc_new(struct cm *cm);

struct cm_ref cm_ref_to(struct cm *cm, const struct cm_id *id);
struct cm_id *cm_deref(struct cm *cm, struct cm_ref ref);

/* cm_chan.c ------------------------------------------------------------ */

/* A new channel; its descriptor (O_RDWR | O_CLOEXEC) or -errno. */
int cm_chan_open(struct cm *cm);
/* By its FIFO's inode; hint is looked at first. */
struct cm_chan *cm_chan_find(struct cm *cm, uint64_t ino, uint32_t hint);
/* For writing, O_NONBLOCK; -1 if it is dead, and then it is marked so. */
int cm_chan_writer(struct cm *cm, struct cm_chan *c);
bool cm_chan_alive(struct cm *cm, struct cm_chan *c);
/* Look after up to n channels, the next ones in turn. */
void cm_chan_sweep(struct cm *cm, unsigned int n);
void cm_chan_reap_dying(struct cm *cm);

/* cm_event.c ----------------------------------------------------------- */

/* An event for id, to be filled and sent; NULL: nobody to tell. */
struct cm_event *cm_event_new(struct cm *cm, struct cm_id *id, uint32_t event,
			      int status);
void cm_event_send(struct cm *cm, struct cm_event *e);
/* The same through a writer that the caller has. */
void cm_event_send_by(struct cm *cm, struct cm_event *e, int fd);
/* Without parameters; -ENOMEM: there is no room for it. */
int cm_event_post(struct cm *cm, struct cm_id *id, uint32_t event, int status);
/*
 * The oldest event of the channel, which fd is; what it counts is counted.
 * false: there is none.
 */
bool cm_event_pop(struct cm *cm, struct cm_chan *c, int fd,
		  struct rdma_ucm_event_resp *out);
/* Drop the events of an id; fd of its channel or -1. */
void cm_event_purge(struct cm *cm, struct cm_id *id, int fd);
void cm_event_purge_mc(struct cm *cm, struct cm_mc *mc, int fd);
/* To the end of another channel's queue; descriptors of both, or -1. */
void cm_event_move(struct cm *cm, struct cm_id *id, struct cm_chan *to, int fd,
		   int to_fd);
void cm_event_free_all(struct cm *cm, struct cm_chan *c);
/* Wake the pollers that could not be woken yet. */
void cm_event_catch_up(struct cm *cm);
/* After a holder of the lock died. */
void cm_event_rebuild(struct cm *cm);

/* cm_addr.c ------------------------------------------------------------ */

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
/* The GID that stands for an address; its index in the table or 0. */
uint32_t cm_addr_gid(const struct urxe_dev *dev, const union cm_addr *a,
		     uint8_t gid[16]);
/* Is it in the GID table? */
bool cm_addr_known(const struct urxe_dev *dev, const union cm_addr *a);

/* The address handle that reaches gid from id. */
void cm_fill_ah(struct ib_uverbs_ah_attr *ah, const struct cm_id *id,
		const uint8_t gid[16]);
/* The one for its path. */
void cm_fill_path_ah(struct ib_uverbs_ah_attr *ah, const struct cm_id *id);

/* cm_port.c ------------------------------------------------------------ */

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

/* cm_conn.c ------------------------------------------------------------ */

int cm_listen(struct cm *cm, struct cm_id *id, uint32_t backlog);
int cm_connect(struct cm *cm, struct cm_id *id,
	       const struct rdma_ucm_conn_param *p,
	       const struct rdma_ucm_ece *ece);
/* p is NULL when a client confirms the response that it got. */
int cm_accept(struct cm *cm, struct cm_id *id,
	      const struct rdma_ucm_conn_param *p,
	      const struct rdma_ucm_ece *ece, uint64_t uid);
int cm_reject(struct cm *cm, struct cm_id *id, uint8_t reason, const void *data,
	      uint8_t len);
int cm_disconnect(struct cm *cm, struct cm_id *id);
int cm_notify(struct cm *cm, struct cm_id *id, uint32_t event);
/* A place in the listener's backlog is free. */
void cm_unpark(struct cm *cm, struct cm_id *listener);

/* cm_sidr.c ------------------------------------------------------------ */

/* The Q_Key of a datagram id, once and for all; 0: the usual one. */
int cm_set_qkey(struct cm_id *id, uint32_t qkey);
/* -EINVAL: it is not the time, or it is too long. */
int cm_send_sidr_reply(struct cm *cm, struct cm_id *id,
		       const struct rdma_ucm_conn_param *p);
void cm_got_sidr_reject(struct cm *cm, struct cm_id *id, int status,
			const void *data, uint8_t len);
/* Private data, padded to the room that the message has. */
void cm_fill_ud_private(struct cm_event *e, const void *data, uint8_t len,
			uint8_t room);

/* cm_end.c ------------------------------------------------------------- */

/* fd: a descriptor of the id's channel, or -1. */
void cm_id_destroy(struct cm *cm, struct cm_id *id, int fd);
/* The other end's messages, as they arrive here. */
void cm_got_reject(struct cm *cm, struct cm_id *id, int reason,
		   const void *data, uint8_t len);
void cm_got_dreq(struct cm *cm, struct cm_id *id);
void cm_got_drep(struct cm *cm, struct cm_id *id);
/*
 * Timers of the ids that process pid looks after, and the life of their
 * peers.  Returns when to do so again, in ns; 0: there is nothing to look
 * after.  next is kept for the next tick.
 */
uint64_t cm_tick(struct cm *cm, int32_t pid, uint32_t *next);
void cm_timewait(struct cm *cm, struct cm_id *id);
/* After a holder of the lock died: end what it has left half done. */
void cm_recover(struct cm *cm);
void cm_to_idle(struct cm *cm, struct cm_id *id);
/* The connection is over: no messages any more. */
void cm_unlink(struct cm *cm, struct cm_id *id);

#endif
