// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Puts, gets and atomics between all PEs; PE 0 tells what came of it. */
#include <shmem.h>
#include <stdio.h>

#define PES_MAX 64

static long box, sum, right[PES_MAX];

int main(void)
{
	int me, pes, next, last, i, bad = 0;
	long got;

	shmem_init();
	me = shmem_my_pe();
	pes = shmem_n_pes();
	next = (me + 1) % pes;
	last = (me + pes - 1) % pes;
	shmem_barrier_all();
	shmem_long_p(&box, 100 + me, next);
	shmem_long_atomic_add(&sum, me + 1, 0);
	shmem_barrier_all();
	got = shmem_long_g(&box, next);
	shmem_long_p(&right[me], box == 100 + last && got == 100 + me, 0);
	shmem_barrier_all();
	if (!me) {
		bad = sum != pes * (pes + 1) / 2;
		for (i = 0; i < pes; i++)
			bad |= !right[i];
		printf("%d PEs, %s\n", pes, bad ? "wrong" : "all right");
	}
	shmem_finalize();
	return bad;
}
