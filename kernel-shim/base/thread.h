/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/*
 * Start a thread that takes no signals: they are the application's.  Without
 * an out it is detached.
 */
bool thread_start(pthread_t *out, void *(*fn)(void *), void *arg);
