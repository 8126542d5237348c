/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fixture of the engine's tests: contexts, CQs, SRQs, QPs and memory keys
 * that are created without verbs.  A failed assertion ends the test.
 */
#pragma once

#include <unistd.h>

#include "engine/core/observe.h"
#include "engine/poll/poller.h"
#include "engine/qp/qp.h"
#include "engine/qp/srq.h"
#include "../unit.h"

#define ENGINE_PD 1
#define ENGINE_QKEY 0x1234u
#define ENGINE_ACCESS                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ENGINE_DEPTH 16u /* WRs and receives of a QP or SRQ */

/* Open the device of @f. engine_close() also closes @f. */
struct urxe_context *engine_open(struct urxe_fabric *f);
void engine_close(struct urxe_context *ctx);
/* Close the context, but not the fabric, which other contexts use. */
void engine_leave(struct urxe_context *ctx);

struct urxe_cq *engine_cq(struct urxe_context *ctx, uint32_t cqe);
/* @channel: as cq_params.channel */
struct urxe_cq *engine_cq_on(struct urxe_context *ctx, uint32_t cqe,
			     uint32_t channel);
void engine_cq_close(struct urxe_cq *cq);

struct urxe_srq *engine_srq(struct urxe_context *ctx);
void engine_srq_close(struct urxe_srq *srq);

/* Create a QP in state RESET. */
struct urxe_qp *engine_qp(enum ibv_qp_type type, struct urxe_cq *scq,
			  struct urxe_cq *rcq, struct urxe_srq *srq);
void engine_qp_close(struct urxe_qp *qp);
/* Move the QP from RESET to RTS.  @dest is 0 for UD. */
void engine_qp_connect(struct urxe_qp *qp, uint32_t dest);
/* Modify only the state of the QP, as ibv_modify_qp does. */
void engine_qp_set(struct urxe_qp *qp, enum ibv_qp_state state);

/*
 * Register @len bytes at @addr as private memory with ENGINE_ACCESS.  Return
 * the key, which is lkey and rkey.
 */
uint32_t engine_key(struct urxe_context *ctx, void *addr, uint64_t len);
/* Revoke the key, wait for requesters that use it, and free it. */
void engine_key_close(struct urxe_context *ctx, uint32_t key);

/* A context with a CQ and an RC QP that is connected to itself. */
struct engine {
	struct urxe_context *ctx;
	struct urxe_cq *cq;
	struct urxe_qp *qp;
	uint32_t key; /* of mem, with ENGINE_ACCESS */
	_Alignas(uint64_t) char mem[4096];
};

struct engine *engine_new(void); /* in a new fabric */
struct engine *engine_new_in(struct urxe_fabric *f);
void engine_free(struct engine *e);
/*
 * Fork a process that joins the context and waits to be killed.  It becomes
 * the owner of the memory key: it has the memory at the same address with the
 * same content.
 */
pid_t engine_other_process(struct engine *e);

#define WR_LOCAL 0u /* offset in struct engine.mem of the local buffer */
/* offset in struct engine.mem of the remote buffer */
#define WR_REMOTE 2048u
struct wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};
/*
 * Fill in a WR of 8 bytes at mem + WR_LOCAL and mem + WR_REMOTE.  Atomics
 * compare with, or add, 1; they swap in 77.
 */
struct ibv_send_wr *wr_fill(struct wr *w, struct engine *e,
			    enum ibv_wr_opcode opcode, uint64_t wr_id,
			    unsigned int flags);
/* Post such a WR.  Return 0 or an errno value. */
int post(struct engine *e, enum ibv_wr_opcode opcode, uint64_t wr_id,
	 unsigned int flags);
/*
 * Post a WR that has only opcode, flags and wr_id, for a transport that does
 * not read the rest.  Return 0 or an errno value.
 */
int post_bare(struct urxe_qp *qp, uint8_t opcode, uint64_t wr_id,
	      unsigned int flags);
int post_recv(struct urxe_qp *qp, void *addr, uint32_t len, uint32_t key,
	      uint64_t wr_id);

/* The opcodes of send WRs, of all ordering classes. */
#define OPCODES 12u
extern const uint8_t opcodes[OPCODES];
/*
 * Return whether the WR of opcodes[second] must not begin before the one of
 * opcodes[first] has completed (IB 10.8.3.3, A19).  @fence: the second WR has
 * the fence indicator.
 */
bool must_wait(unsigned int first, unsigned int second, bool fence);

/* Poll until there is a completion; fail after 10 seconds. */
struct ibv_wc next_wc(struct urxe_cq *cq);
/* Check wr_id and status of the next completion. */
#define expect_wc(cq, id, result)                             \
	do {                                                  \
		struct ibv_wc wc_ = next_wc(cq);              \
		ck_assert_uint_eq(wc_.wr_id, (uint64_t)(id)); \
		ck_assert_int_eq(wc_.status, (result));       \
	} while (0)
#define expect_none(cq) \
	ck_assert_int_eq(poll_cq(cq, 1, &(struct ibv_wc){ 0 }), 0)
/* Wait until cond holds, without polling a CQ; fail after WAIT_MS. */
#define WAIT_MS 60000 /* a longer wait is a hang */
#define wait_until(cond)                                           \
	do {                                                       \
		int ms_;                                           \
		for (ms_ = 0; !(cond) && ms_ < WAIT_MS; ms_++)     \
			usleep(1000);                              \
		ck_assert_msg(ms_ < WAIT_MS, "timed out: " #cond); \
	} while (0)
