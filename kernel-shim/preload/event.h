/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which objects events are about: shared/event_tag.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/atomic.h"
#include "shared/event_tag.h"

extern _Atomic bool event_used; /* there is a table */

/* 0 or -errno. */
int event_element_add(struct event_element *e);
int event_element_remove(struct event_element *e);

/* The inode of the channel fd; 0: it is none. */
uint64_t event_channel(int fd);
/* A record of len bytes that was read: false if it must be skipped. */
bool event_translate(void *record, size_t len);
