#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of many sizes and a few collective operations, with the C library of Open MPI
(no mpi.h, no mpi4py): its handles are addresses of symbols.  The argument is the
largest size in bytes."""
import ctypes
import sys

LIB = ctypes.CDLL('libmpi.so.40', mode=ctypes.RTLD_GLOBAL)
TAG = 7


def symbol(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(LIB, name)))


WORLD = symbol('ompi_mpi_comm_world')
BYTE = symbol('ompi_mpi_byte')
INT64 = symbol('ompi_mpi_int64_t')
SUM = symbol('ompi_mpi_op_sum')


def call(name, *args):
    status = getattr(LIB, name)(*args)
    if status:
        sys.exit(f'{name}: {status}')


def number(name):
    n = ctypes.c_int()
    call(name, WORLD, ctypes.byref(n))
    return n.value


def pattern(size, seed):
    return bytes((seed + i * 7) % 251 for i in range(min(size, 251))) * (
        size // 251 + 1)


def ping_pong(rank, size):
    """Send a message back and forth, and check the data."""
    other = 1 - rank
    mine = pattern(size, rank)[:size]
    theirs = ctypes.create_string_buffer(size + 1)
    args = (size, BYTE, other, TAG, WORLD)
    for turn in range(4):
        if turn % 2 == rank:
            call('MPI_Send', mine, *args)
        else:
            call('MPI_Recv', theirs, *args, None)
    if theirs.raw[:size] != pattern(size, other)[:size]:
        sys.exit(f'rank {rank}: {size} bytes: wrong data')


def all_reduce(rank, ranks, count):
    ours = (ctypes.c_int64 * count)(*(i * (rank + 1) for i in range(count)))
    total = (ctypes.c_int64 * count)()
    call('MPI_Allreduce', ours, total, count, INT64, SUM, WORLD)
    factor = ranks * (ranks + 1) // 2
    if list(total) != [i * factor for i in range(count)]:
        sys.exit(f'rank {rank}: the sum of {count} is wrong')


def main():
    call('MPI_Init', None, None)
    rank, ranks = number('MPI_Comm_rank'), number('MPI_Comm_size')
    if ranks != 2:
        sys.exit(f'{ranks} ranks, not 2')
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 4 << 20
    for size in (0, 1, 64, 1000, 8192, 65536, 1 << 20, 4 << 20):
        if size <= largest:
            ping_pong(rank, size)
    for count in (1, 100, 50000):
        if 8 * count <= largest:
            all_reduce(rank, ranks, count)
    call('MPI_Barrier', WORLD)
    if rank == 0:
        print(f'{ranks} ranks, all right', flush=True)
    call('MPI_Finalize')


main()
