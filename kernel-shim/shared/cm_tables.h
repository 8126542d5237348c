/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The connection manager's tables: the file "cm" of a fabric, which every
 * process maps.  cm/cm.h has the functions.
 *
 * Everything here changes under cm_table.lock.  Values may have been written
 * by a process that was killed in the middle: bound them before use.
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
/* after netinet/in.h, whose types it shares */
#include <rdma/rdma_user_cm.h>

#include "layout.h"

#define CM_MAGIC "urxe cm tables " /* 16 bytes with its NUL */
#define CM_MAX_CHAN 16384
#define CM_MAX_ID 16384 /* librdmacm can map 65536 */
#define CM_MAX_EVENT (8 * CM_MAX_ID) /* no id makes that many at a time */
#define CM_MAX_WRITTEN 4096 /* where so many wait, no more is written */
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
	CMA_LISTEN,
	CMA_ROUTE_QUERY, /* the event of it is to come */
	CMA_ADDR_QUERY /* the other host's address is asked for */
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
	CM_EV_TIMEWAIT_EXIT,
	CM_EV_ADDRINFO_RESOLVED,
	CM_EV_ADDRINFO_ERROR,
	CM_EV_USER,
	CM_EV_INTERNAL
};

/* Reject reasons and SIDR states of the IB specification, 12.6.7, 12.11.2. */
#define CM_REJ_TIMEOUT 4
#define CM_REJ_INVALID_COMM_ID 6
#define CM_REJ_INVALID_SERVICE 8
#define CM_REJ_STALE 10
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
#define CM_PKEY 0xffff
/* The port's, as enum ibv_mtu and enum ibv_rate */
#define CM_MTU 5
#define CM_RATE 17
#define CM_MAX_RETRIES 7 /* three bits of a message */
#define CM_LIFE_TIME 16 /* 4.096 us << this: what RoCE assumes of a packet */

/* As enum ibv_qp_type, enum ibv_wc_opcode and enum ibv_event_type. */
#define CM_QPT_RC 2
#define CM_QPT_UC 3
#define CM_QPT_UD 4
#define CM_QPT_XRC_SEND 9
#define CM_QPT_XRC_RECV 10
#define CM_WC_RECV 128
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
	uint32_t late; /* its process looks after events that come late */
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
	CM_F_PARKED = 128, /* its request waits for a listener with room */
	CM_F_SRQ = 256,
	CM_F_PATH = 512, /* it has one: path_* */
	CM_F_HELD = 1024, /* its DISCONNECTED, until deadline; see mark */
	CM_F_UNSENT = 2048, /* its request waits for the port to come up */
	CM_F_WIRE = 4096, /* its other end is on another host */
	CM_F_REPLIED = 8192, /* its SIDR_REP may be asked for again */
	CM_F_DREP = 16384, /* so may its DREP */
	CM_F_WATCHES = 32768 /* a listener on the wire: its process watches */
};

/* A completion that is to be polled: cm/recv.c */
struct cm_mark {
	uint64_t ring; /* as urxe_cq_sh.ring was */
	uint32_t slot, gen; /* its context */
	uint32_t cq, pos;
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
	uint32_t qpn, qkey; /* of this end */
	uint32_t psn; /* the first that it expects; remote_psn: that it sends */
	uint32_t remote_qpn, remote_psn;
	struct cm_ref peer; /* the id at the other end */
	struct cm_ref listener; /* CM_F_PARKED: where */
	struct rdma_ucm_ece ece;
	uint64_t deadline; /* ns, CLOCK_MONOTONIC; 0: none */
	uint64_t order; /* of binding and of parking */
	union cm_addr src, dst;
	uint8_t sgid[16], dgid[16];
	uint8_t private_data[216]; /* of the request, while parked */
	/* as resolved, or of the request */
	uint32_t path_flow;
	uint8_t path_tos, path_life;
	uint16_t backlog_max; /* what backlog is when no request waits */
	struct cm_mark mark; /* CM_F_HELD: the last receive before the DREQ */
	uint32_t remote_comm_id; /* cm_comm_id() of the other end; 0: none */
	/* CM_F_WIRE: */
	uint8_t path_mtu; /* as enum ibv_mtu; 0: CM_MTU */
	uint8_t tries; /* how often its message was sent, or it asked, again */
	uint8_t reply_rnr; /* of its REP, whose private data is private_data */
	/* how patient the other end is with that: its REQ's max_cm_retries and
	 * local_cm_response_timeout, which is 4.096 us << (8 + this) */
	uint8_t cm_retries : 4, cm_timeout : 4;
	uint64_t remote_tid; /* of the transaction that the other end began */
	uint64_t look_at; /* ns: CMA_ADDR_QUERY: for the answer */
};
static_assert(sizeof(struct cm_id) == 512, "fixed");

/* A command of a thread; `command` counts those that may raise events. */
struct cm_cause {
	uint32_t thread; /* of the channel's process; 0: of another one */
	uint32_t command;
};

struct cm_event {
	uint32_t used;
	uint32_t next; /* + 1 */
	uint32_t chan; /* + 1 */
	uint32_t id; /* + 1: whose events_reported it raises */
	uint32_t mc; /* + 1, of multicast events */
	struct cm_ref req; /* the new id of a CONNECT_REQUEST */
	uint32_t pad;
	struct cm_cause cause;
	uint64_t order;
	uint64_t due; /* ns: it comes then; 0: it is there */
	struct rdma_ucm_event_resp resp;
};
static_assert(sizeof(struct cm_event) == 392, "fixed");

/* A multicast join. */
struct cm_mc {
	uint32_t used;
	uint32_t id; /* + 1 */
	uint64_t uid;
	uint32_t events_reported;
};
static_assert(sizeof(struct cm_mc) == 24, "fixed");

/* A connection with another host whose id is gone; its time wait goes on. */
struct cm_ended {
	uint8_t gid[16]; /* of that host */
	uint64_t until; /* ns */
	uint32_t qpn; /* that it had there */
	uint32_t pad;
};
static_assert(sizeof(struct cm_ended) == 32, "fixed");
#define CM_ENDED 512 /* the last ones */

struct cm_table {
	char magic[16];
	uint32_t version;
	struct robust_lock lock;
	uint64_t order; /* counts */
	uint32_t salt; /* of communication IDs: no two fabrics have the same */
	/* entries below these have memory */
	uint32_t chan_high, id_high, event_high, mc_high;
	/* none below these is free */
	uint32_t chan_low, id_low, event_low, mc_low;
	uint32_t sweep_next;
	uint32_t due; /* some channel's is set */
	uint32_t dying; /* some channel is CM_CHAN_DYING */
	struct event_count timers; /* another process's id got one */
	uint64_t late_at; /* ns: an event comes then; 0: none does */
	struct cm_ended ended[CM_ENDED];
	uint32_t ended_next; /* the oldest one */
	alignas(URXE_PAGE) struct cm_chan chan[CM_MAX_CHAN];
	alignas(URXE_PAGE) struct cm_id id[CM_MAX_ID];
	alignas(URXE_PAGE) struct cm_event event[CM_MAX_EVENT];
	alignas(URXE_PAGE) struct cm_mc mc[CM_MAX_MC];
};
