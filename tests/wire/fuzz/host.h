/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host that is fuzzed: a device with QPs of all kinds, memory of which other
 * hosts have more rights or less, and keys.  It is made anew for each input.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "net.h"

#define must(x)                                                           \
	do {                                                              \
		if (!(x))                                                 \
			broken(__FILE__, __LINE__, #x);                   \
	} while (0)
_Noreturn void broken(const char *file, int line, const char *what);

/* ------------------------------------------------------- memory */

#define MEM_BYTES 0x8000u
#define SECRET 0xee /* what fills memory that nobody may read */

enum area {
	AREA_ALL, /* other hosts may do all with it */
	AREA_READ,
	AREA_WRITE,
	AREA_LOCAL, /* what our own READs and atomics bring */
	AREA_FOREIGN, /* of another PD */
	AREA_RECV, /* receives, SLOT_BYTES each */
	AREA_SRC, /* what we send */
	AREAS
};
#define SLOT_BYTES 1024u
#define SLOTS 8u

struct place {
	uint32_t at, bytes;
};
extern const struct place places[AREAS];

/* Later headers have names for them (annex A19). */
#define ACCESS_FLUSH_GLOBAL (1 << 8)
#define ACCESS_FLUSH_PERSISTENT (1 << 9)

/* A key that other hosts may know. */
enum { KEY_ALL, KEY_READ, KEY_WRITE, KEY_LOCAL, KEY_FOREIGN, KEY_WINDOW, KEYS };
struct key {
	struct ibv_mr *mr;
	uint32_t rkey, at, bytes;
	unsigned int rights; /* IBV_ACCESS_REMOTE_... */
	int qp; /* only that one's peer; -1: any */
	bool foreign;
	bool may; /* it may hold */
};

/* ------------------------------------------------------- queues */

enum {
	QP_RC,
	QP_SRQ, /* RC */
	QP_POOR, /* RC that grants nothing */
	QP_SMALL, /* RC, its CQ has few places */
	QP_UC,
	QP_UD,
	QP_RTR, /* RC that is not to send, and answers no READs */
	QP_LONG, /* RC, path MTU 1024 */
	QP_XRC, /* a target */
	QPS
};

#define PEER_QPN(i) (0x100u + (uint32_t)(i))
#define FIRST_PSN 0xfffff0u
#define POSTED 64u /* at most */

/* A WR that was posted and is not completed. */
struct posted {
	uint64_t id;
	uint32_t psn, packets; /* of a request */
	uint32_t length;
	uint8_t opcode;
	bool signaled;
	int key; /* that it binds or invalidates, or -1 */
};

struct queue {
	struct posted wr[POSTED];
	uint32_t first, n;
	uint32_t lost; /* of an SRQ: so many may never complete */
};

struct host_qp {
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	struct ibv_cq *cq;
	uint32_t mtu; /* bytes */
	uint32_t generation; /* of its WRs */
	unsigned int rights;
	struct queue sq, rq;
	uint32_t psn; /* of the next request */
	/* What requests of the peer have under way, if they were taken. */
	uint8_t under_way; /* 0, or OP_SEND, OP_WRITE */
	bool unsure; /* what of them was taken */
	uint32_t write_rkey;
	uint64_t write_addr, write_length, write_done;
	/* Answers that were delivered to its requests, by PSN from FIRST_PSN on */
	uint32_t sent_high; /* PSNs before it went out */
	uint32_t answered; /* the other host's next answer */
	uint32_t acked; /* the highest PSN that was answered, + 1 */
	uint8_t data[512]; /* bits: data for that PSN came */
};

struct host {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq, *small_cq;
	struct ibv_srq *srq, *xrc_srq;
	struct ibv_xrcd *xrcd;
	uint32_t srqn; /* of xrc_srq */
	struct ibv_mw *window;
	struct ibv_ah *ah;
	uint8_t *mem;
	uint8_t base[MEM_BYTES]; /* what it was */
	uint8_t receivable[MEM_BYTES]; /* a receive has had it */
	struct ibv_mr *local; /* all of it, for ourselves */
	struct key key[KEYS];
	struct host_qp qp[QPS];
	struct queue shared, xrc_shared; /* receives of the SRQs */
	bool ipv6, port_down, in_group;
	uint32_t next_id;
	const uint8_t *here, *there;
};
extern struct host host;

void host_open(void); /* once */
void host_begin(bool ipv6);
void host_end(void);

static inline bool is_reliable(const struct host_qp *q)
{
	return q->type == IBV_QPT_RC || q->type == IBV_QPT_XRC_RECV;
}

/* Where its receives are posted. */
static inline struct queue *host_receives(int i)
{
	return i == QP_SRQ ? &host.shared :
	       i == QP_XRC ? &host.xrc_shared :
			     &host.qp[i].rq;
}

void host_connect(int i); /* from RESET on, as it was first */
void host_create(int i);
void host_destroy(int i);
void host_register(int k);
void host_join(bool in); /* QP_UD the group */
void host_port(bool up);

extern const uint8_t host_group[16];

/* What has come to the host is looked at. */
void host_receive(void);
uint32_t host_epsn(int i);
/* ------------------------------------------------------- what must hold */

/* Memory is as it has to be. */
void check_memory(void);
/* Poll: small: that CQ, too. */
void check_polls(bool small);
/* That WR was posted. */
void queue_add(struct queue *q, struct posted p);
/* Whatever was posted is forgotten. */
void queues_forget(int i);
uint64_t wr_id(int i, bool recv);
