/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the fabric share among themselves. */
#ifndef URXE_FABRIC_INTERNAL_H
#define URXE_FABRIC_INTERNAL_H

#include "fabric.h"

void fabric_mutex_init(pthread_mutex_t *m);
int arena_init(int fd, uint32_t slot, uint32_t gen, const char comm[16]);
/* Under the device lock. */
void dm_heap_free_locked(struct urxe_fabric *f, uint32_t slot);

#endif
