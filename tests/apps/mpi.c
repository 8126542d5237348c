// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Each rank sends to the next one; sums and windows of all. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST (1 << 20)

static unsigned char out[LARGEST], in[LARGEST];
static int rank, ranks;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void ring(int len)
{
	int i, next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;

	for (i = 0; i < len; i++)
		out[i] = (unsigned char)(i * 7 + rank);
	MPI_Sendrecv(out, len, MPI_BYTE, next, 1, in, len, MPI_BYTE, last, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (i = 0; i < len; i++)
		must(in[i] == (unsigned char)(i * 7 + last), "a message");
}

static void window(void)
{
	const long one = 1;
	long *sum;
	MPI_Win win;

	MPI_Win_allocate(sizeof(*sum), sizeof(*sum), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &sum, &win);
	*sum = 0;
	MPI_Win_fence(0, win);
	MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
	MPI_Win_fence(0, win);
	must(rank || *sum == ranks, "the window's sum");
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	long sum, mine;
	int len;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (len = 1; len <= LARGEST; len *= 4)
		ring(len);
	mine = rank + 1;
	MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	must(sum == ranks * (ranks + 1) / 2, "the sum");
	window();
	if (!rank)
		printf("%d ranks, all right\n", ranks);
	MPI_Finalize();
	return 0;
}
