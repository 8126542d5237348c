/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What urxe info finds, as text (info.c) and as JSON (info_json.c). */
#pragma once

#include "fabric/fabric.h"
#include "json.h"

/* The process that holds the socket of the wire; NULL: none. */
const struct urxe_process *info_holder(struct urxe_fabric *f);
/* What the adversary was told when the process was executed; NULL: there is
 * none.  The caller frees it. */
char *info_adversary(int pid);
/* Device memory in use.  Not 0: the lock cannot be had, and that was said. */
int info_dm(struct urxe_fabric *f, uint64_t *bytes, uint32_t *pieces);

/* An element: the fabric in directory dir, of which `dead` contexts were freed.
 */
void info_put(struct json *j, struct urxe_fabric *f, const char *dir, int dead);
