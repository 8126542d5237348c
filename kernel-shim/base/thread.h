/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/*
 * Start a thread with all signals blocked: they are the application's.  Store
 * it in *out, or detach it if @out is NULL.  Return false if the thread cannot
 * be created.
 */
bool thread_start(pthread_t *out, void *(*fn)(void *), void *arg);
