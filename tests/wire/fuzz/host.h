/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host under test: a device with QPs of all types, memory with various
 * access rights for other hosts, and keys.  Its objects are created anew for
 * each input.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "net.h"
#include "wire/packet.h"

#define must(x)                                                           \
	do {                                                              \
		if (!(x))                                                 \
			broken(__FILE__, __LINE__, #x);                   \
	} while (0)
_Noreturn void broken(const char *file, int line, const char *what);

/* ------------------------------------------------------- memory */

#define MEM_BYTES 0x8000u
#define SECRET 0xee /* fills memory that the host must never send */

/* Areas of host.mem. */
enum area {
	AREA_ALL, /* other hosts have all rights */
	AREA_READ,
	AREA_WRITE,
	AREA_LOCAL, /* destination of the host's own READs and atomics */
	AREA_FOREIGN, /* its MR is in another PD than the QPs */
	AREA_RECV, /* buffers of receives: SLOTS of SLOT_BYTES */
	AREA_SRC, /* data that the host sends */
	AREAS
};
#define SLOT_BYTES 1024u
#define SLOTS 8u

struct place {
	uint32_t at, bytes; /* offset in host.mem, length */
};
extern const struct place places[AREAS];

/*
 * Annex A19.  Newer versions of verbs.h define IBV_ACCESS_FLUSH_GLOBAL and
 * IBV_ACCESS_FLUSH_PERSISTENT.
 */
#define ACCESS_FLUSH_GLOBAL (1 << 8)
#define ACCESS_FLUSH_PERSISTENT (1 << 9)

/* A key that the peer uses in its requests. */
enum { KEY_ALL, KEY_READ, KEY_WRITE, KEY_LOCAL, KEY_FOREIGN, KEY_WINDOW, KEYS };
struct key {
	struct ibv_mr *mr;
	uint32_t rkey, at, bytes;
	unsigned int rights; /* IBV_ACCESS_REMOTE_... */
	int qp; /* index of the only QP with access; -1: all of the PD */
	bool foreign; /* its PD is host.other_pd */
	bool may; /* access may succeed; false: it must fail */
};

/* ------------------------------------------------------- queues */

enum {
	QP_RC,
	QP_SRQ, /* RC, uses an SRQ */
	QP_POOR, /* RC without remote access rights */
	QP_SMALL, /* RC, its CQ has few entries and may overrun */
	QP_UC,
	QP_UD,
	QP_RTR, /* RC in state RTR, without responder resources */
	QP_LONG, /* RC, path MTU 1024 */
	QP_XRC, /* XRC target */
	QPS
};

#define PEER_QPN(i) (0x100u + (uint32_t)(i))
#define FIRST_PSN 0xfffff0u
#define POSTED 64u /* limit of outstanding WRs of a queue */

/* An outstanding WR: it was posted, and its completion was not polled. */
struct posted {
	uint64_t id;
	uint32_t psn, packets; /* of a request: first PSN, number of PSNs */
	uint32_t length;
	uint8_t opcode;
	bool signaled;
	int key; /* index of the key that it binds or invalidates, or -1 */
};

struct queue {
	struct posted wr[POSTED];
	uint32_t first, n;
	uint32_t lost; /* of an SRQ: number of WRs that may never complete */
};

#define EARLY 16u

struct host_qp {
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	struct ibv_cq *cq;
	uint32_t mtu; /* bytes */
	uint32_t generation; /* part of a wr_id; a reset increments it */
	unsigned int rights;
	struct queue sq, rq;
	uint32_t psn; /* PSN of the next request */
	/*
	 * The peer's message of which the QP expects more packets.  The
	 * write_* members describe a WRITE.
	 */
	uint8_t under_way; /* 0, SEND or WRITE (peer.c) */
	bool unsure; /* it is unknown which packets the QP executed */
	/* packets behind a missing one, which the QP may have buffered */
	struct wire_packet early[EARLY];
	uint32_t n_early;
	bool unknown_early; /* and unknown ones */
	uint32_t write_rkey;
	uint64_t write_addr, write_length, write_done;
	/* The QP's requests, and the peer's responses to them. */
	uint32_t sent_high; /* one past the highest PSN that the QP sent */
	uint32_t answered; /* PSN of the peer's next response */
	uint32_t acked; /* one past the highest PSN acknowledged */
	/* bit PSN - FIRST_PSN: the peer sent a response with data for it */
	uint8_t data[512];
};

struct host {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq, *small_cq;
	struct ibv_srq *srq, *xrc_srq;
	struct ibv_xrcd *xrcd;
	uint32_t srqn; /* number of xrc_srq */
	struct ibv_mw *window;
	struct ibv_ah *ah;
	uint8_t *mem;
	uint8_t base[MEM_BYTES]; /* copy of mem at the last check */
	/* 1: a receive, READ or atomic of the host may write the byte */
	uint8_t receivable[MEM_BYTES];
	struct ibv_mr *local; /* MR of all of mem, without remote access */
	struct key key[KEYS];
	struct host_qp qp[QPS];
	struct queue shared, xrc_shared; /* receives of srq and xrc_srq */
	bool ipv6, port_down, in_group;
	uint32_t next_id;
	const uint8_t *here, *there;
};
extern struct host host;

void host_open(void); /* open the device; called once */
void host_begin(bool ipv6); /* create all objects, for one input */
void host_end(void); /* destroy them, and check that the WRs completed */

static inline bool is_reliable(const struct host_qp *q)
{
	return q->type == IBV_QPT_RC || q->type == IBV_QPT_XRC_RECV;
}

/* Return the queue that has the receives of QP i: its own or its SRQ's. */
static inline struct queue *host_receives(int i)
{
	return i == QP_SRQ ? &host.shared :
	       i == QP_XRC ? &host.xrc_shared :
			     &host.qp[i].rq;
}

/* Move QP i from RESET to RTR or RTS, with its initial attributes. */
void host_connect(int i);
void host_create(int i);
void host_destroy(int i);
void host_register(int k);
void host_join(bool in); /* attach QP_UD to host_group, or detach it */
void host_port(bool up);

extern const uint8_t host_group[16];

/*
 * Process all packets that net_put() queued.  Packets that no socket of the
 * host receives are dropped.
 */
void host_receive(void);
uint32_t host_epsn(int i); /* expected PSN of QP i as responder */
/* ------------------------------------------------------- checks */

/*
 * Check that host.mem changed only where a key with remote write or atomic
 * access, or a WR of the host, allows it.
 */
void check_memory(void);
/* Poll all completions and check them; small: also those of small_cq. */
void check_polls(bool small);
/* Record the posted WR p. */
void queue_add(struct queue *q, struct posted p);
/* QP i was reset or destroyed: forget its outstanding WRs. */
void queues_forget(int i);
/* Return a new wr_id for a WR of QP i. */
uint64_t wr_id(int i, bool recv);
