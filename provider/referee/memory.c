// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "memory.h"

void memory_posting(struct shadow_queue *q, struct shadow_wr *wr)
{
	(void)q;
	(void)wr;
}

void memory_done(struct shadow_queue *q, struct shadow_wr *wr,
		 const struct ibv_wc *wc)
{
	(void)q;
	(void)wr;
	(void)wc;
}

void memory_forget(struct shadow_wr *wr)
{
	(void)wr;
}

void memory_ending(struct shadow *s)
{
	(void)s;
}
