// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdint.h>

#include "zoo.h"

#define FRAME 16384

static void __attribute__((noinline))
tell(struct pair *p, const struct ibv_mr *stack, bool corrected)
{
	char message[64];

	memset(message, 'A', sizeof(message));
	POST(&p->a, .op = IBV_WR_RDMA_WRITE, .addr = message,
	     .lkey = stack->lkey, .len = sizeof(message),
	     .flags = IBV_SEND_SIGNALED | (corrected ? IBV_SEND_INLINE : 0));
}

/* What is called next has the same place. */
static void __attribute__((noinline)) do_something_else(void)
{
	char frame[FRAME];

	memset(frame, 'B', sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
}

ANIMAL(.name = "source-on-stack",
       .wrong =
	       "the source is on the stack of who returns before the completion",
       .seen = "ROCm/mori#424", .found = "gather")
{
	const uintptr_t here = (uintptr_t)&corrected & ~(uintptr_t)4095;
	struct ibv_mr *stack;
	struct pair p;

	PAIR(&p);
	do_something_else(); /* the pages are there */
	stack = ibv_reg_mr(the_pd(), (void *)(here - FRAME / 2),
			   FRAME / 2 + 4096, IBV_ACCESS_LOCAL_WRITE);
	expect(stack, "the stack cannot be registered");
	tell(&p, stack, corrected);
	do_something_else();
	wait_for(&p.a);
	expect(all_are(p.b.buf, 'A', 64), "what came later was sent");
}
