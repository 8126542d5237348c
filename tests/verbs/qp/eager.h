/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helpers of the tests of eager buffers (provider/engine/cq/eager.h): SENDs of
 * 81 to 8192 bytes to private memory of another process, which the poller
 * copies to the receive.
 *
 * A program with these helpers defines process_vm_writev() and
 * posix_fallocate().  The provider calls them instead of those of libc.  The
 * first counts its calls: a SEND through an eager buffer makes none.  The
 * second can fail.
 */
#pragma once

#include <stdatomic.h>

#include "../types.h"

/* as in kernel-shim/shared/arena.h and provider/engine/cq/eager.c */
#define SLOTS 64
#define SLOT_BYTES 8192
#define BUFFER (SLOTS * SLOT_BYTES)
#define BUFFERS 4

extern atomic_long copies; /* calls of process_vm_writev() */
extern atomic_bool full; /* posix_fallocate() fails */

enum kind { RC, UC, UD, SRQ, XRC, KINDS };

/* A duo of two processes.  a sends, b receives. */
struct pair {
	struct duo d;
	enum kind kind;
	uint32_t parts; /* SGEs of each WR */
	struct ibv_ah *ah;
	uint32_t srqn;
	bool counts; /* a message that is too long is counted in `copies` */
};

void pair_open(struct pair *p, enum kind kind, const struct opts *o);
void pair_close(struct pair *p);
/* Options with large buffers and queues. */
struct opts large_opts(void);

/*
 * Messages @first to @first + @n - 1.  Number i has @len + i % 64 bytes and
 * is at i % 250 * 4160 in both buffers.
 */
struct batch {
	uint32_t first, n, len, parts;
	uint32_t grh; /* bytes before the message in the receive */
	long calls; /* result of do_send() */
};

#define STRIDE 4160
#define AT(i) ((i) % 250 * STRIDE)
#define LEN(m, i) ((m)->len + (i) % 64)
#define SINGLE 64 /* a message of just @len bytes */
#define UD_BYTES 4096 /* the longest message of UD */

/* Run by on_b(), or called for a node of this process; @arg: a batch. */
void do_post(struct node *b, void *arg);
/* Poll the messages and check them. */
void do_poll(struct node *b, void *arg);
/* Send the messages, each alone; set calls. */
void do_send(struct node *b, void *arg);

/* Post receives and send to them.  Return the calls of process_vm_writev(). */
long batch_send(struct pair *p, uint32_t first, uint32_t n, uint32_t len);
void batch_poll(struct pair *p, uint32_t first, uint32_t n, uint32_t len);
/* The same with one message of @len bytes, which is polled. */
long exchange(struct pair *p, uint32_t len);
/* From b to a: a posts receives, and b sends to them.  Return m->calls. */
long send_back(struct duo *d, struct batch *m);

/* The adversary delays messages, which then are not eager. */
bool is_eager(void);
/*
 * Exchange messages until one makes no system call: the first one requests
 * the buffer, and the receiver allocates it when it polls.
 */
void warm_up(struct pair *p);
#define ck_eager(calls)                              \
	do {                                         \
		const long number = (calls);         \
		if (is_eager())                      \
			ck_assert_int_eq(number, 0); \
	} while (0)
