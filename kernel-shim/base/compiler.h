/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include <features.h>
#include <stddef.h>

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
/* Of this shared object alone: it is reached without a detour. */
#define internal __attribute__((visibility("hidden")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Of each thread.  glibc allocates such memory of a library that dlopen() brought
 * when a thread first touches it, and aborts the process if there is none left;
 * this model is there from the thread's beginning.  musl always has it by then.
 */
#ifdef __GLIBC__
#define thread_own _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define thread_own _Thread_local
#endif
