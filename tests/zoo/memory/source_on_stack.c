// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdint.h>

#include "../zoo.h"

#define FRAME 16384

static void __attribute__((noinline))
send_message(struct pair *p, const struct ibv_mr *stack, bool corrected)
{
	char message[64];

	memset(message, 'A', sizeof(message));
	POST(&p->a, .op = IBV_WR_RDMA_WRITE, .addr = message,
	     .lkey = stack->lkey, .len = sizeof(message),
	     .flags = IBV_SEND_SIGNALED | (corrected ? IBV_SEND_INLINE : 0));
}

/* The next function that is called uses the same part of the stack. */
static void __attribute__((noinline)) do_something_else(void)
{
	char frame[FRAME];

	memset(frame, 'B', sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
}

PROGRAM(.name = "source-on-stack",
	.wrong =
		"the source is on the stack of a function that returns before the completion",
	.seen = "ROCm/mori#424", .found = "gather")
{
	const uintptr_t here = (uintptr_t)&corrected & ~(uintptr_t)4095;
	struct ibv_mr *stack;
	struct pair p;

	PAIR(&p);
	do_something_else(); /* fault in the pages */
	stack = ibv_reg_mr(the_pd(), (void *)(here - FRAME / 2),
			   FRAME / 2 + 4096, IBV_ACCESS_LOCAL_WRITE);
	expect(stack, "ibv_reg_mr fails");
	send_message(&p, stack, corrected);
	do_something_else();
	wait_for(&p.a);
	expect(all_are(p.b.buf, 'A', 64), "later data was sent");
}
