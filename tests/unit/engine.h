/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's objects, made without verbs: a context, and on it CQs, QPs and
 * keys.  Whatever fails ends the test.
 */
#pragma once

#include <unistd.h>

#include "engine/observe.h"
#include "engine/poll.h"
#include "engine/qp.h"
#include "engine/srq.h"
#include "unit.h"

#define ENGINE_PD 1
#define ENGINE_QKEY 0x1234u
#define ENGINE_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ENGINE_DEPTH 16u /* WRs and receives of a QP or SRQ */

/* Opens the device of f, which it closes with it. */
struct urxe_context *engine_open(struct urxe_fabric *f);
void engine_close(struct urxe_context *ctx);
/* The same without the device: others of this process use it, too. */
void engine_leave(struct urxe_context *ctx);

struct urxe_cq *engine_cq(struct urxe_context *ctx, uint32_t cqe);
/* channel: cq_params.channel */
struct urxe_cq *engine_cq_on(struct urxe_context *ctx, uint32_t cqe,
			     uint32_t channel);
void engine_cq_close(struct urxe_cq *cq);

struct urxe_srq *engine_srq(struct urxe_context *ctx);
void engine_srq_close(struct urxe_srq *srq);

/* In RESET. */
struct urxe_qp *engine_qp(enum ibv_qp_type type, struct urxe_cq *scq,
			  struct urxe_cq *rcq, struct urxe_srq *srq);
void engine_qp_close(struct urxe_qp *qp);
/* From RESET to RTS; UD: dest is 0. */
void engine_qp_connect(struct urxe_qp *qp, uint32_t dest);
/* What ibv_modify_qp does for a change of state alone. */
void engine_qp_set(struct urxe_qp *qp, enum ibv_qp_state state);

uint32_t engine_key(struct urxe_context *ctx, void *addr, uint64_t len);
void engine_key_close(struct urxe_context *ctx, uint32_t key);

/* A context with a CQ and an RC QP that is connected to itself. */
struct engine {
	struct urxe_context *ctx;
	struct urxe_cq *cq;
	struct urxe_qp *qp;
	uint32_t key; /* of mem */
	_Alignas(uint64_t) char mem[4096];
};

struct engine *engine_new(void); /* in a fabric of its own */
struct engine *engine_new_in(struct urxe_fabric *f);
void engine_free(struct engine *e);
/*
 * A process of e's fabric, to which e's memory belongs from now on.  It has the
 * same bytes at the same address, and waits to be killed.
 */
pid_t engine_other_process(struct engine *e);

#define WR_LOCAL 0u /* where in struct engine.mem a WR has its data */
#define WR_REMOTE 2048u
struct wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};
/* One of 8 bytes, from or to there; atomics compare with, or add, 1. */
struct ibv_send_wr *wr_fill(struct wr *w, struct engine *e,
			    enum ibv_wr_opcode opcode, uint64_t wr_id,
			    unsigned int flags);
/* Post one of them: errno value. */
int post(struct engine *e, enum ibv_wr_opcode opcode, uint64_t wr_id,
	 unsigned int flags);
/* One of any opcode, for a carrier that does not look inside. */
int post_bare(struct urxe_qp *qp, uint8_t opcode, uint64_t wr_id,
	      unsigned int flags);
int post_recv(struct urxe_qp *qp, void *addr, uint32_t len, uint32_t key,
	      uint64_t wr_id);

/* All opcodes; and for two of them: may second not be begun before first is done? */
#define OPCODES 12u
extern const uint8_t opcodes[OPCODES];
bool must_wait(unsigned int first, unsigned int second, bool fence);

/* Poll until there is a completion, for 10 seconds. */
struct ibv_wc next_wc(struct urxe_cq *cq);
/* The next completion is this one. */
#define expect_wc(cq, id, result) \
	do { \
		struct ibv_wc wc_ = next_wc(cq); \
		ck_assert_uint_eq(wc_.wr_id, (uint64_t)(id)); \
		ck_assert_int_eq(wc_.status, (result)); \
	} while (0)
#define expect_none(cq) ck_assert_int_eq(poll_cq(cq, 1, &(struct ibv_wc){ 0 }), 0)
/* Until cond holds; polls nothing. */
#define WAIT_MS 60000 /* longer hangs */
#define wait_until(cond) \
	do { \
		int ms_; \
		for (ms_ = 0; !(cond) && ms_ < WAIT_MS; ms_++) \
			usleep(1000); \
		ck_assert_msg(ms_ < WAIT_MS, "waited in vain: " #cond); \
	} while (0)
