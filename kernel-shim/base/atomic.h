/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * C11 atomic operations with the memory order in the name, so that it is
 * stated at each access and the access fits on a line.
 *
 * cas_*(p, old, new) is compare-and-swap.  True: *p was *old and is @new now.
 * False: *old is the value of *p, loaded with the failure order: the same
 * order without its release part.
 */
#pragma once

#include <stdatomic.h>

#define load_relaxed(p) atomic_load_explicit(p, memory_order_relaxed)
#define load_acquire(p) atomic_load_explicit(p, memory_order_acquire)
#define load_seq_cst(p) atomic_load_explicit(p, memory_order_seq_cst)

#define store_relaxed(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit(p, v, memory_order_release)
#define store_seq_cst(p, v) atomic_store_explicit(p, v, memory_order_seq_cst)

#define ATOMIC_RMW(op, p, v, order) \
	atomic_##op##_explicit(p, v, memory_order_##order)
#define exchange_relaxed(p, v) ATOMIC_RMW(exchange, p, v, relaxed)
#define exchange_acquire(p, v) ATOMIC_RMW(exchange, p, v, acquire)
#define exchange_acq_rel(p, v) ATOMIC_RMW(exchange, p, v, acq_rel)
#define exchange_seq_cst(p, v) ATOMIC_RMW(exchange, p, v, seq_cst)
#define fetch_add_relaxed(p, v) ATOMIC_RMW(fetch_add, p, v, relaxed)
#define fetch_add_release(p, v) ATOMIC_RMW(fetch_add, p, v, release)
#define fetch_add_acq_rel(p, v) ATOMIC_RMW(fetch_add, p, v, acq_rel)
#define fetch_add_seq_cst(p, v) ATOMIC_RMW(fetch_add, p, v, seq_cst)
#define fetch_sub_relaxed(p, v) ATOMIC_RMW(fetch_sub, p, v, relaxed)
#define fetch_sub_release(p, v) ATOMIC_RMW(fetch_sub, p, v, release)
#define fetch_sub_acq_rel(p, v) ATOMIC_RMW(fetch_sub, p, v, acq_rel)

#define fetch_and_seq_cst(p, v) ATOMIC_RMW(fetch_and, p, v, seq_cst)
#define fetch_or_seq_cst(p, v) ATOMIC_RMW(fetch_or, p, v, seq_cst)
#define fetch_or_acquire(p, v) ATOMIC_RMW(fetch_or, p, v, acquire)
#define fetch_and_release(p, v) ATOMIC_RMW(fetch_and, p, v, release)

/*
 * Full fences next to a read-modify-write: stores before fence_before_rmw()
 * are visible before the load of the read-modify-write that follows, and
 * stores before a read-modify-write are visible before loads after
 * fence_after_rmw().  On x86-64 the locked instruction itself is a full
 * barrier, so that only the compiler must not reorder.
 */
#if defined(__x86_64__)
#define fence_before_rmw() atomic_signal_fence(memory_order_seq_cst)
#else
#define fence_before_rmw() atomic_thread_fence(memory_order_seq_cst)
#endif
#define fence_after_rmw() fence_before_rmw()

#define ATOMIC_CAS(p, old, new, success, failure) \
	atomic_compare_exchange_strong_explicit(p, old, new, \
						memory_order_##success, \
						memory_order_##failure)
#define cas_relaxed(p, old, new) ATOMIC_CAS(p, old, new, relaxed, relaxed)
#define cas_acquire(p, old, new) ATOMIC_CAS(p, old, new, acquire, acquire)
#define cas_release(p, old, new) ATOMIC_CAS(p, old, new, release, relaxed)
#define cas_acq_rel(p, old, new) ATOMIC_CAS(p, old, new, acq_rel, acquire)
#define cas_seq_cst(p, old, new) ATOMIC_CAS(p, old, new, seq_cst, seq_cst)
