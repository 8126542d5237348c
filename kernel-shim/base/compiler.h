/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include <features.h>
#include <stddef.h>

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
/* Not exported from this shared object: accessed without the GOT or PLT. */
#define internal __attribute__((visibility("hidden")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Thread-local storage.  With the default TLS model glibc allocates the
 * memory of a library that dlopen(3) loaded when a thread first accesses it,
 * and aborts the process if there is none.  With initial-exec it is allocated
 * when the thread is created.  musl always allocates it by then.
 */
#ifdef __GLIBC__
#define thread_own _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define thread_own _Thread_local
#endif
