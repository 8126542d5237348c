/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared tables of the connection manager (rdma_cm): the file "cm" of a
 * fabric, which every process maps.  cm/cm.h declares the functions on them.
 *
 * Everything here changes under cm_table.lock, a robust mutex.  A process may
 * have been killed while it held the lock, so values must be bounded before
 * use.
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
/* after netinet/in.h, whose types it uses */
#include <rdma/rdma_user_cm.h>

#include "layout.h"

#define CM_MAGIC "urxe cm tables " /* 16 bytes including the NUL */
#define CM_MAX_CHAN 16384
#define CM_MAX_ID 16384 /* librdmacm can map 65536 */
#define CM_MAX_EVENT (8 * CM_MAX_ID) /* no id has that many at a time */
/* limit of queued events for rdma_write_cm_event */
#define CM_MAX_WRITTEN 4096
#define CM_MAX_MC 4096
#define CM_MAX_BACKLOG 1024 /* sysctl net.rdma_ucm.max_backlog */

#define CM_AF_IB 27

struct cm_sockaddr_ib {
	uint16_t sib_family;
	uint16_t sib_pkey; /* big endian, as are all following members */
	uint32_t sib_flowinfo;
	uint8_t sib_addr[16];
	uint64_t sib_sid;
	uint64_t sib_sid_mask;
	uint64_t sib_scope_id;
};

/* An address as the application passes it, in network order. */
union cm_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct cm_sockaddr_ib ib;
};
static_assert(sizeof(union cm_addr) == 48, "fixed");

/*
 * State of an id with respect to the application (the kernel's
 * rdma_cm_state).
 */
enum cma_state {
	CMA_IDLE,
	CMA_ADDR_BOUND,
	CMA_ADDR_RESOLVED,
	CMA_ROUTE_RESOLVED,
	CMA_CONNECT,
	CMA_DISCONNECT,
	CMA_LISTEN,
	CMA_ROUTE_QUERY, /* the ROUTE_RESOLVED event is delayed */
	CMA_ADDR_QUERY /* waits for the neighbour's link-layer address */
};

/* State of an id's connection (IB specification, 12.9.7). */
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

/* Event types, numbered as in <rdma/rdma_cma.h>. */
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

/* Size of the private data in each message, as the application sees it. */
#define CM_IP_HEADER 36 /* subtracted in requests between IP addresses */
#define CM_REQ_PRIVATE 92
#define CM_REP_PRIVATE 196
#define CM_REJ_PRIVATE 148
#define CM_SIDR_REQ_PRIVATE 216
#define CM_SIDR_REP_PRIVATE 136

#define CM_UDP_QKEY 0x01234567
#define CM_IPOIB_QKEY 0x0b1b /* of IP over InfiniBand, set by OpenSM */
#define CM_HOP_LIMIT 64
#define CM_PKEY 0xffff
#define CM_MTU 5 /* of the port, as enum ibv_mtu */
#define CM_MAX_RETRIES 7 /* a three-bit field of a message */
/* 4.096 us << 16: packet lifetime that RoCE assumes */
#define CM_LIFE_TIME 16

/* Values of enum ibv_qp_type, enum ibv_wc_opcode and enum ibv_event_type. */
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
	uint64_t ino; /* inode of the FIFO */
	/* process that used it last, which runs the timers of its ids */
	int32_t pid;
	uint32_t head, tail; /* its events, index + 1 */
	uint32_t events;
	/* counts events; wakes threads in GET_EVENT */
	struct event_count posts;
	char comm[16];
	/* 1: pollers were not woken, for lack of a descriptor */
	uint32_t due;
	uint32_t delays_events; /* 1: its process handles delayed events */
};
static_assert(sizeof(struct cm_chan) == 64, "one cache line");

/* A reference to an id that may vanish: index + 1 and its generation. */
struct cm_ref {
	uint32_t id, gen;
};

enum cm_flags {
	CM_F_DEVICE = 1, /* bound to a device by its address */
	CM_F_CM = 2, /* took part in a connection */
	CM_F_PORT = 4, /* owns its source port */
	CM_F_REUSE = 8,
	CM_F_AFONLY_SET = 16,
	CM_F_AFONLY = 32,
	CM_F_TIMEOUT_SET = 64,
	/* its request waits for a listener with free backlog */
	CM_F_PARKED = 128,
	CM_F_SRQ = 256,
	CM_F_PATH = 512, /* has a path: path_* */
	/* DISCONNECTED is delayed until deadline; see mark */
	CM_F_HELD = 1024,
	/* its request waits for the port to become active */
	CM_F_UNSENT = 2048,
	CM_F_WIRE = 4096, /* its peer is on another host */
	CM_F_REPLIED = 8192, /* its SIDR_REP is repeated on request */
	CM_F_DREP = 16384, /* its DREP is repeated on request */
	/* a listener for other hosts: its process must poll */
	CM_F_WATCHES = 32768,
	CM_F_MRA = 65536 /* its peer was sent an MRA for its REP */
};

/*
 * Position of a completion that the application has not polled yet: cm/recv.c
 */
struct cm_mark {
	uint64_t ring; /* urxe_cq_sh.ring at that time */
	uint32_t slot, gen; /* its context */
	uint32_t cq, pos;
};

struct cm_id {
	uint32_t used, gen;
	uint32_t chan; /* index + 1 */
	uint32_t flags; /* CM_F_* */
	uint64_t uid; /* the application's handle; 0: not accepted yet */
	uint8_t cma, cm; /* enum cma_state, enum cm_state */
	uint8_t qp_type;
	uint8_t tos;
	uint8_t timeout; /* local ACK timeout, if CM_F_TIMEOUT_SET */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t flow_control : 1;
	uint8_t private_len;
	uint8_t sgid_index;
	uint16_t ps;
	uint16_t bound_ps; /* port space of the source port, if CM_F_PORT */
	uint32_t events_reported;
	/* requests that may still be queued for the application */
	uint32_t backlog;
	uint32_t qpn, qkey; /* of this end */
	/* first PSN expected here; remote_psn: first PSN sent */
	uint32_t psn;
	uint32_t remote_qpn, remote_psn;
	struct cm_ref peer; /* the id of the peer */
	/* CM_F_PARKED: the listener that its request waits for */
	struct cm_ref listener;
	struct rdma_ucm_ece ece;
	uint64_t deadline; /* ns, CLOCK_MONOTONIC; 0: none */
	uint64_t order; /* sequence number of the last bind, listen or park */
	union cm_addr src, dst;
	uint8_t sgid[16], dgid[16];
	/* of the request, while parked; of the reply, if CM_F_WIRE */
	uint8_t private_data[216];
	/* path: as resolved, or as in the request */
	uint32_t path_flow;
	uint8_t path_tos, path_life;
	uint16_t backlog_max; /* value of backlog when no request is queued */
	struct cm_mark mark; /* CM_F_HELD: the last receive before the DREQ */
	uint32_t remote_comm_id; /* cm_comm_id() of the peer; 0: none */
	/* The following are used if CM_F_WIRE: */
	uint8_t path_mtu; /* enum ibv_mtu; 0: CM_MTU */
	/* retransmissions of its message, or repeated address queries */
	uint8_t tries;
	/* rnr_retry_count of its REP, whose private data is private_data */
	uint8_t reply_rnr;
	/*
	 * Patience of the peer: max_cm_retries and local_cm_response_timeout
	 * of its REQ; the timeout is 4.096 us << (8 + cm_timeout).
	 */
	uint8_t cm_retries : 4, cm_timeout : 4;
	uint64_t remote_tid; /* transaction ID that the peer began */
	/* ns; CMA_ADDR_QUERY: the next check for a result */
	uint64_t next_check;
	uint16_t host; /* of the process that made the id */
	uint16_t device; /* its number, if CM_F_DEVICE */
	uint32_t pad[3];
};
static_assert(sizeof(struct cm_id) == 528, "fixed");

/*
 * The command that caused an event.  `command` counts the commands of a
 * thread that may raise events.
 */
struct cm_cause {
	uint32_t thread; /* in the channel's process; 0: in another process */
	uint32_t command;
};

struct cm_event {
	uint32_t used;
	uint32_t next; /* index + 1 */
	uint32_t chan; /* index + 1 */
	/* index + 1 of the id whose events_reported it increments */
	uint32_t id;
	uint32_t mc; /* index + 1, of multicast events */
	struct cm_ref req; /* the new id of a CONNECT_REQUEST */
	uint32_t pad;
	struct cm_cause cause;
	uint64_t order;
	uint64_t due; /* ns: time of delivery, if delayed; 0: deliverable */
	struct rdma_ucm_event_resp resp;
};
static_assert(sizeof(struct cm_event) == 392, "fixed");

/* A multicast join. */
struct cm_mc {
	uint32_t used;
	uint32_t id; /* index + 1 */
	uint64_t uid;
	uint32_t events_reported;
	/* InfiniBand: the group that the port of the device has joined */
	uint16_t mlid;
	uint16_t device : 15;
	uint16_t receives : 1; /* 0: joined for sending only */
};
static_assert(sizeof(struct cm_mc) == 24, "fixed");

/*
 * A connection with another host whose id is destroyed: TIMEWAIT, and what is
 * needed to retransmit the DREQ until it is answered.
 */
struct cm_ended {
	uint8_t gid[16]; /* GID of that host */
	uint8_t sgid[16]; /* GID of this one */
	uint64_t until; /* ns: end of TIMEWAIT */
	uint64_t dreq_at; /* ns: next transmission of the DREQ; 0: none */
	uint32_t qpn; /* QPN of the peer */
	uint32_t comm_id, remote_comm_id;
	int32_t pid; /* process that destroyed the id */
	uint8_t path_tos;
	uint8_t tries; /* retransmissions of the DREQ */
	uint8_t left; /* 1: no answer came while the process waited */
	uint8_t pad[5];
};
static_assert(sizeof(struct cm_ended) == 72, "fixed");
#define CM_ENDED 2048 /* number of records, a ring */

struct cm_table {
	char magic[16];
	uint32_t version;
	struct robust_lock lock;
	uint64_t order; /* last sequence number */
	/* salt of communication IDs, different in each fabric */
	uint32_t salt;
	/* Entries below these have memory. */
	uint32_t chan_high, id_high, event_high, mc_high;
	/* No entry below these is free. */
	uint32_t chan_low, id_low, event_low, mc_low;
	uint32_t sweep_next;
	uint32_t due; /* 1: `due` of some channel is set */
	uint32_t dying; /* 1: some channel is CM_CHAN_DYING */
	struct event_count timers; /* rung when an id's timer is started */
	uint64_t due_at; /* ns: the earliest delayed event; 0: none */
	struct cm_ended ended[CM_ENDED];
	uint32_t ended_next; /* counts records; modulo CM_ENDED the oldest */
	alignas(URXE_PAGE) struct cm_chan chan[CM_MAX_CHAN];
	alignas(URXE_PAGE) struct cm_id id[CM_MAX_ID];
	alignas(URXE_PAGE) struct cm_event event[CM_MAX_EVENT];
	alignas(URXE_PAGE) struct cm_mc mc[CM_MAX_MC];
};
